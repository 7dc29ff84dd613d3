"""What the runtime has to know of an op, read once from its schema."""

from __future__ import annotations

import zlib
from typing import Any

import torch

from pardnn.torch.script import compat

# Views that their schemas do not call so.
_VIEWS = frozenset(
    {
        "_unsafe_view",
        "_reshape_alias",
        "lift_fresh",
        "alias",
        "detach",
        "unsafe_split",
        "unsafe_chunk",
        "unsafe_split_with_sizes",
        "_sparse_coo_tensor_with_dims_and_tensors",
    }
)
# What they do and answer does not depend on values; every rank has the sparse tensor itself.
_OF_SHAPES = frozenset({"_nnz", "is_coalesced", "sparse_dim", "dense_dim", "_coalesced_"})
# Arguments that are written although the schema does not say so: running mean and variance.
_WRITTEN_UNSAID = {"native_batch_norm": (3, 4)}
_BY_LIST = ("_foreach_", "_fused_", "_amp_foreach_")
# The number of results depends on the values, whatever the tags say.
_SIZED_BY_VALUES = frozenset({"nonzero", "_unique2", "unique_consecutive", "unique_dim"})


class Facts:
    """One op (an overload of it).

    ``call``: calls it. ``written``: positions of arguments that it changes. ``gives_written``: it
    returns only these. ``view``: it only makes a view, or looks at shapes. ``composite``: it is
    made of others. ``draws``: it takes random numbers. ``gives_value``: it returns Python values,
    no tensors. ``by_list``: it does the same to each tensor of lists. ``sized_by_values``: sizes of
    its results depend on values.
    """

    def __init__(self, func: Any) -> None:
        schema = func._schema
        self.func = func
        self.call = compat.kernel_of(func)
        self.name: str = func.__name__.partition(".")[0]
        self.number = zlib.crc32(func.name().encode())
        self.arguments = [argument.name for argument in schema.arguments]
        self.written: tuple[int, ...] = _WRITTEN_UNSAID.get(self.name) or tuple(
            position
            for position, argument in enumerate(schema.arguments)
            if argument.alias_info is not None and argument.alias_info.is_write
        )
        returned = [str(result.type) for result in schema.returns]
        self.returns = len(returned)
        self.returns_list = returned == ["List[Tensor]"]
        self.gives_written = (
            bool(self.written)
            and all(r.alias_info is not None and r.alias_info.is_write for r in schema.returns)
            and self.name not in _WRITTEN_UNSAID
        )
        self.view = (
            self.name in _VIEWS
            or self.name in _OF_SHAPES
            or torch.Tag.inplace_view in func.tags
            or (not self.written and any(r.alias_info is not None for r in schema.returns))
        )
        self.composite = compat.is_composite(func)
        self.draws = torch.Tag.nondeterministic_seeded in func.tags
        self.gives_value = bool(returned) and not any("Tensor" in text for text in returned)
        self.by_list = self.name.startswith(_BY_LIST)
        self.sized_by_values = self.name in _SIZED_BY_VALUES
        self.masks_size = torch.Tag.dynamic_output_shape in func.tags

    def written_tensors(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[torch.Tensor]:
        """The tensors among the arguments that the op changes."""
        found: list[torch.Tensor] = []
        for position in self.written:
            if position < len(args):
                argument = args[position]
            else:
                argument = kwargs.get(self.arguments[position])
            if isinstance(argument, torch.Tensor):
                found.append(argument)
            elif isinstance(argument, (list, tuple)):
                found.extend(a for a in argument if isinstance(a, torch.Tensor))
        return found


# By the identity of the op, which lives as long as its facts: its own hash is Python code.
_known: dict[int, Facts] = {}


def facts_of(func: Any) -> Facts:
    """The facts of an op."""
    found = _known.get(id(func))
    if found is None:
        found = _known[id(func)] = Facts(func)
    return found

"""Results of ops: what decides their shapes, and hollow ones of the same shapes."""

from __future__ import annotations

from typing import Any

import torch

from pardnn.errors import Refusal
from pardnn.torch.script.hollow import Home, hollow
from pardnn.torch.script.mode import SEQUENCE, TENSOR, Call, sort_of, sorts
from pardnn.torch.sparse import parts_of, sparse_of

_MASKS = (torch.bool, torch.uint8)
# Values of these types change no shape.
_ALIKE = frozenset({float, torch.Generator})


def describe(call: Call, out: Any) -> Any:
    """What is needed to make hollow results: plain values that can be compared and sent."""
    if isinstance(out, (tuple, list)):
        return (type(out), [describe(call, one) for one in out])
    if not isinstance(out, torch.Tensor):
        return ("value", out)
    if out.layout != torch.strided:
        parts = [describe(call, part) for part in parts_of(out)]
        return ("sparse", (parts, tuple(out.shape), out.is_coalesced()))
    for number, tensor in enumerate(call.tensors):
        if tensor is out:
            return ("input", number)
    nbytes = out.untyped_storage().nbytes()
    like = (tuple(out.shape), out.stride(), out.dtype, out.storage_offset(), nbytes)
    return ("tensor", like)


def fits(out: Any, known: Any) -> bool:
    """Whether results have the described shapes and strides."""
    kind, what = known
    if kind == "tensor":
        return out.shape == what[0] and out.stride() == what[1]
    if kind in ("input", "value"):
        return True
    return len(out) == len(what) and all([fits(*pair) for pair in zip(out, what, strict=True)])


def new_bytes(known: Any) -> int:
    """Bytes of the described results that are new."""
    kind, what = known
    if kind == "tensor":
        return int(what[-1])
    if kind in ("input", "value", "sparse"):
        return 0
    return sum(new_bytes(one) for one in what)


def make(call: Call, known: Any, owner: int) -> Any:
    """Hollow results of the described shapes that are at home with ``owner``."""
    kind, what = known
    if kind == "tensor":
        size, stride, dtype, offset, nbytes = what
        return hollow(size, stride, dtype, offset, Home(owner), nbytes)
    if kind == "input":
        return call.tensors[what]
    if kind == "value":
        return what
    if kind == "sparse":
        parts, shape, coalesced = what
        indices, values = [make(call, part, owner) for part in parts]
        return sparse_of(indices, values, shape, coalesced)
    return kind(make(call, part, owner) for part in what)


def settle_all(call: Call, out: Any, unseen: int | None = None) -> None:
    """Makes results at home where the op ran, but for the one that all ranks have."""
    if isinstance(out, (tuple, list)):
        for number, one in enumerate(out):
            if number != unseen:
                settle_all(call, one)
    elif isinstance(out, torch.Tensor) and out.layout != torch.strided:
        for part in parts_of(out):
            part.untyped_storage().home = Home(call.where)
    elif isinstance(out, torch.Tensor):
        storage = out.untyped_storage()
        if getattr(storage, "home", None) is None:
            address = storage._cdata
            dense = [tensor for tensor in call.tensors if tensor.layout == torch.strided]
            if any([tensor.untyped_storage()._cdata == address for tensor in dense]):
                if any([tensor is out for tensor in dense]):
                    return
                raise Refusal(
                    f"{call.facts.func} makes a view and does not say so; please report it"
                )
            storage.home = Home(call.where)


def key_of(call: Call) -> Any:
    """What decides the shapes of the results; None where values do."""
    facts = call.facts
    if facts.sized_by_values or call.has_sparse:
        return None
    if facts.masks_size and any(t.dtype in _MASKS for t in call.tensors):
        return None
    parts: list[Any] = [facts]
    _add_parts(call.args, parts)
    if call.kwargs:
        for name, value in call.kwargs.items():
            parts.append(name)
            _add_parts((value,), parts)
    return tuple(parts)


def _add_parts(values: Any, parts: list[Any]) -> None:
    for value in values:
        sort = sorts.get(type(value))
        if sort is None:
            sort = sort_of(value)
        if sort == TENSOR:
            parts += (value.shape, value.stride(), value.dtype)
        elif sort == SEQUENCE:
            parts.append(len(value))
            _add_parts(value, parts)
        elif type(value) in _ALIKE:
            parts.append(type(value))
        else:
            parts += (type(value), value)

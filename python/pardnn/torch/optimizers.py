"""What one update costs: time, state and temporary memory, by running the user's optimizer on one
parameter at a time; and an optimizer of the same kind and settings over other parameters.
"""

from __future__ import annotations

import time
import weakref
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from pardnn.errors import Refusal
from pardnn.torch.sparse import parts_of, sparse_of

# A larger parameter is measured in part: updates are elementwise, or nearly so.
_MOST_MEASURED_BYTES = 8 << 20
_REPEATS = 3
_OWN_ATTRIBUTES = ("state", "param_groups", "step")


@dataclass(frozen=True)
class Update:
    """The update of one parameter: ns, bytes of each tensor of its state, bytes besides."""

    parameter: str
    cost_ns: int
    state_bytes: tuple[int, ...]
    workspace_bytes: int


class _Held(TorchDispatchMode):
    """Counts the bytes of storages made while it is on, and the most at one moment."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.most = 0
        self._known: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        before = {part.untyped_storage()._cdata for part in _dense((args, kwargs))}
        answer = func(*args, **(kwargs or {}))
        for part in _dense(answer):
            self._see(part.untyped_storage(), before)
        return answer

    def _see(self, storage: torch.UntypedStorage, before: set[int]) -> None:
        identity, size = storage._cdata, storage.nbytes()
        if identity in before or identity in self._known:
            return
        self._known.add(identity)
        self.now += size
        self.most = max(self.most, self.now)

        def freed() -> None:
            self.now -= size
            self._known.discard(identity)

        weakref.finalize(storage, freed)


def _dense(tree: Any) -> list[torch.Tensor]:
    """All tensors; of sparse ones what they consist of."""
    tensors = [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)]
    return [part for tensor in tensors for part in parts_of(tensor)]


def settings_of(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """What an optimizer is besides its parameters and state; can be sent to another process."""
    kept = {}
    for name, value in vars(optimizer).items():
        if name in _OWN_ATTRIBUTES or callable(value) or "hook" in name:
            continue
        kept[name] = value
    return kept


def group_settings(optimizer: torch.optim.Optimizer) -> list[dict[str, Any]]:
    """Learning rate and all else of each parameter group, without the parameters."""
    return [
        {name: value for name, value in group.items() if name not in ("params", "param_names")}
        for group in optimizer.param_groups
    ]


def alike(
    kind: type[torch.optim.Optimizer],
    settings: Mapping[str, Any],
    groups: Sequence[Mapping[str, Any]],
    parameters: Sequence[Sequence[nn.Parameter]],
) -> torch.optim.Optimizer:
    """An optimizer of this kind whose groups train these parameters, with no state yet."""
    made: Any = object.__new__(kind)
    made.__setstate__(
        {
            **settings,
            "state": defaultdict(dict),
            "param_groups": [
                {**group, "params": list(held)}
                for group, held in zip(groups, parameters, strict=True)
            ],
        }
    )
    return made


def updates_of(
    optimizer: torch.optim.Optimizer, model: nn.Module, rows_of: Mapping[str, int | None]
) -> list[Update]:
    """What training each parameter costs that has a gradient; ``rows_of``: these, and how many rows
    those have that are sparse. Raises Refusal for optimizers that need a closure, or whose state
    grows with every step.
    """
    if isinstance(optimizer, torch.optim.LBFGS):
        raise Refusal("LBFGS calls the step many times itself; 'pardnn run' can train with it")
    name_of = {id(parameter): name for name, parameter in model.named_parameters()}
    known: dict[Any, _Found] = {}
    found: list[tuple[str, _Found]] = []
    for number, group in enumerate(optimizer.param_groups):
        for parameter in group["params"]:
            name = name_of[id(parameter)]
            if name not in rows_of:
                continue
            rows = rows_of[name]
            key = (number, tuple(parameter.shape), parameter.stride(), parameter.dtype, rows)
            if key not in known:
                known[key] = _measured(optimizer, number, parameter, rows)
            found.append((name, known[key]))
    # While one is updated, variables may still hold what was left of another as large.
    _, second, *_ = *sorted((each.left for _, each in found), reverse=True), 0, 0
    return [
        Update(name, each.cost_ns, each.state_bytes, each.workspace + min(each.left, second))
        for name, each in found
    ]


def gradient_like(parameter: torch.Tensor, rows: int | None) -> torch.Tensor:
    """A gradient of zeros, sparse with so many rows if there are any."""
    if rows is None:
        return torch.zeros_like(parameter)
    indices = torch.arange(rows).remainder(parameter.shape[0]).unsqueeze(0)
    return sparse_of(indices, torch.zeros(rows, *parameter.shape[1:]), parameter.shape)


class _Found(NamedTuple):
    """Of one parameter: as Update; ``left``: bytes that stay until the next one is updated."""

    cost_ns: int
    state_bytes: tuple[int, ...]
    workspace: int
    left: int


def _measured(
    optimizer: torch.optim.Optimizer, number: int, like: torch.Tensor, rows: int | None
) -> _Found:
    shape, scale = list(like.shape), 1.0
    size = like.numel() * like.element_size()
    if size > _MOST_MEASURED_BYTES:
        some_rows = max(1, int(shape[0] * _MOST_MEASURED_BYTES / size))
        shape[0], scale = some_rows, shape[0] / some_rows
    # What a sparse gradient does not touch takes no time.
    by_rows = scale if rows is None else 1.0
    group = group_settings(optimizer)[number]

    def trained(count: int) -> tuple[torch.optim.Optimizer, nn.Parameter, int]:
        """An optimizer of so many of them, one of them, and the most bytes at one moment."""
        some = [nn.Parameter(torch.zeros(shape, dtype=like.dtype)) for _ in range(count)]
        copy = alike(type(optimizer), settings_of(optimizer), [group], [some])
        for parameter in some:
            parameter.grad = gradient_like(parameter, rows)
        copy.step()
        with _Held() as held:
            copy.step()
        return copy, some[0], held.most

    with torch.random.fork_rng(devices=[]):
        copy, parameter, most = trained(1)
        state = [v for v in copy.state[parameter].values() if isinstance(v, torch.Tensor)]
        if any(v.layout != torch.strided for v in state):
            raise Refusal(
                f"{type(optimizer).__name__} with momentum keeps all rows that sparse gradients "
                "ever touched; take its momentum away, or train those tables with SparseAdam"
            )
        times = []
        for _ in range(_REPEATS):
            begin = time.thread_time_ns()
            copy.step()
            times.append(time.thread_time_ns() - begin)
        _, _, of_two = trained(2)
    sizes = tuple(_scaled(t.untyped_storage().nbytes(), scale) for t in state)
    return _Found(
        int(min(times) * by_rows), sizes, _scaled(most, by_rows), _scaled(of_two - most, by_rows)
    )


def _scaled(size: int, scale: float) -> int:
    """Bytes of the whole parameter; what does not grow with it is small."""
    return int(size * scale) if size > 64 else size

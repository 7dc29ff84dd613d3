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
        before = {
            leaf.untyped_storage()._cdata
            for leaf in pytree.tree_leaves((args, kwargs))
            if isinstance(leaf, torch.Tensor)
        }
        answer = func(*args, **(kwargs or {}))
        for leaf in pytree.tree_leaves(answer):
            if isinstance(leaf, torch.Tensor):
                self._see(leaf.untyped_storage(), before)
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


def updates_of(optimizer: torch.optim.Optimizer, model: nn.Module) -> list[Update]:
    """What training each parameter costs. Raises Refusal for optimizers that need a closure."""
    if isinstance(optimizer, torch.optim.LBFGS):
        raise Refusal("LBFGS calls the step many times itself; 'pardnn run' can train with it")
    name_of = {id(parameter): name for name, parameter in model.named_parameters()}
    known: dict[Any, _Found] = {}
    found: list[tuple[str, _Found]] = []
    for number, group in enumerate(optimizer.param_groups):
        for parameter in group["params"]:
            if not parameter.requires_grad:
                continue
            key = (number, tuple(parameter.shape), parameter.stride(), parameter.dtype)
            if key not in known:
                known[key] = _measured(optimizer, number, parameter)
            found.append((name_of[id(parameter)], known[key]))
    # While one is updated, variables may still hold what was left of another as large.
    _, second, *_ = *sorted((each.left for _, each in found), reverse=True), 0, 0
    return [
        Update(name, each.cost_ns, each.state_bytes, each.workspace + min(each.left, second))
        for name, each in found
    ]


class _Found(NamedTuple):
    """Of one parameter: as Update; ``left``: bytes that stay until the next one is updated."""

    cost_ns: int
    state_bytes: tuple[int, ...]
    workspace: int
    left: int


def _measured(optimizer: torch.optim.Optimizer, number: int, like: torch.Tensor) -> _Found:
    shape, scale = list(like.shape), 1.0
    size = like.numel() * like.element_size()
    if size > _MOST_MEASURED_BYTES:
        rows = max(1, int(shape[0] * _MOST_MEASURED_BYTES / size))
        shape[0], scale = rows, shape[0] / rows
    group = group_settings(optimizer)[number]

    def trained(count: int) -> tuple[torch.optim.Optimizer, nn.Parameter, int]:
        """An optimizer of so many of them, one of them, and the most bytes at one moment."""
        some = [nn.Parameter(torch.zeros(shape, dtype=like.dtype)) for _ in range(count)]
        copy = alike(type(optimizer), settings_of(optimizer), [group], [some])
        for parameter in some:
            parameter.grad = torch.zeros_like(parameter)
        copy.step()
        with _Held() as held:
            copy.step()
        return copy, some[0], held.most

    with torch.random.fork_rng(devices=[]):
        copy, parameter, most = trained(1)
        state = [v for v in copy.state[parameter].values() if isinstance(v, torch.Tensor)]
        times = []
        for _ in range(_REPEATS):
            begin = time.thread_time_ns()
            copy.step()
            times.append(time.thread_time_ns() - begin)
        _, _, of_two = trained(2)
    sizes = tuple(_scaled(t.untyped_storage().nbytes(), scale) for t in state)
    return _Found(
        int(min(times) * scale), sizes, _scaled(most, scale), _scaled(of_two - most, scale)
    )


def _scaled(size: int, scale: float) -> int:
    """Bytes of the whole parameter; what does not grow with it is small."""
    return int(size * scale) if size > 64 else size

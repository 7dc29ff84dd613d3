"""What one update costs: time, state and temporary memory, by running the user's optimizer on one
parameter at a time; and an optimizer of the same kind and settings over other parameters.
"""

from __future__ import annotations

import time
import weakref
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from pardnn.errors import Refusal

# A larger parameter is measured in part: updates are elementwise, or nearly so.
_MOST_MEASURED_BYTES = 32 << 20
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
    known: dict[Any, tuple[int, tuple[int, ...], int]] = {}
    found = []
    for number, group in enumerate(optimizer.param_groups):
        for parameter in group["params"]:
            if not parameter.requires_grad:
                continue
            key = (number, tuple(parameter.shape), parameter.stride(), parameter.dtype)
            if key not in known:
                known[key] = _measured(optimizer, number, parameter)
            found.append(Update(name_of[id(parameter)], *known[key]))
    return found


def _measured(
    optimizer: torch.optim.Optimizer, number: int, like: torch.Tensor
) -> tuple[int, tuple[int, ...], int]:
    shape, scale = list(like.shape), 1.0
    size = like.numel() * like.element_size()
    if size > _MOST_MEASURED_BYTES:
        rows = max(1, int(shape[0] * _MOST_MEASURED_BYTES / size))
        shape[0], scale = rows, shape[0] / rows
    # Two of a kind: what the first one leaves in variables is there while the second is updated.
    pair = [nn.Parameter(torch.zeros(shape, dtype=like.dtype)) for _ in range(2)]
    group = group_settings(optimizer)[number]
    copy = alike(type(optimizer), settings_of(optimizer), [group], [pair])
    with torch.random.fork_rng(devices=[]):
        for parameter in pair:
            parameter.grad = torch.zeros_like(parameter)
        copy.step()
        state = [v for v in copy.state[pair[0]].values() if isinstance(v, torch.Tensor)]
        with _Held() as held:
            copy.step()
        times = []
        for _ in range(_REPEATS):
            begin = time.thread_time_ns()
            copy.step()
            times.append(time.thread_time_ns() - begin)
    sizes = tuple(_scaled(t.untyped_storage().nbytes(), scale) for t in state)
    return int(min(times) / len(pair) * scale), sizes, _scaled(held.most, scale)


def _scaled(size: int, scale: float) -> int:
    """Bytes of the whole parameter; what does not grow with it is small."""
    return int(size * scale) if size > 64 else size

"""Optimizers of torch's own that step on each rank over its own parameters, outside of the mode.

What they do to one parameter has nothing to do with another, so no bit changes; op by op, every
rank would look at every op of every parameter. The first steps of an optimizer go op by op: they
make its state, and the memory that they take is looked at.
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import optim
from torch.optim import optimizer as optimizers

from pardnn.torch.script import compat
from pardnn.torch.script.hollow import Home, home_of
from pardnn.torch.script.ranks import RankMode

_BY_PARAMETER = frozenset(
    {
        optim.SGD,
        optim.Adam,
        optim.AdamW,
        optim.Adagrad,
        optim.RMSprop,
        optim.Adamax,
        optim.Adadelta,
        optim.RAdam,
    }
)
_OTHERWISE = ("fused", "capturable", "differentiable")
_OP_BY_OP = 4
# What a step over one parameter makes for a while, in parts as large as that.
_TEMPORARY = 4
# Each gradient that is not with its parameter takes a call of its own.
_MOST_CALLS = 16


@dataclass(slots=True)
class _Part:
    """A parameter with a gradient.

    ``home``, ``source``: of parameter and gradient. ``state``: the homes of its state. ``counts``:
    tensors of its state that every rank has.
    """

    parameter: torch.Tensor
    gradient: torch.Tensor
    home: Home
    source: Home
    state: list[Home]
    counts: list[torch.Tensor]


def install(mode: RankMode) -> None:
    """From now on optimizers step so where they can."""
    wrap = optimizers.Optimizer.profile_hook_step
    steps: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()

    def placed(step: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(step)
        def placed_step(self: Any, *args: Any, **kwargs: Any) -> Any:
            done = steps.get(self, 0)
            steps[self] = done + 1
            parts = None
            if done >= _OP_BY_OP and not args and not kwargs:
                parts = parts_of(self)
            if parts is None:
                return step(self, *args, **kwargs)
            return _step_own(mode, lambda: step(self), parts)

        return wrap(placed_step)

    optimizers.Optimizer.profile_hook_step = staticmethod(placed)


def parts_of(optimizer: Any) -> list[_Part] | None:
    """What a step changes, None where it has to go op by op. All ranks find the same."""
    if type(optimizer) not in _BY_PARAMETER:
        return None
    parts: list[_Part] = []
    for group in optimizer.param_groups:
        if isinstance(group["lr"], torch.Tensor) or any(group.get(name) for name in _OTHERWISE):
            return None
        stateless = type(optimizer) is optim.SGD and not group["momentum"]
        for parameter in group["params"]:
            if parameter.grad is not None:
                state = {} if stateless else optimizer.state.get(parameter)
                part = _part_of(parameter, state)
                if part is None or not (part.state or stateless):
                    return None
                parts.append(part)
    if sum(part.home.owner != part.source.owner for part in parts) > _MOST_CALLS:
        return None
    return parts


def _part_of(parameter: torch.Tensor, state: dict[str, Any] | None) -> _Part | None:
    gradient = parameter.grad
    home = home_of(parameter)
    if state is None or gradient is None or gradient.layout != torch.strided or home is None:
        return None
    source = home_of(gradient)
    if source is None or home.parameter is None:
        return None
    placed: list[Home] = []
    counts: list[torch.Tensor] = []
    for name, value in state.items():
        if not isinstance(value, torch.Tensor):
            return None
        its = home_of(value)
        if its is not None and its.owner == home.owner:
            placed.append(its)
        elif its is None and name == "step":
            counts.append(value)
        else:
            return None
    return _Part(parameter, gradient, home, source, placed, counts)


def _step_own(mode: RankMode, step: Callable[[], Any], parts: list[_Part]) -> Any:
    """Steps over the parameters of this rank; the others are as if they had been stepped over."""
    mode.links.note(-6, len(parts))
    own = [part for part in parts if part.home.owner == mode.rank]
    mode.memory.make_room(_TEMPORARY * max([part.parameter.nbytes for part in own], default=0))
    with compat.without_modes(), _gradients_put_away(parts):
        near = [part for part in own if part.source.owner == mode.rank]
        if near:
            for part in near:
                part.parameter.grad = part.gradient
            step()
            for part in near:
                part.parameter.grad = None
        for part in parts:
            if part.source.owner == part.home.owner:
                continue
            with mode.lent(part.gradient, part.home.owner) as gradient:
                if gradient is not None:
                    part.parameter.grad = gradient
                    step()
                    part.parameter.grad = None
        for part in parts:
            if part.home.owner != mode.rank:
                torch.autograd.graph.increment_version(part.parameter)
                for count in part.counts:
                    count += 1
    for part in parts:
        mode.changed((part.home, *part.state))


@contextlib.contextmanager
def _gradients_put_away(parts: list[_Part]) -> Iterator[None]:
    for part in parts:
        part.parameter.grad = None
    try:
        yield
    finally:
        for part in parts:
            part.parameter.grad = part.gradient

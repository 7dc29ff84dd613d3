"""Which call of which module the program is in: the names under which a plan knows ops.

A module is named when it is first seen: the outermost one called by its number, those inside by
their path in it. An op's key is the module's name, the op's name and how many of that name came
before it in this call. Outside of modules it is the line of the script, the op and its parameters.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.optim import optimizer as optimizers

from pardnn.torch.script import compat
from pardnn.torch.script.hollow import Home

Key = tuple[Any, ...]
_TORCH = str(Path(torch.__file__).parent)
_OWN = str(Path(__file__).parents[2])


class _Call:
    __slots__ = ("counts", "in_backward", "path")

    def __init__(self, path: str, in_backward: bool) -> None:
        self.path = path
        self.in_backward = in_backward
        self.counts: dict[str, int] = {}


class Calls:
    """The calls that the program is in. ``install`` makes modules report them."""

    def __init__(self) -> None:
        self.in_optimizer = False
        self._stack: list[_Call] = []
        self._paths: weakref.WeakKeyDictionary[nn.Module, str] = weakref.WeakKeyDictionary()
        self._roots = 0

    def install(self) -> None:
        """From now on, every call of a module is noted."""
        original = nn.Module.__call__
        calls = self

        def call(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            path = calls._paths.get(module)
            if path is None:
                path = calls._name(module)
            calls._stack.append(_Call(path, compat.current_node() is not None))
            try:
                return original(module, *args, **kwargs)
            finally:
                calls._stack.pop()

        nn.Module.__call__ = call
        optimizers.register_optimizer_step_pre_hook(self._enter_optimizer)
        optimizers.register_optimizer_step_post_hook(self._leave_optimizer)

    def recomputes(self) -> bool:
        """Whether a module is called from within backward, as activation checkpointing does."""
        return bool(self._stack) and self._stack[-1].in_backward

    def key(self, name: str, homes: Sequence[Home | None]) -> Key | None:
        """The key of the op that is about to run, None where it has to follow its inputs.

        ``homes``: of its inputs.
        """
        if self._stack:
            call = self._stack[-1]
            nth = call.counts.get(name, 0)
            call.counts[name] = nth + 1
            return call.path, name, nth
        if self.in_optimizer or not torch.is_grad_enabled():
            return None
        numbers = [home.parameter for home in homes if home is not None]
        return (*_line_of_script(), name, tuple(numbers))

    def _name(self, module: nn.Module) -> str:
        root = f"m{self._roots}"
        self._roots += 1
        for name, inner in module.named_modules():
            if inner not in self._paths:
                self._paths[inner] = f"{root}.{name}" if name else root
        return self._paths[module]

    def _enter_optimizer(self, *_: Any) -> None:
        self.in_optimizer = True

    def _leave_optimizer(self, *_: Any) -> None:
        self.in_optimizer = False


def _line_of_script() -> tuple[str, int]:
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith((_TORCH, _OWN)):
            return file, frame.f_lineno
        frame = frame.f_back  # type: ignore[assignment]
    return "", 0

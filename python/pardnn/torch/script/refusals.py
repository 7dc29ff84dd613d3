"""What a script may do in one process and not over several ranks: said in one sentence each."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
import torch.func

from pardnn.errors import Refusal
from pardnn.torch.script import compat
from pardnn.torch.script.hollow import home_of

_DISTRIBUTED = (
    "the script distributes itself with torch.distributed (DDP, FSDP, tensor parallelism); "
    "start it with torchrun, or take that out"
)
_THREAD = (
    "thread {} of the script computes with tensors of the model; ranks would meet their messages "
    "in different orders, so only the main thread can"
)
_FUNCTORCH = "torch.func.{} over parameters that are on several ranks; use torch.autograd instead"
_TRANSFORMS = ("vmap", "grad", "grad_and_value", "vjp", "jvp", "jacrev", "jacfwd", "hessian")


def install(end: Callable[[str], None], say: Callable[[str], None]) -> None:
    """Installs the refusals. ``end(message)`` ends the run from any thread, ``say`` says a line."""
    dist.init_process_group = _refuser(_DISTRIBUTED)
    for name in _TRANSFORMS:
        wrapped = _transform(name, getattr(torch.func, name))
        setattr(torch.func, name, wrapped)
    torch.vmap = torch.func.vmap
    _watch_threads(end)
    said: list[bool] = []

    def compile(model: Any = None, *_: Any, **__: Any) -> Any:
        if not said:
            said.append(True)
            say("torch.compile has no effect: ops run one by one, where the plan has them")
        return model if model is not None else lambda function: function

    torch.compile = compile


def _refuser(message: str) -> Callable[..., Any]:
    def refuse(*_: Any, **__: Any) -> Any:
        raise Refusal(message)

    return refuse


def _transform(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    """A transform that refuses what has a home; modules that a function closes over are caught by
    the mode, which sees their parameters.
    """

    def transform(*args: Any, **kwargs: Any) -> Any:
        inner = original(*args, **kwargs)
        if not callable(inner):
            return inner

        def run(*values: Any, **more: Any) -> Any:
            active.append(name)
            try:
                return inner(*values, **more)
            finally:
                active.pop()

        return run

    return transform


# The transforms that the script is in.
active: list[str] = []


def check_transforms() -> None:
    """Raises Refusal within a transform of torch.func."""
    if active:
        raise Refusal(_FUNCTORCH.format(active[-1]))


class _Watching(compat.TorchDispatchMode):
    """The mode of a thread of the script: only what is on every rank may be touched."""

    def __init__(self, end: Callable[[str], None]) -> None:
        super().__init__()
        self._end = end

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        for value in (*args, *kwargs.values()):
            for tensor in value if isinstance(value, (list, tuple)) else (value,):
                if isinstance(tensor, torch.Tensor) and home_of(tensor) is not None:
                    self._end(_THREAD.format(threading.current_thread().name))
        return func(*args, **kwargs)


def _watch_threads(end: Callable[[str], None]) -> None:
    inner = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]

    def watched(self: threading.Thread) -> None:
        with _Watching(end):
            inner(self)

    threading.Thread._bootstrap_inner = watched  # type: ignore[attr-defined]

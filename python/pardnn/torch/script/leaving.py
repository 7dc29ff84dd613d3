"""Values that leave torch where no dispatch mode sees it: ``numpy()``, ``tolist()``, ``repr()``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from pardnn.errors import Refusal
from pardnn.torch.script import compat
from pardnn.torch.script.hollow import home_of
from pardnn.torch.sparse import joined, parts_of

_READERS = ("numpy", "tolist", "__array__", "__repr__")
_PLACED = (torch.strided, torch.sparse_coo)
_REFUSED = ("__dlpack__",)


def install(fetch: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """Makes what reads a tensor's values read the real ones. ``fetch`` gets them from anywhere."""
    reading: list[str] = []  # repr calls tolist: the values are there by then

    def reader(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def read(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            if reading or self.layout not in _PLACED or home_of(self) is None:
                return original(self, *args, **kwargs)
            with compat.without_modes(), torch.no_grad():
                parts = [part if home_of(part) is None else fetch(part) for part in parts_of(self)]
                values = joined(self, parts)
            if self.requires_grad:
                values = _with_grad(values, self)
            reading.append(name)
            try:
                return original(values, *args, **kwargs)
            finally:
                reading.pop()

        return read

    for name in _READERS:
        setattr(torch.Tensor, name, reader(name, getattr(torch.Tensor, name)))
    for name in _REFUSED:
        setattr(torch.Tensor, name, _refuser(name, getattr(torch.Tensor, name)))


def _with_grad(values: torch.Tensor, original: torch.Tensor) -> torch.Tensor:
    """Says of itself that it requires grad, as the original does, or refuses to be an array."""
    found = values.detach().requires_grad_()
    if isinstance(original, nn.Parameter):
        return torch.Tensor._make_subclass(nn.Parameter, found, True)
    return found


def _refuser(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    def refuse(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if home_of(self) is None:
            return original(self, *args, **kwargs)
        raise Refusal(f"{name} of a tensor that is on another rank; use .numpy() or .tolist()")

    return refuse

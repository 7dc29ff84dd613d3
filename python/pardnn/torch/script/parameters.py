"""Parameters find their home the moment they are made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from pardnn.torch.script import compat

Adopt = Callable[..., torch.Tensor]


def install(adopt: Adopt) -> None:
    """From now on ``adopt(data, moves=…)`` gives the tensor of every new parameter."""
    new = nn.Parameter.__new__
    deepcopy = nn.Parameter.__deepcopy__
    copying: list[bool] = []

    def placed_new(cls: Any, data: Any = None, requires_grad: bool = True) -> Any:
        if isinstance(data, torch.Tensor) and data.layout == torch.strided:
            with compat.without_modes(), torch.no_grad():
                data = adopt(data, moves=bool(copying))
        return new(cls, data, requires_grad)

    def placed_deepcopy(self: Any, memo: Any) -> Any:
        # The copy's memory is its own, so it can move to where the plan has the new parameter.
        copying.append(True)
        try:
            return deepcopy(self, memo)
        finally:
            copying.pop()

    nn.Parameter.__new__ = placed_new
    nn.Parameter.__deepcopy__ = placed_deepcopy

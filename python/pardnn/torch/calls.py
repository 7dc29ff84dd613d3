"""Calls of torch's ops as text and constants, which can be sent to another process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from pardnn.torch.nodes import element_bytes


@dataclass(frozen=True)
class Layout:
    """How a tensor lies in memory, as its trace says; ``bytes``: of its elements."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype
    bytes: int

    @staticmethod
    def of(tensor: torch.Tensor) -> Layout:
        """The layout of a tensor, fake or real."""
        return Layout(tuple(tensor.shape), tensor.stride(), tensor.dtype, element_bytes(tensor))


@dataclass(frozen=True)
class OpName:
    """An op of torch as it can be sent to another process."""

    name: str
    overload: str

    @staticmethod
    def of(op: torch._ops.OpOverload) -> OpName:
        """The name of an op."""
        return OpName(op._schema.name, op._schema.overload_name)

    def op(self) -> torch._ops.OpOverload:
        """The op of this name."""
        namespace, name = self.name.split("::")
        packet = getattr(getattr(torch.ops, namespace), name)
        found = getattr(packet, self.overload or "default")
        assert isinstance(found, torch._ops.OpOverload)
        return found


class Constants:
    """What a text refers to as ``c[0]``, ``c[1]``, ...: whatever has no literal."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self._number_of: dict[Any, int] = {}

    def text(self, constant: Any) -> str:
        """The text that stands for a constant."""
        key = constant if isinstance(constant, (Layout, OpName)) else id(constant)
        if key not in self._number_of:
            self._number_of[key] = len(self.items)
            self.items.append(constant)
        return f"c[{self._number_of[key]}]"

    def call(self, node: torch.fx.Node, read: Callable[[torch.fx.Node], str]) -> str:
        """The call that a node is; ``read`` says what stands for a node that it reads."""
        assert isinstance(node.target, torch._ops.OpOverload)
        return f"{self.text(OpName.of(node.target))}({self.arguments(node, read)})"

    def arguments(self, node: torch.fx.Node, read: Callable[[torch.fx.Node], str]) -> str:
        """The arguments alone."""
        positional = [self._argument(argument, read) for argument in node.args]
        keywords = [f"{name}={self._argument(v, read)}" for name, v in node.kwargs.items()]
        return ", ".join([*positional, *keywords])

    def _argument(self, argument: Any, read: Callable[[torch.fx.Node], str]) -> str:
        if isinstance(argument, torch.fx.Node):
            return read(argument)
        if isinstance(argument, (list, tuple)):
            return f"[{', '.join(self._argument(item, read) for item in argument)}]"
        if argument is None or isinstance(argument, (bool, int, str)):
            return repr(argument)
        if isinstance(argument, (torch.dtype, torch.layout, torch.memory_format)):
            return str(argument)  # such as torch.float32
        if isinstance(argument, torch.device):
            return f"torch.{argument!r}"
        return self.text(argument)  # floats too: inf and nan have no literal


def names_of(constants: list[Any]) -> dict[str, Any]:
    """What a text needs to be run."""
    loaded = [item.op() if isinstance(item, OpName) else item for item in constants]
    return {"c": loaded, "torch": torch}

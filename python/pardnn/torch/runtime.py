"""What a program calls besides torch's ops: messages, random numbers, gradients, new buffers."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import nn

from pardnn.torch.calls import Layout
from pardnn.torch.meter import bytes_in_use

# gloo keeps what was sent until somebody waits for it: no more than this is under way.
MOST_UNDER_WAY_BYTES = 4 << 20
# Before the elements of a message: the strides. A multiple of 64, so that elements are aligned.
_HEADER_BYTES = 64 * 8


class Arriving(NamedTuple):
    """A message that was asked for."""

    work: Any
    message: torch.Tensor
    layout: Layout


class Run:
    """One device's side of the steps: its parameters and buffers, and its messages.

    ``state``: tensors by name; those that are trained are nn.Parameters.
    """

    def __init__(self, state: dict[str, torch.Tensor]) -> None:
        self._state = state
        self._sent: deque[tuple[Any, torch.Tensor]] = deque()
        self._under_way = 0
        self.most_bytes = 0

    def values(self) -> dict[str, torch.Tensor]:
        """What a program reads: tensors without gradients, in the same memory."""
        return {name: tensor.detach() for name, tensor in self._state.items()}

    def send(self, tensor: torch.Tensor, device: int, tag: int) -> None:
        """Sends a tensor and how it lies in memory: kernels choose the strides of their outputs by
        those of their inputs, so these must arrive as they were. What the trace says of strides is
        no promise, for some kernels choose others.
        """
        message = _message(tensor)
        self._sent.append((dist.isend(message, device, tag=tag), message))
        self._under_way += message.nbytes
        while self._under_way > MOST_UNDER_WAY_BYTES:
            self._wait_for_oldest()

    def receive(self, layout: Layout, device: int, tag: int) -> Arriving:
        """Makes room for a message and asks for it."""
        message = torch.empty(_HEADER_BYTES + layout.bytes, dtype=torch.uint8)
        return Arriving(dist.irecv(message, device, tag=tag), message, layout)

    def wait(self, arriving: Arriving) -> torch.Tensor:
        """The tensor, once it is there."""
        arriving.work.wait()
        return _received(arriving.message, arriving.layout)

    def settle(self) -> None:
        """Waits until all that was sent has arrived."""
        while self._sent:
            self._wait_for_oldest()

    def _wait_for_oldest(self) -> None:
        work, image = self._sent.popleft()
        work.wait()
        self._under_way -= image.nbytes

    def bernoulli(self, like: torch.Tensor, p: float) -> torch.Tensor:
        """Draws in the order of memory, as dropout does outside of a functional graph."""
        return torch.empty_like(like).bernoulli_(p)

    def made(self, layout: Layout) -> torch.Tensor:
        """A tensor of any values, for an op that only draws random numbers."""
        return torch.empty_strided(layout.shape, layout.stride, dtype=layout.dtype)

    def gradient(self, name: str, gradient: torch.Tensor, is_own: bool) -> None:
        """Adds to the gradient of a parameter, in the parameter's own strides."""
        parameter = self._state[name]
        assert isinstance(parameter, nn.Parameter)
        if parameter.grad is not None:
            parameter.grad.add_(gradient)
        elif is_own and gradient.stride() == parameter.stride():
            parameter.grad = gradient
        else:
            parameter.grad = torch.empty_like(parameter).copy_(gradient)

    def write(self, name: str, value: torch.Tensor) -> None:
        """A new value of a buffer."""
        self._state[name].copy_(value)

    def meter(self) -> None:
        """Notes the bytes in use now."""
        self.most_bytes = max(self.most_bytes, bytes_in_use())


def _message(tensor: torch.Tensor) -> torch.Tensor:
    """The strides, then the elements in the order in which they lie in memory."""
    tensor = tensor.detach()
    size = tensor.numel() * tensor.element_size()
    message = torch.empty(_HEADER_BYTES + size, dtype=torch.uint8)
    header = message[:_HEADER_BYTES].view(torch.int64)
    header[: tensor.dim()] = torch.tensor(tensor.stride(), dtype=torch.int64)
    order = _memory_order(tensor.stride())
    lying = tensor.permute(order)
    message[_HEADER_BYTES:].view(tensor.dtype).view(lying.shape).copy_(lying)
    return message


def _received(message: torch.Tensor, layout: Layout) -> torch.Tensor:
    """The tensor of a message, in the message's own memory where it has no gaps."""
    stride = tuple(message[:_HEADER_BYTES].view(torch.int64)[: len(layout.shape)].tolist())
    order = _memory_order(stride)
    lying = message[_HEADER_BYTES:].view(layout.dtype).view([layout.shape[n] for n in order])
    tensor = lying.permute([order.index(n) for n in range(len(order))])
    if tensor.stride() == stride:
        return tensor
    # Expanded dimensions lie in memory once.
    once = [1 if step == 0 else size for size, step in zip(layout.shape, stride, strict=True)]
    base = torch.empty_strided(once, stride, dtype=layout.dtype)
    for n, step in enumerate(stride):
        tensor = tensor.narrow(n, 0, min(1, layout.shape[n])) if step == 0 else tensor
    return base.copy_(tensor).as_strided(layout.shape, stride)


def _memory_order(stride: Sequence[int]) -> list[int]:
    return sorted(range(len(stride)), key=lambda n: -stride[n])

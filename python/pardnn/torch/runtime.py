"""What a program calls besides torch's ops: messages, random numbers, gradients, new buffers."""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import nn
from torch.utils import _pytree as pytree

from pardnn.torch.programs import Layout

# gloo keeps what was sent until somebody waits for it: no more than this is under way.
MOST_UNDER_WAY_BYTES = 4 << 20


class Arriving(NamedTuple):
    """A message that was asked for."""

    work: Any
    tensor: torch.Tensor


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
        """Sends the memory of a tensor as it lies, gaps included: kernels choose the strides of
        their outputs by those of their inputs, so these must arrive as they were.
        """
        image = _image(tensor)
        self._sent.append((dist.isend(image, device, tag=tag), image))
        self._under_way += image.nbytes
        while self._under_way > MOST_UNDER_WAY_BYTES:
            self._wait_for_oldest()

    def receive(self, layout: Layout, device: int, tag: int) -> Arriving:
        """Makes room for a message and asks for it."""
        memory = torch.empty(layout.bytes // layout.dtype.itemsize, dtype=layout.dtype)
        work = dist.irecv(memory, device, tag=tag)
        return Arriving(work, memory.as_strided(layout.shape, layout.stride))

    def wait(self, arriving: Arriving) -> torch.Tensor:
        """The tensor, once it is there."""
        arriving.work.wait()
        return arriving.tensor

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

    def burn(self, op: Callable[..., Any], layouts: tuple[Any, Any]) -> None:
        """Draws the numbers that ``op`` draws on another device."""
        arguments, keywords = pytree.tree_map(_made, layouts)
        if op is torch.ops.aten.bernoulli.p:
            self.bernoulli(*arguments, **keywords)
        else:
            op(*arguments, **keywords)

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


def _image(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.numel() == 0:
        return tensor.new_empty(0)
    spans = zip(tensor.shape, tensor.stride(), strict=True)
    extent = 1 + sum((size - 1) * stride for size, stride in spans)
    return tensor.as_strided((extent,), (1,), tensor.storage_offset())


def _made(leaf: Any) -> Any:
    if not isinstance(leaf, Layout):
        return leaf
    return torch.empty_strided(leaf.shape, leaf.stride, dtype=leaf.dtype)


class _MallInfo(ctypes.Structure):
    """glibc's struct mallinfo2."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    ]


def _mallinfo() -> Callable[[], _MallInfo] | None:
    try:
        found = ctypes.CDLL(None).mallinfo2
    except AttributeError:  # glibc before 2.33
        return None
    found.restype = _MallInfo
    return found  # type: ignore[no-any-return]


_info = _mallinfo()


def bytes_in_use() -> int:
    """Bytes that this process has from malloc; 0 where the C library cannot say."""
    if _info is None:
        return 0
    info = _info()
    return int(info.uordblks + info.hblkhd)

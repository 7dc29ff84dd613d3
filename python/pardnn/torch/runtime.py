"""What a program calls besides torch's ops: messages, random numbers, gradients, new buffers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import nn

from pardnn.torch.calls import Layout
from pardnn.torch.skipping import skip_bernoulli
from pardnn.torch.sparse import sparse_of


class Arriving(NamedTuple):
    """A message that was asked for: its elements, in the order in which they lie in memory."""

    work: Any
    elements: torch.Tensor
    layout: Layout
    tag: int
    strides: tuple[Any, torch.Tensor] | None  # on their way, the first time


class Run:
    """One device's side of the steps: its parameters and buffers, and its messages.

    ``state``: tensors by name; those that are trained are nn.Parameters.
    """

    def __init__(self, state: dict[str, torch.Tensor]) -> None:
        self._state = state
        # Kernels choose the strides of their outputs by those of their inputs, so these must arrive
        # as they were; what the trace says is no promise, for some kernels choose others. They are
        # told with the first message of a tag and are the same in every step.
        self._told: dict[int, tuple[int, ...]] = {}
        self._known: dict[int, tuple[int, ...]] = {}
        self._later = torch.empty(0)
        self._sent: dict[int, list[tuple[Any, torch.Tensor]]] = {}

    def values(self) -> dict[str, torch.Tensor]:
        """What a program reads: tensors without gradients, in the same memory."""
        return {name: tensor.detach() for name, tensor in self._state.items()}

    def send(self, tensor: torch.Tensor, device: int, tag: int) -> None:
        """Begins to send a tensor, out of its own memory where that has no gaps."""
        stride = tensor.stride()
        messages = [_elements_of(tensor)]
        if tag not in self._told:
            self._told[tag] = stride
            messages.append(torch.tensor(stride, dtype=torch.int64))
        elif self._told[tag] != stride:
            raise RuntimeError(f"a kernel answers strides {stride}, before {self._told[tag]}")
        self._sent[tag] = [
            (dist.isend(message, device, tag=2 * tag + number), message)
            for number, message in enumerate(messages)
        ]

    def sent(self, tag: int) -> None:
        """Waits until what was sent under this tag has arrived, and forgets it."""
        for work, _ in self._sent.pop(tag):
            work.wait()

    def receive(self, layout: Layout, device: int, tag: int) -> Arriving:
        """Makes room for a message and asks for it."""
        count = math.prod(layout.shape)
        elements = torch.empty(count, dtype=layout.dtype)
        strides = None
        if tag not in self._known:
            told = torch.empty(len(layout.shape), dtype=torch.int64)
            strides = dist.irecv(told, device, tag=2 * tag + 1), told
        return Arriving(dist.irecv(elements, device, tag=2 * tag), elements, layout, tag, strides)

    def wait(self, arriving: Arriving) -> torch.Tensor:
        """The tensor, once it is there."""
        if arriving.strides is not None:
            work, told = arriving.strides
            work.wait()
            self._known[arriving.tag] = tuple(told.tolist())
        arriving.work.wait()
        return _tensor_of(arriving.elements, arriving.layout.shape, self._known[arriving.tag])

    def settle(self) -> None:
        """Waits until all that was sent has arrived."""
        for tag in list(self._sent):
            self.sent(tag)

    def copied(self, tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
        """A copy on a device of this process, with the same strides."""
        elements = _elements_of(tensor).to(device, non_blocking=True, copy=True)
        return _tensor_of(elements, tensor.shape, tensor.stride())

    def generator(self) -> torch.Tensor:
        """The state of torch's generator."""
        return torch.get_rng_state()

    def draw_again(self, state: torch.Tensor) -> None:
        """What is drawn next is what was drawn after that state, until `draw_on`."""
        self._later = torch.get_rng_state()
        torch.set_rng_state(state)

    def draw_on(self) -> None:
        """Random numbers are new again."""
        torch.set_rng_state(self._later)

    def bernoulli(self, like: torch.Tensor, p: float) -> torch.Tensor:
        """Draws in the order of memory, as dropout does outside of a functional graph."""
        return torch.empty_like(like).bernoulli_(p)

    def skip(self, like: Layout, p: float) -> None:
        """Moves the generator as `bernoulli` would."""
        skip_bernoulli(math.prod(like.shape), like.dtype, p)

    def made(self, layout: Layout) -> torch.Tensor:
        """A tensor of any values, for an op that only draws random numbers."""
        return torch.empty_strided(layout.shape, layout.stride, dtype=layout.dtype)

    def gradient(
        self, name: str, is_own: bool, gradient: torch.Tensor, indices: torch.Tensor | None = None
    ) -> None:
        """Adds to the gradient of a parameter, in the parameter's own strides; with ``indices`` it
        is sparse, and of this call alone.
        """
        parameter = self._state[name]
        assert isinstance(parameter, nn.Parameter)
        if indices is not None:
            values = gradient if is_own else gradient.clone()
            parameter.grad = sparse_of(indices, values, parameter.shape)
        elif parameter.grad is not None:
            parameter.grad.add_(gradient)
        elif is_own and gradient.stride() == parameter.stride():
            parameter.grad = gradient
        else:
            parameter.grad = torch.empty_like(parameter).copy_(gradient)

    def write(self, name: str, value: torch.Tensor) -> None:
        """A new value of a buffer."""
        self._state[name].copy_(value)


def _elements_of(tensor: torch.Tensor) -> torch.Tensor:
    """The elements as they lie in memory, in the same memory if it has no gaps."""
    return tensor.detach().permute(_memory_order(tensor.stride())).contiguous().flatten()


def _tensor_of(elements: torch.Tensor, shape: Sequence[int], stride: Sequence[int]) -> torch.Tensor:
    """The tensor of such elements, in the same memory where it has no gaps."""
    order = _memory_order(stride)
    lying = elements.view([shape[n] for n in order])
    tensor = lying.permute([order.index(n) for n in range(len(order))])
    if tensor.stride() == tuple(stride):
        return tensor
    # Expanded dimensions lie in memory once.
    once = [min(n, 1) if step == 0 else n for n, step in zip(shape, stride, strict=True)]
    tensor = tensor[tuple(slice(0, size) for size in once)]
    base = torch.empty_strided(once, stride, dtype=elements.dtype, device=elements.device)
    return base.copy_(tensor).as_strided(shape, stride)


def _memory_order(stride: Sequence[int]) -> list[int]:
    return sorted(range(len(stride)), key=lambda n: -stride[n])

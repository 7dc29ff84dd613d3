"""What a functional trace would lose: the strides of tensors that are updated in place, and random
numbers that are drawn again, as activation checkpointing does.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._subclasses.functional_tensor import FunctionalTensor, disable_functional_mode
from torch.fx.experimental.proxy_tensor import get_proxy_mode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from pardnn.errors import Refusal

aten = torch.ops.aten


# Their results do not depend on how their inputs lie in memory.
_EXACT = frozenset(
    {
        *(aten.add, aten.add_, aten.sub, aten.sub_, aten.mul, aten.mul_, aten.div, aten.div_),
        *(aten.neg, aten.clone, aten.cat, aten.stack, aten.sigmoid_backward, aten.tanh_backward),
    }
)
_SAME = frozenset({aten.detach, aten.alias})
_STRIDE = "pardnn_stride"


class StridesKept(TorchDispatchMode):
    """Gives what was updated in place the strides that it had, where kernels round by strides.

    A functional op answers a tensor without gaps in the place of one that had some, such as a part
    of a larger one; that is remembered, and made good for the ops that look at it.
    """

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        packet = func.overloadpacket
        if packet in _SAME:
            answer = func(*args, **kwargs)
            if (known := getattr(args[0], _STRIDE, None)) is not None:
                setattr(answer, _STRIDE, known)
            return answer
        target = args[0] if args and _is_in_place(func) else None
        stride = _stride_of(target) if isinstance(target, FunctionalTensor) else None
        if packet not in _EXACT or kwargs:
            if stride is not None:
                _replace(target, stride)
            args, kwargs = pytree.tree_map(_lying, (args, kwargs))
        answer = func(*args, **kwargs)
        if stride is not None:
            setattr(target, _STRIDE, stride)
        return answer


def _is_in_place(func: Any) -> bool:
    arguments = func._schema.arguments
    info = arguments[0].alias_info if arguments else None
    return info is not None and info.is_write and torch.Tag.inplace_view not in func.tags


def _stride_of(tensor: FunctionalTensor) -> tuple[int, ...]:
    """The strides that it would have if it were updated in place."""
    known: tuple[int, ...] = getattr(tensor, _STRIDE, None) or tensor.stride()
    return known


def _lying(value: Any) -> Any:
    """A tensor as it would lie in memory; anything else as it is."""
    stride = getattr(value, _STRIDE, None)
    if stride is None:
        return value
    torch._sync(value)
    return (
        value
        if torch._from_functional_tensor(value.elem).stride() == stride
        else _laid(value, stride)
    )


def _laid(tensor: torch.Tensor, stride: tuple[int, ...]) -> torch.Tensor:
    size = tuple(tensor.shape)
    extent = 1 + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    memory = aten.empty.memory_format([extent], dtype=tensor.dtype, device=tensor.device)
    filled = aten.as_strided_scatter.default(memory, tensor, size, stride, 0)
    laid: torch.Tensor = aten.as_strided.default(filled, size, stride, 0)
    return laid


def _replace(tensor: FunctionalTensor, stride: tuple[int, ...]) -> None:
    """Makes it lie so, before it is updated."""
    torch._sync(tensor)
    inner = torch._from_functional_tensor(tensor.elem)
    if inner.stride() == stride or inner.numel() == 0:
        return
    with disable_functional_mode():
        laid = _laid(inner, stride)
    torch._functionalize_replace(tensor.elem, laid)
    torch._functionalize_commit_update(tensor.elem)
    torch._functionalize_sync(tensor.elem)


class Draws(TorchDispatchMode):
    """Notes which random numbers are drawn once more, by the state of torch's generator.

    ``again``: of each such node of the trace, the node that drew them first.
    """

    def __init__(self) -> None:
        super().__init__()
        self.again: dict[torch.fx.Node, torch.fx.Node] = {}
        self._drawn: list[torch.fx.Node] = []
        self._position = 0
        self._states: dict[int, tuple[torch.Tensor, int]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if torch.Tag.nondeterministic_seeded not in func.tags:
            return func(*args, **(kwargs or {}))
        mode: Any = get_proxy_mode()
        graph = mode.tracer.graph
        before = graph._root.prev
        answer = func(*args, **(kwargs or {}))
        node = graph._root.prev
        while node is not before:
            if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
                self._note(node)
            node = node.prev
        return answer

    def _note(self, node: torch.fx.Node) -> None:
        if self._position == len(self._drawn):
            self._drawn.append(node)
        else:
            first = self._drawn[self._position]
            if _kind(first) != _kind(node):
                raise Refusal(f"{node.target}: other random numbers are drawn again than before")
            self.again[node] = self.again.get(first, first)
        self._position += 1

    def get_state(self) -> torch.Tensor:
        """What stands for the state of the generator."""
        token = torch.empty(0, dtype=torch.uint8)
        self._states[id(token)] = token, self._position
        return token

    def set_state(self, token: torch.Tensor) -> None:
        """Back to where ``token`` was given. Raises Refusal for any other state."""
        known = self._states.get(id(token))
        if known is None:
            raise Refusal("the state of the random generator is set by the model to one of its own")
        self._position = known[1]

    @contextlib.contextmanager
    def followed(self) -> Iterator[None]:
        """Within, the functions of torch that get and set the state do so here."""
        replaced: dict[str, Callable[..., Any]] = {
            "get_rng_state": self.get_state,
            "set_rng_state": self.set_state,
        }
        before = [(m, name, getattr(m, name)) for m in (torch, torch.random) for name in replaced]
        for module, name, _ in before:
            setattr(module, name, replaced[name])
        try:
            with self:
                yield
        finally:
            for module, name, original in before:
                setattr(module, name, original)


def _kind(node: torch.fx.Node) -> tuple[Any, ...]:
    value = node.meta.get("val")
    return node.target, getattr(value, "shape", None), getattr(value, "dtype", None)

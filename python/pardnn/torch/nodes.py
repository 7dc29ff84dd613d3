"""What a node of a trace is: which values it reads and answers, and whose memory they lie in."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch.utils import _pytree as pytree

from pardnn.errors import Refusal
from pardnn.torch import sparse
from pardnn.torch.tracing import Trace, is_random, values_of

aten = torch.ops.aten
# Views that their schemas do not call so.
_VIEWS = frozenset(
    {
        *(aten._unsafe_view.default, aten.lift_fresh.default, aten.lift_fresh_copy.default),
        *(aten.unsafe_split.Tensor, aten.unsafe_split_with_sizes.default),
        aten.unsafe_chunk.default,
    }
)
# Outputs whose size only oneDNN knows: what reads them is where they are.
_OF_UNKNOWN_SIZE = {aten.mkldnn_rnn_layer.default: 3}
# Outputs that are others once more, as kernels have it; traces may say otherwise.
_SAME = {(aten.mkldnn_rnn_layer_backward.default, 4): 3}
# Draw as many numbers as their values say: what others would have to draw is not known.
_VALUES_DECIDE = (
    *("multinomial", "poisson", "binomial", "_standard_gamma", "_sample_dirichlet"),
    "rrelu_with_noise",
)
# What has no inputs and is smaller is made on every device instead of being sent.
EVERYWHERE_BYTES = 64 * 1024


class Value(NamedTuple):
    """Output ``number`` of the op ``node``."""

    node: torch.fx.Node
    number: int


@dataclass(frozen=True)
class Op:
    """A node that computes.

    ``inputs``: values it reads, without repeats, in the order of its arguments. ``alias_of``: of
    each output the number of the input whose memory it lies in, None where it has its own.
    ``everywhere``: every device makes it for itself.
    """

    node: torch.fx.Node
    inputs: tuple[Value, ...]
    outputs: tuple[Any, ...]
    alias_of: tuple[int | None, ...]
    everywhere: bool

    @property
    def is_view(self) -> bool:
        """Whether it makes no memory at all."""
        return all(number is not None for number in self.alias_of)

    @cached_property
    def is_random(self) -> bool:
        """Whether it draws random numbers."""
        return is_random(self.node)


def is_sendable(value: Value) -> bool:
    """Whether a receiver can know how much room the value needs."""
    return unknown_output(value.node) != value.number


def unknown_output(node: torch.fx.Node) -> int | None:
    """The output of an op whose size no trace knows."""
    return _OF_UNKNOWN_SIZE.get(node.target)


def extent_bytes(tensor: torch.Tensor) -> int:
    """Bytes from the first to behind the last element, gaps included."""
    if tensor.numel() == 0:
        return 0
    span = sum(
        (size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True)
    )
    return (span + 1) * tensor.element_size()


def element_bytes(tensor: torch.Tensor) -> int:
    """Bytes of its elements alone: what has to be sent."""
    return tensor.numel() * tensor.element_size()


def value_of(node: torch.fx.Node) -> Value:
    """The value that a node stands for; `getitem` is an output of what it looks into."""
    if node.op == "call_function" and node.target is operator.getitem:
        source, number = node.args
        assert isinstance(source, torch.fx.Node) and isinstance(number, int)
        return Value(source, _SAME.get((source.target, number), number))
    return Value(node, 0)


def tensor_of(value: Value) -> Any:
    """The fake tensor of a value."""
    return values_of(value.node)[value.number]


def ops_of(trace: Trace) -> list[Op]:
    """The ops in the order in which the program runs them. Raises Refusal."""
    placeholders = trace.placeholders
    everywhere = set(placeholders[len(trace.parameters) + len(trace.buffers) :])
    everywhere.update(node for node in trace.module.graph.nodes if node.op == "get_attr")
    ops = []
    for node in trace.module.graph.nodes:
        if node.op != "call_function" or node.target in (operator.getitem, sparse.MAKE):
            continue
        if not isinstance(node.target, torch._ops.OpOverload):
            raise Refusal(f"{node.target}: an op of this kind cannot be placed yet")
        if is_random(node) and any(name in str(node.target) for name in _VALUES_DECIDE):
            raise Refusal(f"{node.target}: how many random numbers it draws depends on values")
        inputs = tuple(dict.fromkeys(value_of(read) for read in node.all_input_nodes))
        outputs = tuple(
            None if (node.target, number) in _SAME else tensor
            for number, tensor in enumerate(values_of(node))
        )
        alias_of = tuple(_alias_of(node, inputs, number) for number in range(len(outputs)))
        size = sum(extent_bytes(t) for t in outputs if isinstance(t, torch.Tensor))
        cheap = all(a is not None for a in alias_of) or size < EVERYWHERE_BYTES
        on_all = all(v.node in everywhere for v in inputs) and cheap and not is_random(node)
        if on_all:
            everywhere.add(node)
        ops.append(Op(node, inputs, outputs, alias_of, on_all))
    return ops


def _alias_of(node: torch.fx.Node, inputs: tuple[Value, ...], number: int) -> int | None:
    """The input in whose memory output ``number`` lies."""
    schema = node.target._schema
    returned = schema.returns[min(number, len(schema.returns) - 1)].alias_info
    if returned is None or returned.is_write:
        if node.target not in _VIEWS or not inputs:
            return None
        return 0
    for argument, value in zip(schema.arguments, node.args, strict=False):
        if argument.alias_info is None or not isinstance(value, torch.fx.Node):
            continue
        is_list = "*" in argument.alias_info.after_set  # whose tensors all look into it
        if is_list or argument.alias_info.before_set & returned.before_set:
            return inputs.index(value_of(value))
    return None


def map_nodes(arguments: Any, change: Any) -> Any:
    """The arguments with each node replaced."""
    return pytree.tree_map(
        lambda leaf: change(leaf) if isinstance(leaf, torch.fx.Node) else leaf, arguments
    )

"""Whose memory values lie in, and how parameters get their gradients."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pardnn.torch.nodes import Op, Value, tensor_of, value_of
from pardnn.torch.tracing import Trace


@dataclass(frozen=True)
class Gradient:
    """How a parameter gets its gradient from a value of the trace.

    ``is_own``: nothing else lies in that memory, so that it is handed over as it is; else copied.
    """

    parameter: str
    value: Value
    is_own: bool


def roots_of(ops: Sequence[Op]) -> dict[Value, Value]:
    """Of each output of an op the value in whose memory it lies: itself, or where it looks into."""
    root: dict[Value, Value] = {}
    for op in ops:
        for number, alias in enumerate(op.alias_of):
            value = Value(op.node, number)
            looked_into = value if alias is None else op.inputs[alias]
            root[value] = root.get(looked_into, looked_into)
    return root


def gradients_of(trace: Trace, ops: Sequence[Op], root: Mapping[Value, Value]) -> list[Gradient]:
    """Of each trained parameter that the loss depends on, in the optimizer's order."""
    values = {
        name: value_of(node)
        for name, node in zip(trace.trained, trace.outputs[1:], strict=False)
        if node is not None
    }
    names = [*trace.parameters, *trace.buffers]
    state = dict(zip(names, trace.placeholders, strict=False))
    made = {
        Value(op.node, number)
        for op in ops
        if not op.everywhere
        for number in range(len(op.outputs))
    }
    count = Counter(root.get(value, value) for value in values.values())

    def is_own(name: str, value: Value) -> bool:
        memory = root.get(value, value)
        like = tensor_of(Value(state[name], 0))
        is_alone = memory in made and count[memory] == 1
        return is_alone and bool(tensor_of(value).stride() == like.stride())

    return [Gradient(name, value, is_own(name, value)) for name, value in values.items()]

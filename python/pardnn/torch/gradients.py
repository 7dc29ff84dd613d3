"""Whose memory values lie in, and how parameters get their gradients."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from pardnn.torch import sparse
from pardnn.torch.nodes import Op, Value, tensor_of, value_of
from pardnn.torch.tracing import Trace


@dataclass(frozen=True)
class Gradient:
    """How a parameter gets its gradient from a value of the trace.

    ``is_own``: nothing else lies in that memory, so that it is handed over as it is; else copied.
    ``indices``: of a sparse one, whose ``value`` are its values.
    """

    parameter: str
    value: Value
    is_own: bool
    indices: Value | None = None

    @property
    def reads(self) -> tuple[Value, ...]:
        """The values that are read for it."""
        return (self.value,) if self.indices is None else (self.value, self.indices)


def roots_of(ops: Sequence[Op]) -> dict[Value, Value]:
    """Of each output of an op the value in whose memory it lies: itself, or where it looks into."""
    root: dict[Value, Value] = {}
    for op in ops:
        for number, alias in enumerate(op.alias_of):
            value = Value(op.node, number)
            looked_into = value if alias is None else op.inputs[alias]
            root[value] = root.get(looked_into, looked_into)
    return root


def _sparse_of(trace: Trace) -> dict[str, tuple[torch.fx.Node, torch.fx.Node]]:
    """The indices and values of each sparse gradient, by parameter."""
    found = {}
    for name, node in zip(trace.trained, trace.outputs[1:], strict=False):
        if node is not None and node.target is sparse.MAKE:
            indices, values = node.args[3:5]
            found[name] = indices, values
    return found


def gradient_rows(trace: Trace) -> dict[str, int | None]:
    """Of each parameter that has a gradient: how many rows that has if it is sparse."""
    of_sparse = {name: len(tensor_of(value_of(v))) for name, (_, v) in _sparse_of(trace).items()}
    outputs = zip(trace.trained, trace.outputs[1:], strict=False)
    return {name: of_sparse.get(name) for name, node in outputs if node is not None}


def gradients_of(trace: Trace, ops: Sequence[Op], root: Mapping[Value, Value]) -> list[Gradient]:
    """Of each trained parameter that the loss depends on, in the optimizer's order."""
    outputs = dict(zip(trace.trained, trace.outputs[1:], strict=False))
    made_sparse = _sparse_of(trace)
    indices_of = {name: value_of(indices) for name, (indices, _) in made_sparse.items()}
    values = {
        name: value_of(made_sparse[name][1] if name in made_sparse else node)
        for name, node in outputs.items()
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
        has_strides = name in indices_of or tensor_of(value).stride() == like.stride()
        return is_alone and bool(has_strides)

    return [
        Gradient(name, value, is_own(name, value), indices_of.get(name))
        for name, value in values.items()
    ]

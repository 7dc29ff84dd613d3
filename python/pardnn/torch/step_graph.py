"""A trace as the planner sees it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import torch

import pardnn
from pardnn.torch.costs import Cost
from pardnn.torch.gradients import Gradient, gradients_of, roots_of
from pardnn.torch.nodes import (
    Op,
    Value,
    element_bytes,
    extent_bytes,
    is_sendable,
    ops_of,
    tensor_of,
    unknown_output,
    value_of,
)
from pardnn.torch.optimizers import Update
from pardnn.torch.tracing import Trace

# What handing a gradient over and copying a byte take.
_CALL_NS, _COPY_NS_A_BYTE = 1_000, 0.2


Item: TypeAlias = torch.fx.Node | Op | Gradient | str


@dataclass
class StepGraph:
    """A step's graph and the way back: keys of the ops, of the reads, of the variables.

    ``ops``: of the trace. ``order``: all that workers do in one step: reads of parameters and
    buffers by their nodes, ops, gradients handed over, buffers written to, by their names.
    """

    graph: pardnn.Graph
    ops: list[Op]
    trace: Trace
    order: list[Item]


def key_of(node: torch.fx.Node) -> str:
    """Of an op, of the read of a parameter or buffer."""
    return pardnn.escape_key(node.name)


def key_of_item(item: Item) -> str:
    """Of whatever stands in a step's order."""
    if isinstance(item, Gradient):
        return gradient_key(item.parameter)
    if isinstance(item, str):
        return write_key(item)
    return key_of(item.node if isinstance(item, Op) else item)


def gradient_key(parameter: str) -> str:
    """Of the op that gives a parameter its gradient."""
    return pardnn.escape_key(f"gradient/{parameter}")


def write_key(buffer: str) -> str:
    """Of the op that gives a buffer its new value."""
    return pardnn.escape_key(f"write/{buffer}")


def variable_key(name: str) -> str:
    """Of a parameter or buffer."""
    return pardnn.escape_key(f"var/{name}")


class _Groups:
    """Ops that must be together: whoever looks into a tensor's memory is where that lies."""

    def __init__(self) -> None:
        self._parent: dict[torch.fx.Node, torch.fx.Node] = {}

    def root(self, node: torch.fx.Node) -> torch.fx.Node:
        while (parent := self._parent.get(node, node)) is not node:
            node = parent
        return node

    def join(self, node: torch.fx.Node, other: torch.fx.Node) -> None:
        first, second = self.root(node), self.root(other)
        self._parent[second] = first
        self._parent.setdefault(first, first)

    def name(self, node: torch.fx.Node) -> str | None:
        return None if node not in self._parent else key_of(self.root(node))


class _Builder:
    def __init__(
        self,
        trace: Trace,
        ops: list[Op],
        costs: Mapping[torch.fx.Node, Cost],
        accumulates: bool,
    ) -> None:
        self.graph = pardnn.Graph(about={"framework": "torch"})
        self._trace = trace
        self._ops = ops
        self._costs = costs
        self._accumulates = accumulates
        root = roots_of(ops)
        self._gradients = gradients_of(trace, ops, root)
        self._gradient_of = {gradient.parameter: gradient for gradient in self._gradients}
        self._on_all = {op.node for op in ops if op.everywhere}
        # Whoever reads the memory of a parameter or buffer does so before it is written to.
        self._readers: dict[torch.fx.Node, dict[str, None]] = {}
        for op in ops:
            for value in op.inputs:
                readers = self._readers.setdefault(root.get(value, value).node, {})
                readers.update({} if op.everywhere else {key_of(op.node): None})
        self.order: list[Item] = []
        self._groups = _Groups()
        self._order = itertools.count()
        placeholders = trace.placeholders
        names = [*trace.parameters, *trace.buffers]
        self._state = dict(zip(names, placeholders, strict=False))
        self._batch = placeholders[len(names) :]
        for op in ops:
            for number in op.alias_of:
                if number is not None and not op.everywhere:
                    self._groups.join(op.inputs[number].node, op.node)
            for value in op.inputs:
                if not is_sendable(value):
                    self._groups.join(value.node, op.node)
        for node in self._state.values():
            self._groups.join(node, node)

    def build(self, updates: Sequence[Update]) -> None:
        for number, node in enumerate(self._batch):
            self._everywhere(node, f"input {number}")
        for node in self._trace.module.graph.nodes:
            if node.op == "get_attr":
                self._everywhere(node, str(node.target))
        for name, node in self._state.items():
            self._variable(name, node)
        self._compute()
        given = {item for item in self.order if isinstance(item, Gradient)}
        for gradient in self._gradients:
            if gradient not in given:
                self._gradient(gradient)
        self._write_buffers()
        for update in updates:
            self._update(update)
        for gradient in self._gradients:
            if not self._accumulates:
                self._release(gradient.parameter)

    def _everywhere(self, node: torch.fx.Node, name: str) -> None:
        size = extent_bytes(tensor_of(Value(node, 0)))
        self.graph.op(key_of(node), "Input", 0, outputs=[size], every=True, name=name)

    def _variable(self, name: str, node: torch.fx.Node) -> None:
        size = extent_bytes(tensor_of(Value(node, 0)))
        group = self._groups.name(node)
        self.order.append(node)
        self.graph.var(variable_key(name), size, group=group, name=name)
        self.graph.op(
            key_of(node),
            "Read",
            0,
            [variable_key(name)],
            ["=0"],
            group=group,
            at=next(self._order),
            name=name,
        )

    def _compute(self) -> None:
        loss = self._trace.outputs[0]
        phase = "f"
        copied: dict[torch.fx.Node, list[Gradient]] = {}
        position = {op.node: number for number, op in enumerate(self._ops)}
        for gradient in filter(self._is_copied, self._gradients):
            last = max((value.node for value in gradient.reads), key=lambda n: position.get(n, -1))
            copied.setdefault(last, []).append(gradient)
        for op in self._ops:
            self.order.append(op)
            outputs = []
            cost = self._costs[op.node]
            for number, tensor in enumerate(op.outputs):
                if not isinstance(tensor, torch.Tensor):
                    outputs.append("0")
                elif number == unknown_output(op.node):
                    outputs.append(str(cost.unknown_bytes))
                elif (alias := op.alias_of[number]) is None:
                    outputs.append(str(extent_bytes(tensor)))
                else:
                    outputs.append(f"={alias}/{element_bytes(tensor)}")
            self.graph.op(
                key_of(op.node),
                str(op.node.target),
                cost.ns,
                [self._input(value) for value in op.inputs],
                outputs,
                group=None if op.everywhere else self._groups.name(op.node),
                every=op.everywhere,
                workspace=0 if op.everywhere else cost.workspace,
                phase=phase,
                at=None if op.everywhere else next(self._order),
            )
            for gradient in copied.get(op.node, ()):
                self._gradient(gradient)
            if op.node is value_of(loss).node:
                phase = "b"

    def _input(self, value: Value) -> str:
        return f"{key_of(value.node)}:{value.number}" if value.number else key_of(value.node)

    def _is_copied(self, gradient: Gradient) -> bool:
        """Whether its value can go once the parameter has the gradient: that is done at once."""
        return self._accumulates or not gradient.is_own

    def _gradient(self, gradient: Gradient) -> None:
        """A parameter gets its gradient."""
        self.order.append(gradient)
        node = self._state[gradient.parameter]
        size = extent_bytes(tensor_of(Value(node, 0)))
        inputs, outputs = [self._input(value) for value in gradient.reads], ["=0"]
        if gradient.indices is not None:
            size = extent_bytes(tensor_of(gradient.value))
            outputs = ["=0" if gradient.is_own else str(size)]
            if gradient.indices.node not in self._on_all:
                outputs.append("=1")
        elif self._accumulates:
            variable = pardnn.escape_key(f"grad/{gradient.parameter}")
            self.graph.var(variable, size, group=self._groups.name(node))
            inputs, outputs = [f"!{variable}", *inputs], ["=0"]
        elif not gradient.is_own:
            outputs = [str(size)]
        copying = self._is_copied(gradient)
        self.graph.op(
            gradient_key(gradient.parameter),
            "Gradient",
            _CALL_NS + (int(size * _COPY_NS_A_BYTE) if copying else 0),
            inputs,
            outputs,
            group=self._groups.name(node),
            phase="b",
            at=next(self._order),
        )

    def _given(self, name: str) -> list[str]:
        """What a parameter has got for a gradient."""
        indices = self._gradient_of[name].indices
        is_kept = indices is not None and indices.node not in self._on_all
        key = gradient_key(name)
        return [key, f"{key}:1"] if is_kept else [key]

    def _write_buffers(self) -> None:
        gradients = len(self._trace.trained)
        news = self._trace.outputs[1 + gradients :]
        for name, new in zip(self._trace.buffers, news, strict=True):
            node = self._state[name]
            if value_of(new).node is node:
                continue
            self.order.append(name)
            self.graph.op(
                write_key(name),
                "Write",
                _CALL_NS,
                [f"!{variable_key(name)}", self._input(value_of(new)), *self._after_reads(node)],
                group=self._groups.name(node),
                phase="u",
                at=next(self._order),
            )

    def _after_reads(self, node: torch.fx.Node) -> list[str]:
        """Control edges from all that read this memory, which is written to."""
        return [f"^{key}" for key in (key_of(node), *self._readers.get(node, ()))]

    def _update(self, update: Update) -> None:
        name = update.parameter
        node = self._state[name]
        if name not in self._gradient_of:
            return
        group = self._groups.name(node)
        held = [f"!{variable_key(name)}"]
        for number, size in enumerate(update.state_bytes):
            key = pardnn.escape_key(f"state/{name}/{number}")
            self.graph.var(key, size, group=group)
            held.append(f"!{key}")
        self.graph.op(
            pardnn.escape_key(f"update/{name}"),
            "Update",
            update.cost_ns,
            [*held, *self._given(name), *self._after_reads(node)],
            group=group,
            workspace=update.workspace_bytes,
            phase="u",
            at=next(self._order),
        )

    def _release(self, name: str) -> None:
        """A gradient stays until all updates of its device are done."""
        self.graph.op(
            pardnn.escape_key(f"release/{name}"),
            "Release",
            0,
            self._given(name),
            group=self._groups.name(self._state[name]),
            phase="u",
            at=next(self._order),
        )


def step_graph(
    trace: Trace,
    costs: Mapping[torch.fx.Node, Cost],
    updates: Sequence[Update],
    ops: list[Op] | None = None,
    accumulates: bool = False,
) -> StepGraph:
    """The planner's graph of a step: forward, backward, new buffers, updates.

    ``costs``: of each op's node. ``updates``: one for each trained parameter. ``accumulates``:
    gradients are added up over several steps. Ops carry the program's order (`at`), in which all
    devices run them.
    """
    ops = ops_of(trace) if ops is None else ops
    builder = _Builder(trace, ops, costs, accumulates)
    builder.build(updates)
    return StepGraph(builder.graph, ops, trace, builder.order)

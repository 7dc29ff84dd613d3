"""A trace as the planner sees it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

import pardnn
from pardnn.torch.nodes import (
    Op,
    Value,
    element_bytes,
    extent_bytes,
    is_sendable,
    ops_of,
    tensor_of,
    value_of,
)
from pardnn.torch.optimizers import Update
from pardnn.torch.tracing import Trace

_BACKWARD_DONE = "pardnn_backward_done"
_UPDATES_DONE = "pardnn_updates_done"


@dataclass
class StepGraph:
    """A step's graph and the way back: keys of the ops, of the reads, of the variables."""

    graph: pardnn.Graph
    ops: list[Op]
    trace: Trace

    def device_of(self, devices: Mapping[str, str], node: torch.fx.Node) -> str | None:
        """The device of an op or of a parameter's or buffer's placeholder; None: everywhere."""
        return devices.get(_key(node))


def _key(node: torch.fx.Node) -> str:
    return pardnn.escape_key(node.name)


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
        return None if node not in self._parent else _key(self.root(node))


class _Builder:
    def __init__(self, trace: Trace, ops: list[Op], cost_ns: Mapping[torch.fx.Node, int]) -> None:
        self.graph = pardnn.Graph(about={"framework": "torch"})
        self._trace = trace
        self._ops = ops
        self._cost_ns = cost_ns
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
        last = self._compute()
        self._graph_end(updates, last)

    def _everywhere(self, node: torch.fx.Node, name: str) -> None:
        size = extent_bytes(tensor_of(Value(node, 0)))
        self.graph.op(_key(node), "Input", 0, outputs=[size], every=True, name=name)

    def _variable(self, name: str, node: torch.fx.Node) -> None:
        size = extent_bytes(tensor_of(Value(node, 0)))
        group = self._groups.name(node)
        self.graph.var(variable_key(name), size, group=group, name=name)
        self.graph.op(
            _key(node),
            "Read",
            0,
            [variable_key(name)],
            ["=0"],
            group=group,
            at=next(self._order),
            name=name,
        )

    def _compute(self) -> list[str]:
        """All ops; answers the keys of those that nothing reads."""
        loss = self._trace.outputs[0]
        phase = "f"
        unread: dict[str, None] = {}
        for op in self._ops:
            outputs = []
            for number, tensor in enumerate(op.outputs):
                if not isinstance(tensor, torch.Tensor):
                    outputs.append("0")
                elif (alias := op.alias_of[number]) is None:
                    outputs.append(str(extent_bytes(tensor)))
                else:
                    outputs.append(f"={alias}/{element_bytes(tensor)}")
            inputs = [self._input(value) for value in op.inputs]
            for value in op.inputs:
                unread.pop(_key(value.node), None)
            self.graph.op(
                _key(op.node),
                str(op.node.target),
                self._cost_ns[op.node],
                inputs,
                outputs,
                group=None if op.everywhere else self._groups.name(op.node),
                every=op.everywhere,
                phase=phase,
                at=None if op.everywhere else next(self._order),
            )
            if not op.everywhere:
                unread[_key(op.node)] = None
            if op.node is value_of(loss).node:
                phase = "b"
        return list(unread)

    def _input(self, value: Value) -> str:
        return f"{_key(value.node)}:{value.number}" if value.number else _key(value.node)

    def _graph_end(self, updates: Sequence[Update], last: list[str]) -> None:
        """New buffers, then the optimizer's updates; gradients stay until the last of them."""
        ready = [f"^{key}" for key in last]
        self.graph.op(_BACKWARD_DONE, "Barrier", 0, ready, phase="u", at=next(self._order))
        outputs = self._trace.outputs
        gradients = dict(zip(self._trace.trained, outputs[1:], strict=False))
        ends = []
        for name, new in zip(self._trace.buffers, outputs[1 + len(gradients) :], strict=True):
            if value_of(new).node is self._state[name]:
                continue
            key = pardnn.escape_key(f"write/{name}")
            self.graph.op(
                key,
                "Write",
                1000,
                [
                    f"!{variable_key(name)}",
                    self._input(value_of(new)),
                    f"^{_key(self._state[name])}",  # nothing else may read it
                    f"^{_BACKWARD_DONE}",
                ],
                group=self._groups.name(self._state[name]),
                phase="u",
                at=next(self._order),
            )
            ends.append(key)
        releases = []
        for update in updates:
            gradient = gradients[update.parameter]
            if gradient is None:
                continue
            key = self._update(update, value_of(gradient))
            ends.append(key)
            releases.append((update.parameter, value_of(gradient)))
        done = [f"^{key}" for key in ends]
        self.graph.op(_UPDATES_DONE, "Barrier", 0, done, phase="u", at=next(self._order))
        for name, gradient in releases:
            self.graph.op(
                pardnn.escape_key(f"release/{name}"),
                "Release",
                0,
                [self._input(gradient), f"^{_UPDATES_DONE}"],
                group=self._groups.name(self._state[name]),
                phase="u",
                at=next(self._order),
            )

    def _update(self, update: Update, gradient: Value) -> str:
        name = update.parameter
        group = self._groups.name(self._state[name])
        held = [f"!{variable_key(name)}"]
        for number, size in enumerate(update.state_bytes):
            key = pardnn.escape_key(f"state/{name}/{number}")
            self.graph.var(key, size, group=group)
            held.append(f"!{key}")
        key = pardnn.escape_key(f"update/{name}")
        self.graph.op(
            key,
            "Update",
            update.cost_ns,
            [*held, self._input(gradient), f"^{_BACKWARD_DONE}"],
            group=group,
            workspace=update.workspace_bytes,
            phase="u",
            at=next(self._order),
        )
        return key


def step_graph(
    trace: Trace,
    cost_ns: Mapping[torch.fx.Node, int],
    updates: Sequence[Update],
    ops: list[Op] | None = None,
) -> StepGraph:
    """The planner's graph of a step: forward, backward, new buffers, updates.

    ``cost_ns``: of each op's node. ``updates``: one for each trained parameter. Ops carry the
    program's order (`at`), in which all devices run them.
    """
    ops = ops_of(trace) if ops is None else ops
    builder = _Builder(trace, ops, cost_ns)
    builder.build(updates)
    return StepGraph(builder.graph, ops, trace)

"""A rebuilt step becomes a `pardnn.Graph` that says what TensorFlow really does with memory.

How nodes are stated:

* A constant, a batch input, and anything small computed from those alone is an `every` op, or no op
  at all where its value is known now: each device has its own.
* A chain of scalars behind a variable (a learning rate, Adam's bias corrections) is no op either.
  Its readers read the variable's read op instead: that one tensor is what a device is sent, and the
  chain is computed again on each device. Stating the chain's ops would either bind them to one
  device or predict a transfer for every one of their results.
* A read of a large variable is an alias of it; every op that reads the alias must then come before
  the update, or TensorFlow copies the variable first. Where the step does not say so, an edge is
  added. A read of a small variable is stated as a copy of its few bytes, so that no such edges are
  needed: TensorFlow's copy costs no more.
* A while loop is one op; loops that share tensor lists, and the variables they touch, are a group.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import tensorflow as tf

from pardnn.tensorflow import compat, order, semantics
from pardnn.tensorflow.branches import branches_of
from pardnn.tensorflow.grouping import Grouping
from pardnn.tensorflow.kinds import Kinds
from pardnn.tensorflow.loops import Region, regions_of
from pardnn.tensorflow.semantics import Touch
from pardnn.tensorflow.shared_buffers import SharedBuffers
from pardnn.tensorflow.step_graph import LARGE_BYTES, StepGraph
from pardnn.tensorflow.tracing import Capture

_LOG = logging.getLogger(__name__)


class Costs(Protocol):
    """Times and workspace of ops; see `costs.CostTable`."""

    def cost(self, op: Any) -> tuple[int, int, str]:
        """Nanoseconds, workspace bytes, and where they come from."""
        ...


@dataclass
class _Op:
    """One op before it is handed to the builder."""

    node: tf.Operation
    inputs: list[str] = field(default_factory=list)
    controls: list[str] = field(default_factory=list)
    outputs: list[str | int] = field(default_factory=list)
    index_of: dict[int, int] = field(default_factory=dict)
    """Position among the node's inputs -> position among the op's."""
    updates: list[str] = field(default_factory=list)
    cost_ns: int = 0
    workspace: int = 0
    every: bool = False


def translate(
    graph: Any,
    capture: Capture,
    costs: Costs,
    *,
    granularity: int = 1,
    pins: Mapping[str, str] | None = None,
    fixed: Collection[int] | None = None,
    builder: Any = None,
) -> StepGraph:
    """State `graph`, the unplaced step of `capture` with static shapes, as a graph to plan.

    `pins` maps TensorFlow device strings to the machine's device names: given, every variable stays
    on the device where it is now, or those whose id is in `fixed`. `granularity` is the
    allocator's, in bytes. `builder` makes the empty graph and is `pardnn.Graph` by default.
    """
    if builder is None:
        import pardnn

        builder = pardnn.Graph
    return _Translation(graph, capture, costs, granularity).run(builder, pins or {}, fixed)


class _Translation:
    """The state of one translation; `run` does the steps in order."""

    def __init__(self, graph: Any, capture: Capture, costs: Costs, granularity: int) -> None:
        self._costs, self._granularity = costs, granularity
        self._regions = regions_of(graph)
        self._statics = self._regions.statics
        self._results = {t.name for t in graph.outputs}
        self._branches = branches_of(capture.graph_def.node)
        self._kinds = Kinds(graph, self._statics, capture.host, self._branches)
        self._nodes = self._kinds.needed()
        self._buffers = SharedBuffers(self._nodes, self._regions)
        self._grouping = Grouping(graph, capture, self._regions)
        self._ops: dict[str, _Op] = {}
        self._list_bytes: dict[str, int] = {}
        self._values: dict[str, Any] = {}
        self._takers: dict[str, list[tuple[str, int]]] = {}
        self._taken_from: dict[str, list[str]] = {}
        self._assigned: dict[str, tuple[str, str]] = {}

    def run(
        self, builder: Any, pins: Mapping[str, str], fixed: Collection[int] | None = None
    ) -> StepGraph:
        for node in self._nodes:
            self._note_values(node)
            if self._kinds.of[node.name] in ("op", "every"):
                self._state(node)
        ordered = order.reads_before_updates(self._accesses(), self._edges())
        self._apply(ordered)
        graph = builder(kinds=("cpu",), about={"source": "tensorflow"})
        self._grouping.state(graph, pins, fixed)
        self._emit(graph)
        return self._result(graph, ordered.added)

    # --- one op ----------------------------------------------------------------------------------

    def _state(self, node: tf.Operation) -> None:
        op = self._ops[node.name] = _Op(node, every=self._kinds.of[node.name] == "every")
        region = self._regions.of(node) if node.type in compat.FUNCTIONAL_OPS else None
        kept = self._kept_input(node)
        for position, tensor in enumerate(node.inputs):
            if kept in (None, position):
                self._state_input(op, position, tensor, region)
            else:
                self._state_control(op, tensor.op)
        for control in node.control_inputs:
            self._state_control(op, control)
        if not op.every:
            op.cost_ns, op.workspace, _ = self._costs.cost(node)
        self._state_outputs(op, region)
        if node.type == "AssignVariableOp" and op.updates:
            self._assigned[node.name] = op.updates[0], self._buffers.root(node.inputs[1])

    def _kept_input(self, node: tf.Operation) -> int | None:
        """The one branch whose result a Merge is stated to read: the largest.

        Only one branch runs, so only one result waits for the Merge; the planner, which runs both,
        is told to drop the other.
        """
        if node.type not in compat.JOINS:
            return None
        return max(range(len(node.inputs)), key=lambda n: self._statics.bytes(node.inputs[n]))

    def _note_values(self, node: tf.Operation) -> None:
        if self._kinds.of[node.name] != "known":
            for tensor in node.inputs:
                if self._kinds.of[tensor.op.name] == "known":
                    self._values[tensor.name] = self._statics.value(tensor)

    def _state_input(
        self, op: _Op, position: int, tensor: tf.Tensor, region: Region | None
    ) -> None:
        variable = self._grouping.variable_behind(tensor)
        if variable is not None:
            self._state_touch(op, variable, position, region)
            if self._kinds.of[tensor.op.name] == "op":
                # A handle that comes out of an op (a loop, a branch) is there when the op is done.
                self._state_control(op, tensor.op)
            return
        kind = self._kinds.of[tensor.op.name]
        if kind == "scalar":
            for read in self._kinds.scalars[tensor.op.name]:
                if read not in op.inputs:
                    op.inputs.append(read)
        elif kind in ("op", "every"):
            op.index_of[position] = len(op.inputs)
            op.inputs.append(_reference(tensor))

    def _state_touch(self, op: _Op, variable: str, position: int, region: Region | None) -> None:
        touch = semantics.touch(op.node.type)
        if op.node.type in semantics.ALIAS | compat.SPLITS:
            touch = Touch.LOOK
        if region is not None:
            touch = region.touches.get(position, Touch.LOOK)
        mark = "!" if touch == Touch.UPDATE else ""
        if mark and variable not in op.updates:
            op.updates.append(variable)
            if variable in op.inputs:
                op.inputs[op.inputs.index(variable)] = mark + variable
        if variable not in op.inputs and mark + variable not in op.inputs:
            op.index_of[position] = len(op.inputs)
            op.inputs.append(mark + variable)

    def _state_control(self, op: _Op, control: tf.Operation) -> None:
        kind = self._kinds.of[control.name]
        befores = self._kinds.scalars[control.name] if kind == "scalar" else [control.name]
        if kind in ("op", "scalar"):
            op.controls += [name for name in befores if name not in op.controls]

    def _state_outputs(self, op: _Op, region: Region | None) -> None:
        node = op.node
        if node.type == "ReadVariableOp":
            op.outputs = [self._read_output(op)]
        else:
            taken: set[int] = set()
            for number, (tensor, source) in enumerate(
                zip(node.outputs, self._buffers.sources(node), strict=True)
            ):
                op.outputs.append(self._output(op, tensor, source, number, region, taken))
        for number, tensor in enumerate(node.outputs):
            if tensor.name in self._results and not op.every:
                op.outputs[number] = f"{op.outputs[number]}*"

    def _read_output(self, op: _Op) -> str | int:
        """A large variable is read in place; a small one, or one updated in part, as a copy."""
        tensor = op.node.outputs[0]
        variable = op.inputs[0].lstrip("!") if op.inputs else ""
        size = self._statics.bytes(tensor)
        in_place = size >= LARGE_BYTES and variable not in self._grouping.copied_on_read
        return "=0" if in_place else size

    def _output(
        self,
        op: _Op,
        tensor: tf.Tensor,
        source: semantics.Source,
        number: int,
        region: Region | None,
        taken: set[int],
    ) -> str | int:
        size = self._bytes(op.node, tensor, number, region)
        if source.alias in op.index_of and source.alias is not None:
            given = op.node.inputs[source.alias]
            index = op.index_of[source.alias]
            if tensor.dtype == tf.variant:
                self._list_bytes[tensor.name] = size
            held = self._list_bytes.get(given.name, self._statics.bytes(given))
            return f"={index}" if held == size else f"={index}/{size}"
        if tensor.dtype == tf.variant:
            self._list_bytes[tensor.name] = size
        choices = self._taken_over(op, source, size, taken)
        if not choices:
            return size
        choice = choices[0]
        taken.add(choice)
        for name in self._buffers.names_of(op.node.inputs[choice]):
            self._takers.setdefault(name, []).append((op.node.name, number))
        self._taken_from[tensor.name] = [self._buffers.root(op.node.inputs[n]) for n in choices]
        return f"{size}~{op.index_of[choice]}"

    def _taken_over(
        self, op: _Op, source: semantics.Source, size: int, taken: set[int]
    ) -> list[int]:
        """Inputs whose buffer the output may take over, the likeliest first: one that nobody else
        reads.
        """
        if size < self._granularity:
            return []
        found: list[tuple[int, int]] = []
        for index in source.takes:
            root = self._buffers.root(op.node.inputs[index])
            owner = self._ops.get(_key(root))
            if index in taken or index not in op.index_of or owner is None:
                continue
            if not owner.every and self._owns(owner):
                found.append((len(self._buffers.readers(root)), index))
        return [index for _, index in sorted(found, key=lambda choice: choice[0])]

    def _owns(self, op: _Op) -> bool:
        """Whether the result of `op` is its own: a read of a variable is not, unless it copies."""
        return op.node.type != "ReadVariableOp" or op.inputs[0] in self._grouping.copied_on_read

    def _bytes(
        self, node: tf.Operation, tensor: tf.Tensor, number: int, region: Region | None
    ) -> int:
        if region is not None and number in region.saved_bytes:
            return region.saved_bytes[number]
        size = self._statics.bytes(tensor)
        if tensor.dtype != tf.variant:
            return size
        if node.type == "TensorListFromTensor":
            return size + self._statics.bytes(node.inputs[0])
        if node.type in ("TensorListPushBack", "TensorListSetItem"):
            item = node.inputs[1 if node.type == "TensorListPushBack" else 2]
            size += self._statics.bytes(item)
        held = [self._list_bytes.get(t.name, 0) for t in node.inputs if t.dtype == tf.variant]
        return max([size, *held])

    # --- reads and updates -----------------------------------------------------------------------

    def _edges(self) -> dict[str, list[str]]:
        """Ops before each op, in topological order of the keys."""
        return {
            key: [*(_key(i) for i in op.inputs if _key(i) in self._ops), *op.controls]
            for key, op in self._ops.items()
        }

    def _accesses(self) -> list[order.Access]:
        """Every op that touches a variable, or reads a tensor that lives in its buffer."""
        accesses = []
        owner: dict[str, tuple[str, str]] = {}
        for key, op in self._ops.items():
            touched = [
                i.lstrip("!") for i in op.inputs if i.lstrip("!") in self._grouping.variables
            ]
            for variable in touched:
                accesses.append(order.Access(key, variable, variable in op.updates, None))
            for reference in op.inputs:
                if reference in owner:
                    accesses.append(order.Access(key, *_read(owner[reference])))
            for number, text in enumerate(op.outputs):
                alias = str(text).rstrip("*")
                if not alias.startswith("="):
                    continue
                source = op.inputs[int(alias[1:].partition("/")[0])]
                name = f"{key}:{number}" if number else key
                if source.lstrip("!") in self._grouping.variables:
                    owner[name] = (source.lstrip("!"), key)
                elif source in owner:
                    owner[name] = owner[source]
        return accesses

    def _apply(self, ordered: order.Ordered) -> None:
        for before, after in ordered.added:
            self._ops[after].controls.append(before)
        for key, variable in ordered.copies:
            op = self._ops[key]
            op.inputs[op.inputs.index("!" + variable)] = variable
            op.workspace += self._grouping.variables[variable]
        if ordered.copies:
            _LOG.warning(
                "%d updates copy their variable first, because a value read before is used after",
                len(ordered.copies),
            )
        if ordered.added:
            _LOG.info("%d edges added: reads of a variable before its update", len(ordered.added))

    # --- the graph -------------------------------------------------------------------------------

    def _emit(self, graph: Any) -> None:
        phases = order.phases(self._nodes)
        for key, op in self._ops.items():
            inputs = [*op.inputs, *("^" + name for name in op.controls)]
            if op.every:
                graph.op(key, op.node.type, 0, inputs=inputs, outputs=op.outputs, every=True)
                continue
            graph.op(
                key,
                op.node.type,
                op.cost_ns,
                inputs=inputs,
                outputs=op.outputs,
                group=self._grouping.group_of(key),
                workspace=op.workspace,
                phase=phases[key],
            )

    def _result(self, graph: Any, added: list[tuple[str, str]]) -> StepGraph:
        return StepGraph(
            graph=graph,
            node_of={key: key for key in self._ops},
            variable_of=self._grouping.variable_of,
            every=frozenset(key for key, op in self._ops.items() if op.every),
            clone=frozenset(n for n, kind in self._kinds.of.items() if kind in ("known", "scalar")),
            values=self._values,
            large=frozenset(key for key, op in self._ops.items() if self._is_large(op)),
            added_edges=added,
            duration_ns={key: op.cost_ns for key, op in self._ops.items()},
            takers=self._takers,
            taken_from=self._taken_from,
            assigned=self._assigned,
            shared_reads=frozenset(
                key
                for key, op in self._ops.items()
                if op.node.type == "ReadVariableOp" and not self._owns(op)
            ),
            input_readers={
                key: self._buffers.readers(f"{key}:0")
                for key, op in self._ops.items()
                if op.node.type == "Placeholder"
            },
            branches=self._branches,
            conditional=frozenset(self._branches)
            | {node.name for node in self._nodes if node.type in compat.SPLITS},
        )

    def _is_large(self, op: _Op) -> bool:
        """Whether an op holds or reads a large buffer, and does more than pass it on."""
        if op.every:
            return False
        if any(self._grouping.variables[v] >= LARGE_BYTES for v in op.updates):
            return True
        outputs = [str(text).rstrip("*") for text in op.outputs]
        if outputs and all(text.startswith("=") for text in outputs):
            return False
        tensors = [*op.node.inputs, *op.node.outputs]
        sizes = [max(self._statics.bytes(t), self._list_bytes.get(t.name, 0)) for t in tensors]
        return max([0, op.workspace, *sizes]) >= LARGE_BYTES


def _reference(tensor: tf.Tensor) -> str:
    """`KEY` or `KEY:n` of a tensor."""
    return f"{tensor.op.name}:{tensor.value_index}" if tensor.value_index else str(tensor.op.name)


def _key(reference: str) -> str:
    return reference.partition(":")[0]


def _read(owner: tuple[str, str]) -> tuple[str, bool, str]:
    variable, read = owner
    return variable, False, read

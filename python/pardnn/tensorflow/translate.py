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
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import tensorflow as tf

from pardnn.tensorflow import compat, gates, order, semantics
from pardnn.tensorflow.branches import Branches, branches_of
from pardnn.tensorflow.capture import Capture
from pardnn.tensorflow.grouping import Grouping
from pardnn.tensorflow.loops import Region, regions_of
from pardnn.tensorflow.place import StepPlacement
from pardnn.tensorflow.semantics import Touch

_LOG = logging.getLogger(__name__)

# Tensors below this are left out of the enforced order and of the rules about reads and updates.
LARGE_BYTES = 64 * 1024
# What is copied to every device that reads it: results of at most this size.
_REPEATED_BYTES = 1024
_NEVER_REPEATED = compat.FUNCTIONAL_OPS | compat.SPLITS | compat.JOINS | {"Placeholder", "NoOp"}


class Costs(Protocol):
    """Times and workspace of ops; see `costs.CostTable`."""

    def cost(self, op: Any) -> tuple[int, int, str]:
        """Nanoseconds, workspace bytes, and where they come from."""
        ...


@dataclass
class StepGraph:
    """A step as the planner sees it, and the way back to TensorFlow's nodes."""

    graph: Any
    node_of: dict[str, str]
    variable_of: dict[str, Any]
    every: frozenset[str]
    clone: frozenset[str]
    values: dict[str, Any] = field(default_factory=dict)
    """Tensors whose value is known before the step runs, by name, that the step's ops read."""
    large: frozenset[str] = frozenset()
    """Keys of ops that hold or read large buffers: those whose order is enforced."""
    added_edges: list[tuple[str, str]] = field(default_factory=list)
    duration_ns: dict[str, int] = field(default_factory=dict)
    takers: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    """Tensor ("key:n", n also if 0) -> outputs of ops that may take over its buffer."""
    taken_from: dict[str, list[str]] = field(default_factory=dict)
    """The other way round: tensors whose buffer an output may take over, the stated one first."""
    assigned: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Assignment of a whole large variable -> variable, and the tensor whose buffer it gets."""
    branches: Branches = field(default_factory=dict)
    """Ops that run only when a branch of a conditional is taken."""
    conditional: frozenset[str] = frozenset()
    """Ops whose results may never come: those, and where the branches begin."""


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


def step_placement(step: StepGraph, plan: Any, device_strings: Mapping[str, str]) -> StepPlacement:
    """Devices and enforced order of the step's nodes under `plan`.

    `device_strings` maps the machine's device names to TensorFlow device strings.
    """
    homes = plan.device_of  # made anew each time it is asked for
    devices = {
        node: device_strings[homes[key]]
        for key, node in step.node_of.items()
        if key not in step.every
    }
    edges = [*step.added_edges, *order.chain(plan.sequences, step.large, step.branches)]
    named = [
        (step.node_of[first], step.node_of[second])
        for first, second in edges
        # An op that waits for one in a branch is skipped together with the branch.
        if step.branches.get(first, frozenset()) <= step.branches.get(second, frozenset())
    ]
    keys = list(step.graph.op_keys)
    takers = {f"{key}:{output}" for found in step.takers.values() for key, output in found}
    timed = gates.of_plan(
        plan, keys, step.duration_ns, step.large, LARGE_BYTES, takers, step.branches
    )
    timed = [gate for gate in timed if not _may_not_come(gate.tensor, step)]
    return StepPlacement(
        devices=devices,
        control_edges=named,
        clone=step.clone,
        values=step.values,
        gates=[
            replace(
                gate,
                destination=device_strings[gate.destination],
                gone=tuple(
                    (tensor, device_strings[device])
                    for tensor, device in gate.gone
                    if not _may_not_come(tensor, step)
                ),
            )
            for gate in timed
        ],
        holds=[
            replace(hold, destination=device_strings[hold.destination])
            for hold in gates.holds_of_plan(plan, step.takers, step.large, step.branches)
            if not _may_not_come(hold.tensor, step)
        ],
    )


def _may_not_come(tensor: str, step: StepGraph) -> bool:
    """Whether a branch of a conditional decides about the tensor: nothing may wait for it."""
    return tensor.partition(":")[0] in step.conditional


class _Translation:
    """The state of one translation; `run` does the steps in order."""

    def __init__(self, graph: Any, capture: Capture, costs: Costs, granularity: int) -> None:
        self._nodes: list[tf.Operation] = graph.get_operations()
        self._costs, self._granularity = costs, granularity
        self._regions = regions_of(graph)
        self._statics = self._regions.statics
        self._results = {t.name for t in graph.outputs}
        self._effects = {op.name for op in graph.control_outputs}
        self._host = capture.host
        self._branches = branches_of(capture.graph_def.node)
        self._grouping = Grouping(graph, capture, self._regions)
        self._kind: dict[str, str] = {}
        self._scalars: dict[str, tuple[str, ...]] = {}
        self._ops: dict[str, _Op] = {}
        self._buffers: dict[str, str] = {}
        self._list_bytes: dict[str, int] = {}
        self._values: dict[str, Any] = {}
        self._takers: dict[str, list[tuple[str, int]]] = {}
        self._taken_from: dict[str, list[str]] = {}
        self._assigned: dict[str, tuple[str, str]] = {}

    def run(
        self, builder: Any, pins: Mapping[str, str], fixed: Collection[int] | None = None
    ) -> StepGraph:
        for node in self._nodes:
            self._kind[node.name] = self._classify(node)
        self._nodes = self._needed()
        self._readers = self._count_readers()
        for node in self._nodes:
            self._note_values(node)
            if self._kind[node.name] in ("op", "every"):
                self._state(node)
        ordered = order.reads_before_updates(self._accesses(), self._edges())
        self._apply(ordered)
        graph = builder(kinds=("cpu",), about=self._about())
        self._grouping.state(graph, pins, fixed)
        self._emit(graph)
        return self._result(graph, ordered.added)

    # --- which nodes are ops ---------------------------------------------------------------------

    def _classify(self, node: tf.Operation) -> str:
        """`handle`, `known`, `every`, `scalar` or `op`."""
        if node.type == "Placeholder":
            resource = node.outputs[0].dtype == tf.resource
            return "handle" if resource else "every"
        small = all(self._statics.bytes(t) <= _REPEATED_BYTES for t in node.outputs)
        if node.type == "Const":
            # In a branch of a conditional a constant waits for the branch to be taken.
            waits = {self._kind[control.name] for control in node.control_inputs}
            return "every" if waits <= {"every", "known"} else "op"
        if node.name in self._host:
            before = [*(t.op for t in node.inputs), *node.control_inputs]
            kinds = {self._kind[one.name] for one in before}
            return "every" if kinds <= {"every", "known", "handle"} else "op"
        # A constant in place of a node of a branch would be there when the branch is not taken.
        known = all(self._statics.value(t) is not None for t in node.outputs)
        known = known and node.name not in self._branches
        if node.type == "VariableShape" and known:
            return "known"
        if node.name in self._effects or node.op_def.is_stateful or node.type in _NEVER_REPEATED:
            return "op"
        if any(t.dtype in (tf.resource, tf.variant) for t in [*node.inputs, *node.outputs]):
            return "op"
        if not small or not node.inputs or any(t.name in self._results for t in node.outputs):
            return "op"
        return "known" if known else self._repeatable(node)

    def _repeatable(self, node: tf.Operation) -> str:
        """Whether a cheap node is computed from constants and inputs, or scalar variables too."""
        kinds = set()
        reads: dict[str, None] = {}
        for control in node.control_inputs:
            kinds.add(self._kind[control.name])
        for tensor in node.inputs:
            kind = self._kind[tensor.op.name]
            if self._is_scalar_read(tensor.op):
                kind = "scalar"
                reads[tensor.op.name] = None
            if kind == "every" and self._statics.bytes(tensor) > _REPEATED_BYTES:
                return "op"
            reads.update(dict.fromkeys(self._scalars.get(tensor.op.name, ())))
            kinds.add(kind)
        if kinds <= {"known", "every"}:
            return "every"
        if kinds <= {"known", "every", "scalar"}:
            self._scalars[node.name] = tuple(reads)
            return "scalar"
        return "op"

    def _is_scalar_read(self, node: tf.Operation) -> bool:
        return (
            node.type == "ReadVariableOp"
            and self._statics.bytes(node.outputs[0]) <= _REPEATED_BYTES
        )

    def _needed(self) -> list[tf.Operation]:
        """The nodes that run: a node read for its shape alone is gone once shapes are constants."""
        by_name = {node.name: node for node in self._nodes}
        stack = [*(name.partition(":")[0] for name in self._results), *self._effects]
        needed: set[str] = set()
        while stack:
            name = stack.pop()
            if name not in needed:
                needed.add(name)
                if self._kind[name] != "known":
                    node = by_name[name]
                    stack += [t.op.name for t in node.inputs]
                    stack += [c.name for c in node.control_inputs]
        return [node for node in self._nodes if node.name in needed]

    def _count_readers(self) -> dict[str, int]:
        """How many edges read each tensor, aliases' readers counted for the buffer behind."""
        readers: dict[str, int] = {}
        for node in self._nodes:
            sources = self._sources(node)
            for number, output in enumerate(node.outputs):
                alias = sources[number].alias
                root = output.name
                if alias is not None:
                    root = self._root(node.inputs[alias])
                self._buffers[output.name] = root
            for index, tensor in enumerate(node.inputs):
                if not any(source.alias == index for source in sources):
                    root = self._root(tensor)
                    readers[root] = readers.get(root, 0) + 1
        return readers

    def _sources(self, node: tf.Operation) -> list[semantics.Source]:
        if node.type in compat.FUNCTIONAL_OPS:
            return self._regions.of(node).sources
        return semantics.sources(node, self._statics)

    # --- one op ----------------------------------------------------------------------------------

    def _state(self, node: tf.Operation) -> None:
        op = self._ops[node.name] = _Op(node, every=self._kind[node.name] == "every")
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
        if node.type == "AssignVariableOp" and self._is_large(op):
            self._assigned[node.name] = op.updates[0], self._root(node.inputs[1])

    def _kept_input(self, node: tf.Operation) -> int | None:
        """The one branch whose result a Merge is stated to read: the largest.

        Only one branch runs, so only one result waits for the Merge; the planner, which runs both,
        is told to drop the other.
        """
        if node.type not in compat.JOINS:
            return None
        return max(range(len(node.inputs)), key=lambda n: self._statics.bytes(node.inputs[n]))

    def _note_values(self, node: tf.Operation) -> None:
        if self._kind[node.name] != "known":
            for tensor in node.inputs:
                if self._kind[tensor.op.name] == "known":
                    self._values[tensor.name] = self._statics.value(tensor)

    def _state_input(
        self, op: _Op, position: int, tensor: tf.Tensor, region: Region | None
    ) -> None:
        variable = self._grouping.variable_behind(tensor)
        if variable is not None:
            self._state_touch(op, variable, position, region)
            if self._kind[tensor.op.name] == "op":
                # A handle that comes out of an op (a loop, a branch) is there when the op is done.
                self._state_control(op, tensor.op)
            return
        kind = self._kind[tensor.op.name]
        if kind == "scalar":
            for read in self._scalars[tensor.op.name]:
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
        kind = self._kind[control.name]
        befores = self._scalars[control.name] if kind == "scalar" else [control.name]
        if kind in ("op", "scalar"):
            op.controls += [name for name in befores if name not in op.controls]

    def _state_outputs(self, op: _Op, region: Region | None) -> None:
        node = op.node
        if node.type == "ReadVariableOp":
            op.outputs = [self._read_output(op)]
        else:
            taken: set[int] = set()
            for number, (tensor, source) in enumerate(
                zip(node.outputs, self._sources(node), strict=True)
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
        for name in self._names_of_buffer(op.node.inputs[choice]):
            self._takers.setdefault(name, []).append((op.node.name, number))
        self._taken_from[tensor.name] = [self._root(op.node.inputs[n]) for n in choices]
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
            root = self._root(op.node.inputs[index])
            owner = self._ops.get(_key(root))
            if index in taken or index not in op.index_of or owner is None:
                continue
            if not owner.every and self._owns(owner):
                found.append((self._readers.get(root, 1), index))
        return [index for _, index in sorted(found, key=lambda choice: choice[0])]

    def _root(self, tensor: tf.Tensor) -> str:
        """The tensor that a buffer is named by, which others are aliases of."""
        return self._buffers.get(tensor.name, tensor.name)

    def _names_of_buffer(self, tensor: tf.Tensor) -> Iterator[str]:
        """`tensor`, and those it is an alias of."""
        while True:
            yield str(tensor.name)
            alias = self._sources(tensor.op)[tensor.value_index].alias
            if alias is None:
                return
            tensor = tensor.op.inputs[alias]

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

    def _about(self) -> dict[str, str]:
        return {"source": "tensorflow"}

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
            clone=frozenset(n for n, kind in self._kind.items() if kind in ("known", "scalar")),
            values=self._values,
            large=frozenset(key for key, op in self._ops.items() if self._is_large(op)),
            added_edges=added,
            duration_ns={key: op.cost_ns for key, op in self._ops.items()},
            takers=self._takers,
            taken_from=self._taken_from,
            assigned=self._assigned,
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

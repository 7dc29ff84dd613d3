"""A step's nodes as ops of a graph to plan: loops contracted, variables apart, groups and orders.

Every node becomes an op, but for three sorts: a variable's node is the variable; the nodes of a
frame are one op; constants, batches and what is computed from these alone are on every device.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pardnn
from pardnn.readers.ordering import Access, reads_before_updates, topological
from pardnn.readers.tensorflow import loops, types
from pardnn.readers.tensorflow.arithmetic import flops_of
from pardnn.readers.tensorflow.frames import Frames, forward_frames
from pardnn.readers.tensorflow.loops import Loops
from pardnn.readers.tensorflow.nodes import Node, Nodes, Tensor
from pardnn.readers.tensorflow.ops import Op
from pardnn.readers.tensorflow.optypes import BATCHES, CALLS, PLACEHOLDERS, VARIABLES, written
from pardnn.readers.tensorflow.regions import Region, Regions
from pardnn.readers.tensorflow.shapes import Shapes
from pardnn.readers.tensorflow.variables import Groups
from pardnn.tensorflow.kernels import ALIAS, TAKES_OVER

# What every device may compute for itself: results of at most this size.
_REPEATED_BYTES = 1024
# Reads that are added may need edges themselves; then updates copy.
_ATTEMPTS = 4
_SPLITS = frozenset({"Switch", "RefSwitch"})
_ITERATORS = frozenset({"IteratorV2", "Iterator", "OneShotIterator", "IteratorFromStringHandle"})
_FREE = frozenset({"NoOp", "ControlTrigger"})
_RANDOM = (
    "Random",
    "Truncated",
    "Stateless",
    "Multinomial",
    "ReadFile",
    "Queue",
    "Reader",
    "PyFunc",
)


class Step:
    """The ops, variables and groups of `nodes`, the nodes of one step."""

    def __init__(
        self,
        nodes: Nodes,
        frames: Frames,
        shapes: Shapes,
        handles: Mapping[Tensor, str],
        regions: Regions,
        trips: int | None,
        fetched: Iterable[Tensor] = (),
    ) -> None:
        self._nodes, self._frames, self._shapes = nodes, frames, shapes
        self._handles, self._regions = handles, regions
        self._loops = Loops(nodes, frames, shapes, trips)
        self._fetched = set(fetched)
        self.ops: dict[str, Op] = {}
        self.variables: dict[str, int | None] = {}
        self.groups = Groups()
        self.notes: list[str] = []
        self._unit: dict[str, str] = {}
        self._leaving: dict[str, int] = {}
        self._region: dict[str, Region] = {}
        self._make_units()
        self._out = self._exits()
        for op in self.ops.values():
            self._connect(op)
        self._saved()
        self._sort()
        for op in self.ops.values():
            op.every = self._is_every(op)
        for op in self.ops.values():
            self._size(op)
        self._join()
        self._order()
        self.notes += self._loops.notes()

    # --- units --------------------------------------------------------------------------------

    def _make_units(self) -> None:
        for name in self._frames.order:
            node = self._nodes[name]
            if node.op in VARIABLES:
                self.variables[name] = self._shapes.size((name, 0))
                if node.op == "VarHandleOp":
                    self.variables[name] = loops.variable_bytes(node, self._shapes)
                self._unit[name] = name
                continue
            frame = self._frames.of.get(name)
            unit, kind = (name, node.op) if frame is None else (self._loop_name(frame[0]), "While")
            self._unit[name] = unit
            op = self.ops.setdefault(unit, Op(unit, kind, []))
            op.members.append(name)
            if node.op in CALLS:
                self._region[name] = self._regions.of(node)

    def _loop_name(self, frame: str) -> str:
        return frame if frame not in self._nodes else f"{frame}/while_frame"

    def _exits(self) -> dict[Tensor, int]:
        """Outputs of loops that nodes outside of them read, numbered per loop."""
        found: dict[Tensor, int] = {}
        count = self._leaving
        for name, node in self._nodes.items():
            for tensor in node.inputs:
                source = self._unit[tensor[0]]
                if source == self._unit[name] or tensor in found:
                    continue
                if tensor[0] in self._frames.of and tensor not in self._handles:
                    found[tensor] = count.get(source, 0)
                    count[source] = found[tensor] + 1
        return found

    # --- edges --------------------------------------------------------------------------------

    def _connect(self, op: Op) -> None:
        for name in op.members:
            node = self._nodes[name]
            for position, tensor in enumerate(node.inputs):
                variable = self._handles.get(tensor)
                if variable is not None:
                    self._touch(op, node, position, variable, tensor)
                elif self._unit[tensor[0]] != op.name and tensor not in op.number:
                    op.number[tensor] = len(op.inputs)
                    op.inputs.append(tensor)
            for before in node.controls:
                self._wait(op, before)

    def _touch(self, op: Op, node: Node, position: int, variable: str, tensor: Tensor) -> None:
        if variable not in op.inputs:
            op.inputs.append(variable)
        op.number[tensor] = op.inputs.index(variable)
        region = self._region.get(node.name)
        writes = position < written(node.op)
        if region is not None:
            writes = region.writes.get(position, False)
        if writes:
            op.updates[variable] = None
        # A reference that comes out of an op is there when the op is done.
        self._wait(op, tensor[0])

    def _wait(self, op: Op, before: str) -> None:
        unit = self._unit[before]
        if unit != op.name and unit not in self.variables:
            op.controls[unit] = None

    def _saved(self) -> None:
        """What loops keep for their gradients' loops is one more output, and input, of each."""
        for (source, target), size in self._loops.saved(self._unit).items():
            first, second = self.ops[source], self.ops[target]
            tensor = (source, -1 - len(first.outputs))
            first.outputs.append(size)
            second.inputs.append(tensor)

    def _sort(self) -> None:
        """The ops in topological order. Raises pardnn.Error where loops made a cycle."""
        order = topological({name: self.before(op) for name, op in self.ops.items()})
        if len(order) < len(self.ops):
            done = set(order)
            stuck = next(name for name in self.ops if name not in done)
            raise pardnn.Error(f"{stuck} and nodes outside of a loop wait for each other")
        self.ops = {name: self.ops[name] for name in order}

    def before(self, op: Op) -> list[str]:
        """The ops that an op reads or waits for."""
        units = [self._unit.get(t[0], t[0]) for t in op.inputs if not isinstance(t, str)]
        return list(dict.fromkeys([*units, *op.controls]))

    # --- what ops give ------------------------------------------------------------------------

    def _is_every(self, op: Op) -> bool:
        name = op.members[0]
        node = self._nodes[name]
        if name in self._frames.of or any(isinstance(one, str) for one in op.inputs):
            return False
        if not all(self.ops[one].every for one in self.before(op)):
            return False
        if node.op == "Const" or node.op in PLACEHOLDERS | BATCHES | _ITERATORS:
            return True
        if not op.inputs or node.op in CALLS or node.op.startswith(_RANDOM):
            return False
        if node.op in ALIAS:
            return True
        count = self._shapes.outputs(name)
        if any(self._shapes.dtype((name, n)) in types.HANDLES for n in range(count)):
            return False
        sizes = [self._shapes.size((name, n)) for n in range(count)]
        return bool(sizes) and all(s is not None and s <= _REPEATED_BYTES for s in sizes)

    def _size(self, op: Op) -> None:
        if op.members[0] in self._frames.of:
            self._size_loop(op)
            return
        node = self._nodes[op.members[0]]
        taken: set[int] = set()
        for number in range(self._shapes.outputs(node.name)):
            tensor = (node.name, number)
            text = self._output(op, node, tensor, taken)
            op.outputs.append(
                f"{_text(text)}*" if tensor in self._fetched and not op.every else text
            )
        region = self._region.get(node.name)
        trips = 1 if region is None else self._loops.trips_of(node.name, region.trips)
        op.flops = (flops_of(node, self._shapes) or 0) if region is None else region.flops * trips
        op.moved = self._moved(node)

    def _output(self, op: Op, node: Node, tensor: Tensor, taken: set[int]) -> int | str | None:
        size, number = self._shapes.size(tensor), tensor[1]
        source = self._alias(node, tensor)
        if source is not None and source in op.number:
            index = op.number[source]
            held = self._shapes.size(source) if source not in self._handles else size
            return f"={index}" if held == size or size is None else f"={index}/{size}"
        region = self._region.get(node.name)
        if region is not None and number in region.pushed:
            item = region.pushed[number]
            return None if item is None else item * self._loops.trips_of(node.name, region.trips)
        if self._shapes.dtype(tensor) == types.FLOAT:
            size = loops.flow_bytes(node, self._shapes, size)
        if size is None or op.every:
            return size
        for position in self._takes(node, number):
            given = node.inputs[position]
            index = op.number.get(given, -1)
            if index in taken or index < 0 or given in self._handles or not self._owned(given):
                continue
            if self._shapes.size(given) == size and self._shapes.dtype(given) == self._shapes.dtype(
                tensor
            ):
                taken.add(index)
                return f"{size}~{index}"
        return size

    def _owned(self, tensor: Tensor) -> bool:
        """Whether a tensor is in a buffer that nothing but ops of the step makes."""
        for _ in range(len(self._nodes)):
            if tensor in self._handles or self.ops[self._unit[tensor[0]]].every:
                return False
            source = self._alias(self._nodes[tensor[0]], tensor)
            if source is None:
                return True
            tensor = source
        return False

    def _takes(self, node: Node, number: int) -> Iterable[int]:
        if node.op == "AddN":
            return range(len(node.inputs))
        return [n for n in TAKES_OVER.get(node.op, {}).get(number, ()) if n < len(node.inputs)]

    def _alias(self, node: Node, tensor: Tensor) -> Tensor | None:
        """The tensor in whose buffer an output is."""
        number = tensor[1]
        if tensor in self._handles and node.inputs and node.op not in VARIABLES:
            return node.inputs[0]
        if node.op == "ReadVariableOp" and node.inputs:
            return node.inputs[0]
        if node.op in ALIAS and number < len(node.inputs):
            return node.inputs[number]
        if node.op in _SPLITS and node.inputs:
            return node.inputs[0]
        region = self._region.get(node.name)
        if region is not None and number in region.passed:
            return node.inputs[region.passed[number]]
        return None

    def _size_loop(self, op: Op) -> None:
        saved, op.outputs = op.outputs, []
        inside = set(op.members)
        tensors = [t for t in self._out if t[0] in inside]
        for tensor in sorted(tensors, key=self._out.__getitem__):
            size = self._loops.exit_bytes(tensor)
            text: int | str | None = size
            op.outputs.append(f"{_text(text)}*" if tensor in self._fetched else text)
        op.outputs += saved
        for name in op.members:
            trips = self._loops.all_trips(name)
            op.flops += (flops_of(self._nodes[name], self._shapes) or 0) * trips

    def _moved(self, node: Node) -> int | None:
        if node.op in ALIAS or node.name in self._region:
            return None
        sizes = [self._shapes.size(tensor) for tensor in node.inputs]
        sizes += [self._shapes.size((node.name, n)) for n in range(self._shapes.outputs(node.name))]
        known = [size for size in sizes if size is not None]
        return sum(known) if len(known) == len(sizes) else None

    # --- groups and order ---------------------------------------------------------------------

    def _join(self) -> None:
        join = self.groups.join
        for op in self.ops.values():
            for one in () if op.every else op.inputs:
                if isinstance(one, str):
                    join(one, op.name)
                elif one[1] >= 0 and self._shapes.dtype(one) in types.HANDLES:
                    source = self._unit[one[0]]
                    if not self.ops[source].every:
                        join(source, op.name)
        for name, node in self._nodes.items():
            unit = self._unit[name]
            for target in node.classes():
                if unit in self.variables or not self.ops[unit].every:
                    join(f"loc:@{target}", unit)
                other = self._unit.get(target)
                if other is not None and (other in self.variables or not self.ops[other].every):
                    join(f"loc:@{target}", other)
        for forward, gradient in forward_frames(self._frames):
            join(self._loop_name(forward), self._loop_name(gradient))
        for source, target in self._loops.saved(self._unit):
            join(source, target)

    def _order(self) -> None:
        """Edges so that updates come after the reads of what they overwrite (rule M4)."""
        added = anew = copies = 0
        for attempt in range(_ATTEMPTS):
            before = {name: self.before(op) for name, op in self.ops.items()}
            ordered = reads_before_updates(list(self._accesses()), before)
            for first, second in ordered.added:
                self.ops[second].controls[first] = None
            added += len(ordered.added)
            for late in dict.fromkeys(ordered.late):
                again = attempt < _ATTEMPTS - 1 and self._nodes[late[2]].op != "VarHandleOp"
                anew += again and self._read_anew(*late)
                copies += not again and self._copy(late[1], late[2])
            if not ordered.late:
                break
            self._sort()
        if added:
            self.notes.append(f"{added} edges added: reads of a variable come before its update")
        if anew:
            self.notes.append(f"{anew} reads added: a reference read after an update is read anew")
        if copies:
            self.notes.append(
                f"{copies} updates work on a copy of their variable, because a value read before "
                "is used after"
            )

    def _read_anew(self, reader: str, update: str, variable: str) -> bool:
        """A reference shows what is there when it is used: here, what the update has left."""
        name = f"{update}/value_of/{variable}"
        new = name not in self.ops
        if new:
            self._unit[name] = name
            self.ops[name] = Op(name, "Identity", [], [variable], {update: None}, outputs=["=0"])
            self.groups.join(variable, name)
        op = self.ops[reader]
        for index, one in enumerate(op.inputs):
            if not isinstance(one, str) and self._owner.get(one, ("",))[0] == variable:
                op.inputs[index] = (name, 0)
        return new

    def _copy(self, update: str, variable: str) -> bool:
        op = self.ops[update]
        if variable not in op.updates:
            return False
        del op.updates[variable]
        op.workspace += self.variables[variable] or 0
        return True

    def _own(self) -> None:
        for name, op in self.ops.items():
            if op.members and op.members[0] in self._frames.of:
                continue
            for number, text in enumerate(op.outputs):
                if not isinstance(text, str) or not text.startswith("="):
                    continue
                source = op.inputs[int(text[1:].rstrip("*").partition("/")[0])]
                if isinstance(source, str):
                    self._owner[name, number] = (source, name)
                elif source in self._owner:
                    self._owner[name, number] = self._owner[source]

    def _accesses(self) -> Iterable[Access]:
        self._owner: dict[Tensor, tuple[str, str]] = {}
        self._own()
        for name, op in self.ops.items():
            for one in op.inputs:
                if isinstance(one, str):
                    yield Access(name, one, one in op.updates)
                elif one in self._owner:
                    yield Access(name, self._owner[one][0], False, self._owner[one][1])

    def reference(self, tensor: Tensor) -> tuple[str, int]:
        """The op that makes a tensor, and the number of its output."""
        if tensor[1] < 0:
            return tensor[0], len(
                [t for t in self._out if self._unit[t[0]] == tensor[0]]
            ) - 1 - tensor[1]
        return self._unit[tensor[0]], self._out.get(tensor, tensor[1])

    def times(self, measured: Mapping[str, int], op: Op) -> int | None:
        """Nanoseconds of an op, those of a loop's nodes in all trips together; None if unknown."""
        found = [measured[name] for name in op.members if name in measured]
        if found:
            return sum(found)
        return 0 if op.type in _FREE else None


def _text(size: int | str | None) -> str:
    return "?" if size is None else str(size)

"""Sizes that loops decide: what they keep for their gradients, tensor arrays, trips."""

from __future__ import annotations

from collections.abc import Mapping

from pardnn.readers.tensorflow import types
from pardnn.readers.tensorflow.frames import Frames, Trips, forward_frames
from pardnn.readers.tensorflow.nodes import Node, Nodes, Tensor
from pardnn.readers.tensorflow.shapes import Shapes, bytes_of, dims

# Trips of a loop whose number of trips depends on data.
ASSUMED_TRIPS = 32
_PUSHES = frozenset({"StackPush", "StackPushV2"})
_POPS = frozenset({"StackPop", "StackPopV2"})
_STACKS = frozenset({"Stack", "StackV2"})
_WRITES = {"TensorArrayWriteV3": 2, "TensorArrayScatterV3": 2, "TensorArraySplitV3": 1}
_MOST_HOPS = 64


class Loops:
    """Trips of all loops of a graph; `given` is what the user says about those that are unknown."""

    def __init__(self, nodes: Nodes, frames: Frames, shapes: Shapes, given: int | None) -> None:
        self._nodes, self._frames, self._shapes, self._given = nodes, frames, shapes, given
        self._assumed: dict[str, None] = {}
        trips = Trips(nodes, shapes.number)
        known = {f: trips.of(frames.members[f[0]], f, frames) for f in sorted(frames.names)}
        for forward, gradient in forward_frames(frames):
            # A gradient's loop counts down what its forward loop has counted up.
            if known[gradient,] is None:
                known[gradient,] = self.trips_of(forward, known[forward,])
        self._trips = {frame: self.trips_of(frame[-1], found) for frame, found in known.items()}

    def trips_of(self, name: str, known: int | None) -> int:
        """Trips of one loop: the file's, else the user's, else assumed."""
        if known is not None:
            return known
        self._assumed[name] = None
        return self._given if self._given is not None else ASSUMED_TRIPS

    def all_trips(self, name: str) -> int:
        """How often a node runs in a step."""
        frame = self._frames.of.get(name, ())
        result = 1
        for depth in range(len(frame)):
            result *= self._trips[frame[: depth + 1]]
        return result

    def notes(self) -> list[str]:
        """What was assumed about trips."""
        if not self._assumed:
            return []
        count, first = len(self._assumed), next(iter(self._assumed))
        loops = f"loop {first} runs" if count == 1 else f"{count} loops, such as {first}, run"
        if self._given is not None:
            return [f"how often {loops} depends on data; {self._given} trips, as --trips says"]
        return [
            f"how often {loops} depends on data; {ASSUMED_TRIPS} trips are assumed, and more need "
            "more time and memory; --trips N says how many"
        ]

    def saved(self, unit: Mapping[str, str]) -> dict[tuple[str, str], int | None]:
        """Bytes that one op puts on stacks and another takes from them, in all trips."""
        pops: dict[str, str] = {}
        for name, node in self._nodes.items():
            if node.op in _POPS and node.inputs:
                pops[self._stack(node.inputs[0])] = unit[name]
        found: dict[tuple[str, str], int | None] = {}
        for name, node in self._nodes.items():
            if node.op not in _PUSHES or len(node.inputs) < 2:
                continue
            target = pops.get(self._stack(node.inputs[0]))
            if target is None or target == unit[name]:
                continue
            size = self._shapes.size(node.inputs[1])
            pair = (unit[name], target)
            before = found.get(pair, 0)
            whole = None if size is None else size * self.all_trips(name)
            found[pair] = None if before is None or whole is None else before + whole
        return found

    def _stack(self, handle: Tensor) -> str:
        name = handle[0]
        for _ in range(_MOST_HOPS):
            node = self._nodes[name]
            if node.op in _STACKS or not node.inputs:
                break
            name = node.inputs[0][0]
        return name

    def exit_bytes(self, tensor: Tensor) -> int | None:
        """Bytes of what leaves a loop; a tensor array's flow stands for what was written to it."""
        size = self._shapes.size(tensor)
        name = tensor[0]
        for _ in range(_MOST_HOPS):
            node = self._nodes[name]
            if node.op in _WRITES and node.inputs:
                written = self._shapes.size(
                    node.inputs[min(_WRITES[node.op], len(node.inputs) - 1)]
                )
                return None if written is None else written * self.all_trips(name)
            if self._shapes.dtype((name, 0)) != types.FLOAT or not node.inputs:
                break
            name = node.inputs[-1 if node.op in ("Merge", "Select") else 0][0]
        return size


def flow_bytes(node: Node, shapes: Shapes, size: int | None) -> int | None:
    """Bytes behind the flow that an op on a tensor array gives; `size` for other ops."""
    if node.op in _WRITES and len(node.inputs) > _WRITES[node.op]:
        return shapes.size(node.inputs[_WRITES[node.op]])
    return size


def variable_bytes(node: Node, shapes: Shapes) -> int | None:
    """Bytes of the variable that a VarHandleOp names."""
    if "shape" not in node.attr:
        return None
    return bytes_of(dims(node.attr["shape"].shape), node.dtype("dtype"), node.name)

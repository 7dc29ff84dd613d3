"""While loops made of v1 control flow: which nodes are inside, and how often each loop runs.

Enter leads into a frame and Exit out of it; everything on the way is inside. The edges out of
NextIteration are what goes round, and the only ones that may.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

import pardnn
from pardnn.readers.tensorflow.nodes import Node, Nodes, Tensor
from pardnn.readers.tensorflow.optypes import BACK_EDGES, ENTERS, EXITS

_PASSES = frozenset({"Identity", "RefIdentity", "Enter", "RefEnter", "Switch", "RefSwitch"})
_DEEPEST = 64

Frame = tuple[str, ...]
"""Names of the frames around a node, the outermost first."""


@dataclass
class Frames:
    """Which nodes are inside which loop.

    `order`: all names so that inputs come first, edges out of NextIteration apart. `of`: frames of
    the nodes that are in one. `members`: nodes of each outermost frame, those of frames inside it
    included, in that order. `names`: all frames.
    """

    order: list[str] = field(default_factory=list)
    of: dict[str, Frame] = field(default_factory=dict)
    members: dict[str, list[str]] = field(default_factory=dict)
    names: set[Frame] = field(default_factory=set)


def frames_of(nodes: Nodes, where: str) -> Frames:
    """Frames and order of a graph. Raises pardnn.Error for a cycle that is no loop."""
    found = Frames(order=in_order(nodes, where))
    for name in found.order:
        node = nodes[name]
        frame: Frame = ()
        for before in (*(tensor[0] for tensor in node.inputs), *node.controls):
            around = found.of.get(before, ())
            if nodes[before].op in EXITS:
                around = around[:-1]
            frame = max(frame, around, key=len)
        if node.op in ENTERS:
            frame = (*frame, node.text("frame_name") or name)
            if len(frame) > _DEEPEST:
                raise pardnn.Error(f"{where}more than {_DEEPEST} loops inside each other at {name}")
        if frame:
            found.of[name] = frame
            found.members.setdefault(frame[0], []).append(name)
            found.names.add(frame)
    return found


def in_order(nodes: Nodes, where: str) -> list[str]:
    """Names so that every node comes after its inputs, edges out of NextIteration apart."""
    waiting: dict[str, int] = {}
    after: dict[str, list[str]] = {}
    for name, node in nodes.items():
        befores = [b for b in _befores(node) if nodes[b].op not in BACK_EDGES]
        waiting[name] = len(befores)
        for before in befores:
            after.setdefault(before, []).append(name)
    ready = deque(name for name, count in waiting.items() if not count)
    order = []
    while ready:
        name = ready.popleft()
        order.append(name)
        for reader in after.get(name, ()):
            waiting[reader] -= 1
            if not waiting[reader]:
                ready.append(reader)
    if len(order) < len(nodes):
        raise pardnn.Error(f"{where}{_cycle(nodes, set(order))}")
    return order


def _befores(node: Node) -> Iterator[str]:
    yield from (tensor[0] for tensor in node.inputs)
    yield from node.controls


def _cycle(nodes: Nodes, done: set[str]) -> str:
    """A sentence about a cycle among the nodes that are not in `done`."""
    name = next(name for name in nodes if name not in done)
    seen: dict[str, int] = {}
    while name not in seen:
        seen[name] = len(seen)
        name = next(
            b for b in _befores(nodes[name]) if b not in done and nodes[b].op not in BACK_EDGES
        )
    circle = [one for one, number in seen.items() if number >= seen[name]]
    shown = " <- ".join([*circle[:6], *(["..."] if len(circle) > 6 else []), name])
    return f"nodes wait for each other ({shown}), and no NextIteration is among them"


def forward_frames(frames: Frames) -> Iterator[tuple[str, str]]:
    """Pairs (frame, its gradient's frame) of outermost frames.

    A gradient's loop takes the name of its forward loop below a scope of its own; handles of stacks
    that both use join them as well, and are not looked at here.
    """
    for name in frames.members:
        start = name.find("/")
        while start >= 0:
            if name[start + 1 :] in frames.members:
                yield name[start + 1 :], name
                break
            start = name.find("/", start + 1)


class Trips:
    """How often loops run: from constants where the condition compares a counter with one."""

    def __init__(self, nodes: Nodes, value: Callable[[Tensor], float | None]) -> None:
        self._nodes, self._value = nodes, value

    def of(self, members: list[str], frame: Frame, frames: Frames) -> int | None:
        """Most trips of a loop, None where they depend on data."""
        inside = [name for name in members if frames.of[name] == frame]
        bounds = []
        for name in inside:
            node = self._nodes[name]
            if (
                node.op in ("Less", "LessEqual")
                and len(node.inputs) == 2
                and name in self._conditions
            ):
                bound = self._bound(node)
                if bound is not None:
                    bounds.append(bound)
        return max(1, min(bounds)) if bounds else None

    @cached_property
    def _conditions(self) -> set[str]:
        found: set[str] = set()
        stack = [n.inputs[0][0] for n in self._nodes.values() if n.op == "LoopCond" and n.inputs]
        while stack:
            name = stack.pop()
            if name not in found:
                found.add(name)
                if self._nodes[name].op in ("LogicalAnd", "Identity"):
                    stack += [tensor[0] for tensor in self._nodes[name].inputs]
        return found

    def _bound(self, test: Node) -> int | None:
        merge = self._nodes[test.inputs[0][0]]
        if merge.op not in ("Merge", "RefMerge") or len(merge.inputs) != 2:
            return None
        first = self._constant(merge.inputs[0])
        step = self._step(merge)
        limit = self._constant(test.inputs[1])
        if first is None or limit is None or step is None or step <= 0:
            return None
        trips = (limit - first + (test.op == "LessEqual")) / step
        return math.ceil(trips) if math.isfinite(trips) and trips < 2**40 else None

    def _step(self, merge: Node) -> float | None:
        """What one trip adds to the counter that enters at `merge`."""
        again = self._nodes[merge.inputs[1][0]]
        add = self._nodes[self._origin(again.inputs[0])[0]] if again.inputs else again
        if add.op not in ("Add", "AddV2") or len(add.inputs) != 2:
            return None
        for own, other in ((0, 1), (1, 0)):
            if self._origin(add.inputs[own])[0] == merge.name:
                return self._constant(add.inputs[other])
        return None

    def _constant(self, tensor: Tensor) -> float | None:
        return self._value(self._origin(tensor))

    def _origin(self, tensor: Tensor) -> Tensor:
        for _ in range(len(self._nodes)):
            node = self._nodes[tensor[0]]
            if node.op not in _PASSES or not node.inputs:
                break
            tensor = node.inputs[0]
        return tensor

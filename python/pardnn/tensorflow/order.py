"""Orders: reads before updates, phases, and edges that make a device keep its sequence.

TensorFlow starts an op as soon as its inputs are there. Wherever the memory of a device depends on
which of two ops runs first, a control edge says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pardnn.tensorflow.branches import Branches


@dataclass(frozen=True)
class Access:
    """An op that touches a variable, or a tensor in its buffer that read op `read` made."""

    key: str
    variable: str
    updates: bool
    read: str | None


@dataclass
class Ordered:
    """Edges to add so that an update finds no read pending, and updates that copy instead."""

    added: list[tuple[str, str]] = field(default_factory=list)
    copies: list[tuple[str, str]] = field(default_factory=list)
    """(op, variable): the update cannot wait for every reader, so it works on a fresh buffer."""


def chain(
    sequences: Mapping[str, Sequence[str]], large: frozenset[str], branches: Branches
) -> list[tuple[str, str]]:
    """Edges between consecutive large ops of each device.

    An op in a branch of a conditional is waited for only by ops that run whenever it does; others
    wait for the last op before it that they can wait for. A plan's sequences and its graph's edges
    have no cycle together, so these edges cannot deadlock, whatever the devices.
    """
    edges = []
    for sequence in sequences.values():
        last: dict[frozenset[tuple[str, str]], tuple[int, str]] = {}
        for position, key in enumerate(key for key in sequence if key in large):
            here = branches.get(key, frozenset())
            before = max((op for there, op in last.items() if there <= here), default=None)
            if before is not None:
                edges.append((before[1], key))
            last[here] = (position, key)
    return edges


def reads_before_updates(
    accesses: Iterable[Access], before: Mapping[str, Sequence[str]]
) -> Ordered:
    """What is missing for every update to come after all reads of what it overwrites.

    `before` lists the ops before each op, its keys in topological order. Reads that come after an
    update read another tensor and do not concern it.
    """
    by_variable: dict[str, list[Access]] = {}
    for access in accesses:
        by_variable.setdefault(access.variable, []).append(access)
    touched = {v: found for v, found in by_variable.items() if any(a.updates for a in found)}
    reach = _Reach(before, {a.key for found in touched.values() for a in found})
    result = Ordered()
    position = {key: n for n, key in enumerate(before)}
    for variable, found in touched.items():
        # The last first: two updates without an order then keep the graph's own.
        updates = sorted(
            {a.key for a in found if a.updates}, key=position.__getitem__, reverse=True
        )
        for update in updates:
            needed = _needed(update, found, reach)
            if any(reach.path(update, key) for key in needed):
                result.copies.append((update, variable))
                continue
            for key in needed:
                result.added.append((key, update))
                reach.add(key, update)
    return result


def _needed(update: str, found: list[Access], reach: _Reach) -> list[str]:
    """Ops that must get an edge to `update`."""
    needed: dict[str, None] = {}
    for access in found:
        if access.key == update or reach.path(access.key, update):
            continue
        if access.read is None:
            # Touching the variable itself: either order will do, as long as it is fixed.
            if not reach.path(update, access.key):
                needed[access.key] = None
        elif not reach.path(update, access.read):
            needed[access.key] = None
    return list(needed)


class _Reach:
    """Paths between marked ops of a graph, kept as one set of bits for each op."""

    def __init__(self, before: Mapping[str, Sequence[str]], marked: set[str]) -> None:
        self._bit = {key: 1 << n for n, key in enumerate(sorted(marked))}
        self._after: dict[str, list[str]] = {}
        self._above: dict[str, int] = {}
        for key, firsts in before.items():
            bits = 0
            for first in firsts:
                bits |= self._above[first] | self._bit.get(first, 0)
                self._after.setdefault(first, []).append(key)
            self._above[key] = bits

    def path(self, first: str, second: str) -> bool:
        return bool(self._above[second] & self._bit[first])

    def add(self, first: str, second: str) -> None:
        """Note a new edge, and what it puts before everything after `second`."""
        self._after.setdefault(first, []).append(second)
        stack = [(second, self._above[first] | self._bit[first])]
        while stack:
            key, bits = stack.pop()
            if bits & ~self._above[key]:
                self._above[key] |= bits
                bits |= self._bit.get(key, 0)
                stack.extend((after, bits) for after in self._after.get(key, ()))


def phases(nodes: Iterable[Any]) -> dict[str, str]:
    """`f`, `b` or `u` of every node: TensorFlow's tape names the ops of the backward pass.

    What comes after the backward pass and leads back into it no more is the update.
    """
    nodes = list(nodes)
    backward = {op.name for op in nodes if "gradient_tape/" in op.name}
    above: set[str] = set()
    for op in nodes:
        sources = [*(t.op for t in op.inputs), *op.control_inputs]
        if any(s.name in backward or s.name in above for s in sources):
            above.add(op.name)
    below: set[str] = set()
    for op in reversed(nodes):
        if op.name in backward or op.name in below:
            below.update(t.op.name for t in op.inputs)
            below.update(c.name for c in op.control_inputs)
    return {
        op.name: "b"
        if op.name in backward or (op.name in above and op.name in below)
        else ("u" if op.name in above else "f")
        for op in nodes
    }

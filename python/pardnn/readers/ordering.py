"""Reads before updates: the edges that rule M4 asks of a reader of foreign files.

An update of a variable must come after everything that reads what it overwrites. Where a file has
no such path, an edge is added; where the edge would close a cycle, the update works on a copy.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

# Updates whose paths are looked at in one sweep: a bit of every op's integer for each.
_AT_ONCE = 4096
_MOST_TRIED = 64


@dataclass(frozen=True)
class Access:
    """Op `key` touches `variable`, or reads a tensor in its buffer that op `read` made."""

    key: str
    variable: str
    updates: bool
    read: str | None = None


@dataclass
class Ordered:
    """Edges (before, after) to add, and what no edge can mend.

    `late`: (reader, update, variable) where the reader has to come after the update and yet reads
    what was there before. The update must then work on a copy, or the reader read anew.
    """

    added: list[tuple[str, str]] = field(default_factory=list)
    late: list[tuple[str, str, str]] = field(default_factory=list)
    seen: set[tuple[str, str]] = field(default_factory=set)


def topological(before: Mapping[str, Sequence[str]]) -> list[str]:
    """Keys so that each comes after those before it; without those that a cycle holds up."""
    waiting = {key: len(firsts) for key, firsts in before.items()}
    after: dict[str, list[str]] = {}
    for key, firsts in before.items():
        for first in firsts:
            after.setdefault(first, []).append(key)
    order = [key for key, count in waiting.items() if not count]
    for key in order:  # which grows on the way
        for reader in after.get(key, ()):
            waiting[reader] -= 1
            if not waiting[reader]:
                order.append(reader)
    return order


def reads_before_updates(
    accesses: Sequence[Access], before: Mapping[str, Sequence[str]]
) -> Ordered:
    """What is missing for every update to come after all reads of what it overwrites.

    `before` lists the ops before each op, its keys in topological order. Reads that come after an
    update read another tensor and do not concern it. Added edges all lead forward in one order, in
    which updates come as late as they can, so they close no cycle.
    """
    by_variable: dict[str, list[Access]] = {}
    for access in accesses:
        by_variable.setdefault(access.variable, []).append(access)
    touched = {v: found for v, found in by_variable.items() if any(a.updates for a in found)}
    updates = {
        a.key: [b for b in found if not b.updates]
        for found in touched.values()
        for a in found
        if a.updates
    }
    result = Ordered()
    if not updates:
        return result
    order = _late(before, updates)
    place = {key: number for number, key in enumerate(order)}
    of_update: dict[str, list[str]] = {}
    for variable, found in touched.items():
        for key in dict.fromkeys(a.key for a in found if a.updates):
            of_update.setdefault(key, []).append(variable)
    keys = list(updates)
    for start in range(0, len(keys), _AT_ONCE):
        paths = _Paths(before, order, keys[start : start + _AT_ONCE])
        for update in keys[start : start + _AT_ONCE]:
            for variable in of_update[update]:
                _order_one(update, variable, touched[variable], place, paths, result)
    return result


def _order_one(
    update: str,
    variable: str,
    found: Sequence[Access],
    place: Mapping[str, int],
    paths: _Paths,
    result: Ordered,
) -> None:
    """The edges that one update needs, and the readers that come too late."""
    edges: dict[tuple[str, str], None] = {}
    led: set[str] = set()  # reads from which a path now leads to the update
    for access in sorted(found, key=lambda a: a.read is None):
        key, early = access.key, place[access.key] < place[update]
        if key == update or key in led or paths.to(update, key):
            continue
        if access.read is None:
            # Touching the variable itself: either order will do, as long as it is fixed.
            if not paths.of(update, key):
                edges[(key, update) if early else (update, key)] = None
        elif place[access.read] < place[update]:
            if early:
                edges[key, update] = None
                led.add(access.read)
            else:
                result.late.append((key, update, variable))
    result.added += [edge for edge in edges if edge not in result.seen]
    result.seen.update(edges)


def _late(
    before: Mapping[str, Sequence[str]], updates: Mapping[str, Sequence[Access]]
) -> list[str]:
    """All keys in topological order, an update only when nothing else is left to do first."""
    number = {key: n for n, key in enumerate(before)}
    names = list(before)
    waiting = {key: len(firsts) for key, firsts in before.items()}
    after: dict[str, list[str]] = {}
    for key, firsts in before.items():
        for first in firsts:
            after.setdefault(first, []).append(key)
    ready: list[int] = []
    late: deque[str] = deque()
    order: list[str] = []
    done: set[str] = set()

    def is_ready(key: str) -> None:
        if key in updates:
            late.append(key)
        else:
            heapq.heappush(ready, number[key])

    for key, count in waiting.items():
        if not count:
            is_ready(key)
    while ready or late:
        key = names[heapq.heappop(ready)] if ready else _next_update(late, updates, done)
        order.append(key)
        done.add(key)
        for reader in after.get(key, ()):
            waiting[reader] -= 1
            if not waiting[reader]:
                is_ready(reader)
    return order


def _next_update(
    late: deque[str], updates: Mapping[str, Sequence[Access]], done: Collection[str]
) -> str:
    """Of the updates that could be next, one that no read is waiting for, if one is near."""
    for _ in range(min(len(late), _MOST_TRIED)):
        if all(access.key in done for access in updates[late[0]][:_MOST_TRIED]):
            return late.popleft()
        late.rotate(-1)
    return late.popleft()


class _Paths:
    """Paths to and from some updates: for every op one integer with a bit for each of them."""

    def __init__(
        self, before: Mapping[str, Sequence[str]], order: Sequence[str], updates: Sequence[str]
    ) -> None:
        self._bit = {key: 1 << n for n, key in enumerate(updates)}
        above: dict[str, int] = {}
        below: dict[str, int] = {}
        for key in order:
            bits = self._bit.get(key, 0)
            for first in before[key]:
                bits |= above[first]
            above[key] = bits
        for key in reversed(order):
            bits = below.get(key, 0) | self._bit.get(key, 0)
            below[key] = bits
            for first in before[key] if bits else ():
                below[first] = below.get(first, 0) | bits
        self._above, self._below = above, below

    def to(self, update: str, key: str) -> bool:
        """Whether a path leads from `key` to the update."""
        return bool(self._below[key] & self._bit[update])

    def of(self, update: str, key: str) -> bool:
        """Whether a path leads from the update to `key`."""
        return bool(self._above[key] & self._bit[update])

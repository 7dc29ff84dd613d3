"""TensorFlow's allocator (BFC) on paper: what it takes for a plan's tensors, gaps included.

A limit is kept by an allocator, not by a sum of bytes. It hands out the smallest free chunk that is
large enough, whole unless it is at least twice what is asked for, and cannot use what lies between
two tensors for a third that is larger. How much that costs depends on sizes and order, which a plan
has: so the plan's steps are played through the same rules (TF 2.21, `bfc_allocator.cc`); see
`replay`.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pardnn.tensorflow import small_tensors

GRAIN_BYTES = 256
# A larger remainder is split off whatever the request.
_MOST_WASTED_BYTES = 128 << 20
# A step begins with what the one before has left behind: other places of variables that are given
# a new buffer. Where a step has begun like this before, nothing new comes; otherwise so many steps
# show most of what can come, fewer of a large one.
_MOST_STEPS = 60
_MOST_EVENTS = 100_000
_LASTING = ("variable", "every")

_ENDLESS = 1 << 50

Buffer = tuple[str, str | None, int | None, int, int, int]
"""One of `pardnn.Plan.buffers`: what, key, output, bytes, allocated ns, freed ns."""


@dataclass(frozen=True)
class Replacement:
    """At `time_ns` buffer number `number` becomes the variable's, and its old one is freed."""

    time_ns: int
    variable: str
    number: int


@dataclass(frozen=True)
class Played:
    """What the allocator of a worker had to do for some steps.

    `peak_bytes` is what it counted as in use, `region_bytes` how much of its region it ever used:
    more, since free bytes between tensors may be of no use.
    """

    peak_bytes: int
    region_bytes: int


def rounded(size: int) -> int:
    """The least bytes that the allocator takes for `size`."""
    return -(-size // GRAIN_BYTES) * GRAIN_BYTES


class Allocator:
    """One large region, and the places kept for small tensors."""

    def __init__(self, region_bytes: int = _ENDLESS) -> None:
        self.used = 0
        self.peak = 0
        self.reached = 0
        self._free: list[tuple[int, int]] = []
        self._size_at: dict[int, int] = {}
        self._before: dict[int, int] = {}
        self._taken: dict[int, int] = {}
        address = 0
        for size, count in small_tensors.PLACES:
            for _ in range(count):
                address -= size + 1  # apart: they never become one chunk
                self._give(address, size)
        self._give(0, region_bytes)

    def allocate(self, size: int) -> int | None:
        """The address of a chunk for `size` bytes; None where there is none."""
        wanted = max(GRAIN_BYTES, rounded(size))
        found = bisect.bisect_left(self._free, (wanted, -_ENDLESS))
        if found == len(self._free):
            return None
        held, address = self._free[found]
        self._take(held, address)
        if held >= 2 * wanted or held - wanted >= _MOST_WASTED_BYTES:
            self._give(address + wanted, held - wanted)
            held = wanted
        self._taken[address] = held
        self.used += held
        self.peak = max(self.peak, self.used)
        self.reached = max(self.reached, address + held)
        return address

    def free(self, address: int) -> None:
        """Give a chunk back; it becomes one with free neighbours."""
        size = self._taken.pop(address)
        self.used -= size
        after = self._size_at.get(address + size)
        if after is not None:
            self._take(after, address + size)
            size += after
        before = self._before.get(address)
        if before is not None:
            self._take(address - before, before)
            size += address - before
            address = before
        self._give(address, size)

    def _give(self, address: int, size: int) -> None:
        bisect.insort(self._free, (size, address))
        self._size_at[address] = size
        self._before[address + size] = address

    def _take(self, size: int, address: int) -> None:
        del self._free[bisect.bisect_left(self._free, (size, address))]
        del self._size_at[address]
        del self._before[address + size]


def play(
    buffers: Sequence[Buffer],
    region_bytes: int | None = None,
    replacements: Sequence[Replacement] = (),
) -> Played | None:
    """Play a few steps of what a plan says that a device holds; None if the region is too small.

    Variables come first, in one piece, as `Variables.compact` leaves them. Without a size the
    region has no end.
    """
    allocator = Allocator(_ENDLESS if region_bytes is None else region_bytes)
    lasting = [b for b in buffers if b[0] in _LASTING]
    home: dict[str, int] = {}
    for what, key, _, size, *_ in sorted(lasting, key=lambda b: (b[0] != "variable", -b[3])):
        address = allocator.allocate(size)
        if address is None:
            return None
        if what == "variable" and key is not None:
            home[key] = address
    events = _events(buffers, replacements)
    steps = min(_MOST_STEPS, 1 + _MOST_EVENTS // (1 + len(events)))
    begun: set[tuple[int, ...]] = set()
    while len(begun) < steps and tuple(home.values()) not in begun:
        begun.add(tuple(home.values()))
        if not _play_step(allocator, events, home):
            return None
    return Played(allocator.peak, allocator.reached)


_Event = tuple[int, int, str | None]
"""Number of a buffer, bytes if it is allocated (else it goes), the variable that it goes to."""


def _events(buffers: Sequence[Buffer], replacements: Sequence[Replacement]) -> list[_Event]:
    """What happens in a step, in order."""
    events: list[tuple[int, int, int, int, str | None]] = []
    for number, (what, _, _, size, start, end) in enumerate(buffers):
        if size and what not in _LASTING:
            events.append((start, 2, number, size, None))
            events.append((end, 1, number, 0, None))
    events += [(r.time_ns, 0, r.number, 0, r.variable) for r in replacements]
    return [event[2:] for event in sorted(events, key=lambda e: e[:3])]


def _play_step(allocator: Allocator, events: Iterable[_Event], home: dict[str, int]) -> bool:
    """Whether the region has room for one step; `home` says where variables are."""
    where: dict[int, int] = {}
    for number, size, variable in events:
        if size:
            address = allocator.allocate(size)
            if address is None:
                return False
            where[number] = address
        elif number not in where:
            continue  # it is a variable's by now
        elif variable is None:
            allocator.free(where.pop(number))
        elif variable in home:
            allocator.free(home[variable])
            home[variable] = where.pop(number)
    return True

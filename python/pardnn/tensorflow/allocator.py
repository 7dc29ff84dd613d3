"""TensorFlow's allocator (BFC) on paper: what it takes for a plan's tensors, gaps included.

A limit is kept by an allocator, not by a sum of bytes. It hands out the smallest free chunk that is
large enough, whole unless it is at least twice what is asked for, and cannot use what lies between
two tensors for a third that is larger. How much that costs depends on sizes and order, which a plan
has: so the plan's steps are played through the same rules (TF 2.21, `bfc_allocator.cc`).
"""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pardnn.tensorflow import gates, small_tensors

GRAIN_BYTES = 256
# A larger remainder is split off whatever the request.
_MOST_WASTED_BYTES = 128 << 20
# A step begins with what the one before has left behind; after a few, nothing new happens.
_STEPS = 3
_LASTING = ("variable", "every")

Buffer = tuple[str, str | None, int | None, int, int, int]
"""One of `pardnn.Plan.buffers`: what, key, output, bytes, allocated ns, freed ns."""


_ENDLESS = 1 << 50


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


def play(buffers: Sequence[Buffer], region_bytes: int | None = None) -> Played | None:
    """Play a few steps of what a plan says that a device holds; None if the region is too small.

    Variables come first, in one piece, as `Variables.compact` leaves them. Without a size the
    region has no end.
    """
    allocator = Allocator(_ENDLESS if region_bytes is None else region_bytes)
    lasting = [b for b in buffers if b[0] in _LASTING]
    for buffer in sorted(lasting, key=lambda b: (b[0] != "variable", -b[3])):
        if allocator.allocate(buffer[3]) is None:
            return None
    events = _events([b for b in buffers if b[0] not in _LASTING])
    for _ in range(_STEPS):
        where: dict[int, int] = {}
        for number, size in events:
            if not size:
                allocator.free(where.pop(number))
                continue
            address = allocator.allocate(size)
            if address is None:
                return None
            where[number] = address
    return Played(allocator.peak, allocator.reached)


def _events(buffers: Sequence[Buffer]) -> list[tuple[int, int]]:
    """(number of a buffer, bytes to allocate or 0 to free) in the order of a step."""
    events = []
    for number, (_, _, _, size, start, end) in enumerate(buffers):
        if size:
            events.append((start, 1, number, size))
            events.append((end, 0, number, 0))
    return [(number, size) for _, _, number, size in sorted(events)]


def counted_peaks(plan: Any, step: Any) -> dict[str, int]:
    """What the workers' allocators count as in use at most, by device of the plan.

    `step` is the translated step (`translate.StepGraph`) that the plan is of.
    """
    return {
        device: _played_without_end(buffers).peak_bytes
        for device, buffers in _held(plan, step).items()
    }


def missing(plan: Any, step: Any, regions: Mapping[str, int]) -> dict[str, int]:
    """Devices whose region is too small for their plan, and about how many bytes they lack.

    `regions` are the bytes of the workers' regions that plans may use.
    """
    found = {}
    for device, buffers in _held(plan, step).items():
        if play(buffers, regions[device]) is None:
            reached = _played_without_end(buffers).region_bytes
            found[device] = max(GRAIN_BYTES, reached - regions[device])
    return found


def _played_without_end(buffers: Sequence[Buffer]) -> Played:
    played = play(buffers)
    assert played is not None, "a region without end has room"
    return played


def _held(plan: Any, step: Any) -> dict[str, list[Buffer]]:
    """The plan's buffers as workers hold them: no reserve, and no large copy taken over."""
    starts = dict(zip(step.graph.op_keys, plan.starts.tolist(), strict=True))
    homes = plan.device_of  # made anew each time it is asked for
    result: dict[str, list[Buffer]] = {}
    for device, buffers in plan.buffers.items():
        own = {(key, output) for what, key, output, *_ in buffers if what == "output"}
        parts = result.setdefault(device, [])
        for what, key, output, size, start, end in buffers:
            taker = None
            if what == "copy" and size >= gates.LEAST_HELD_BYTES:
                takers = step.takers.get(f"{key}:{output}", ())
                taker = next((t for t in takers if homes[t[0]] == device and t not in own), None)
            if taker is None:
                if what != "reserve":
                    parts.append((what, key, output, size, start, end))
                continue
            begin = starts[taker[0]]
            read = begin + max(1, step.duration_ns[taker[0]])
            parts.append((what, key, output, size, start, read))
            parts.append(("output", *taker, size, begin, max(read, end)))
    return result

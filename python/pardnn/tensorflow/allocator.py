"""TensorFlow's allocator (BFC) on paper: what it takes for a plan's tensors, gaps included.

A limit is kept by an allocator, not by a sum of bytes. It hands out the smallest free chunk that is
large enough, whole unless it is at least twice what is asked for, and cannot use what lies between
two tensors for a third that is larger. How much that costs depends on sizes and order, which a plan
has: so the plan's steps are played through the same rules (TF 2.21, `bfc_allocator.cc`).
"""

from __future__ import annotations

import bisect
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pardnn.tensorflow import gates, small_tensors

GRAIN_BYTES = 256
# A larger remainder is split off whatever the request.
_MOST_WASTED_BYTES = 128 << 20
# A step begins with what the one before has left behind: other places of variables that are given
# a new buffer. Where a step has begun like this before, nothing new comes; otherwise so many steps
# show most of what can come, fewer of a large one.
_MOST_STEPS = 60
_MOST_EVENTS = 100_000
# When copies come is up to chance; in how many other ways than the plan's a step is played.
_OTHER_WAYS = 6
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


_FREE, _ALLOCATE = "", None
_Event = tuple[int, int, str | None]


def _events(buffers: Sequence[Buffer], replacements: Sequence[Replacement]) -> list[_Event]:
    """(number of a buffer, bytes, what happens to it) in the order of a step.

    It is allocated, freed, or becomes the buffer of the variable named.
    """
    events: list[tuple[int, int, int, int, str | None]] = []
    for number, (what, _, _, size, start, end) in enumerate(buffers):
        if size and what not in _LASTING:
            events.append((start, 2, number, size, _ALLOCATE))
            events.append((end, 1, number, size, _FREE))
    events += [(r.time_ns, 0, r.number, 0, r.variable) for r in replacements]
    return [
        (number, size, what) for _, _, number, size, what in sorted(events, key=lambda e: e[:3])
    ]


def _play_step(allocator: Allocator, events: Iterable[_Event], home: dict[str, int]) -> bool:
    """Whether the region has room for one step; `home` says where variables are."""
    where: dict[int, int] = {}
    for number, size, what in events:
        if what is _ALLOCATE:
            address = allocator.allocate(size)
            if address is None:
                return False
            where[number] = address
        elif what == _FREE:
            if number in where:
                allocator.free(where.pop(number))
        elif number in where:
            allocator.free(home[what])
            home[what] = where.pop(number)
    return True


@dataclass
class _Held:
    """What a worker holds in a step."""

    buffers: list[Buffer] = field(default_factory=list)
    replacements: list[Replacement] = field(default_factory=list)


class Replay:
    """Steps of a plan as the allocators of its workers see them, in several ways that they may go.

    Ops keep their sequence; a copy may come at any time between the plan's request for it and the
    plan's arrival, and which chunk it is given decides about those after it. `step` is the
    translated step (`step_graph.StepGraph`) that `plan` is of.
    """

    def __init__(self, plan: Any, step: Any) -> None:
        self._ways: dict[str, list[_Held]] = {}
        came: dict[str, dict[tuple[str, int], tuple[int, int]]] = {}
        for key, output, device, request_ns, _, arrival_ns, _ in plan.transfers:
            if output is not None:
                came.setdefault(device, {})[key, output] = request_ns, arrival_ns
        for device, held in _as_planned(plan, step).items():
            ways = self._ways[device] = [held]
            if any(b[0] == "copy" and b[3] >= gates.LEAST_HELD_BYTES for b in held.buffers):
                windows = came.get(device, {})
                ways += [_another_way(held, windows, seed) for seed in range(_OTHER_WAYS)]

    def peaks(self) -> dict[str, int]:
        """What the allocators count as in use at most, by device of the plan."""
        return {
            device: max(_played_without_end(held).peak_bytes for held in ways)
            for device, ways in self._ways.items()
        }

    def missing(self, regions: Mapping[str, int]) -> dict[str, int]:
        """Devices whose region is too small for their plan, and about how many bytes they lack.

        `regions` are the bytes of the workers' regions that plans may use.
        """
        found = {}
        for device, ways in self._ways.items():
            region = regions[device]
            lacking = [h for h in ways if play(h.buffers, region, h.replacements) is None]
            if lacking:
                reached = max(_played_without_end(held).region_bytes for held in lacking)
                found[device] = max(GRAIN_BYTES, reached - region)
        return found


def _played_without_end(held: _Held) -> Played:
    played = play(held.buffers, replacements=held.replacements)
    assert played is not None, "a region without end has room"
    return played


def _another_way(
    held: _Held, windows: Mapping[tuple[str, int], tuple[int, int]], seed: int
) -> _Held:
    """The same with copies at other times: the first of these ways with all as late as can be."""
    chance = random.Random(seed)

    def moved(buffer: Buffer) -> Buffer:
        what, key, output, size, start, end = buffer
        if what != "copy" or key is None or output is None:
            return buffer
        request_ns, arrival_ns = windows.get((key, output), (start, start))
        late = chance.random() if seed else 1.0
        start = request_ns + int(late * (arrival_ns - request_ns))
        return what, key, output, size, min(start, end - 1), end

    return _Held([moved(buffer) for buffer in held.buffers], held.replacements)


def _as_planned(plan: Any, step: Any) -> dict[str, _Held]:
    """The plan's buffers as workers hold them: no reserve, no copy of a variable that is only read,
    and no large tensor taken over that was received.
    """
    starts = dict(zip(step.graph.op_keys, plan.starts.tolist(), strict=True))
    homes = plan.device_of  # made anew each time it is asked for

    def end_of(key: str) -> int:
        return int(starts[key]) + max(1, step.duration_ns[key])

    result: dict[str, _Held] = {}
    indices: dict[str, dict[str, int]] = {}
    for device, buffers in plan.buffers.items():
        own = {(key, output) for what, key, output, *_ in buffers if what == "output"}
        held = result[device] = _Held()
        given_up: list[Buffer] = []
        for what, key, output, size, start, end in buffers:
            if what == "reserve" or (what == "output" and key in step.shared_reads):
                continue
            taker = None
            if what == "copy" and size >= gates.LEAST_HELD_BYTES:
                takers = step.takers.get(f"{key}:{output}", ())
                taker = next((t for t in takers if homes[t[0]] == device and t not in own), None)
            if taker is not None:
                read = end_of(taker[0])
                given_up.append(("output", *taker, size, starts[taker[0]], max(read, end)))
                end = read
            if what == "every" and key in step.input_readers:
                # It comes anew with each step and goes when it was read; constants stay.
                readers = [r for r in step.input_readers[key] if homes.get(r) == device]
                what, end = "input", max(map(end_of, readers), default=end)
            held.buffers.append((what, key, output, size, start, end))
        index = indices[device] = _by_tensor(held.buffers)
        for output in given_up:
            _give_another(held.buffers, index, output, end_of(str(output[1])), step.taken_from)
    for assign, (variable, tensor) in step.assigned.items():
        number = _number_of(tensor, indices[homes[assign]], step.taken_from)
        if number is not None:
            replacement = Replacement(end_of(assign), variable, number)
            result[homes[assign]].replacements.append(replacement)
    return result


def _give_another(
    buffers: list[Buffer],
    index: dict[str, int],
    output: Buffer,
    read_ns: int,
    taken_from: Mapping[str, Sequence[str]],
) -> None:
    """A buffer for an output that is given none of the copy it could take over.

    The kernel tries its other inputs then, and takes one that nobody needs after it has read them.
    """
    name = f"{output[1]}:{output[2]}"
    for tensor in taken_from[name][1:]:
        number = _number_of(tensor, index, taken_from)
        if number is not None and buffers[number][0] == "output" and buffers[number][5] == read_ns:
            buffers[number] = (*buffers[number][:5], output[5])
            index[name] = number
            return
    index[name] = len(buffers)
    buffers.append(output)


def _by_tensor(buffers: Sequence[Buffer]) -> dict[str, int]:
    named = enumerate(buffers)
    return {f"{b[1]}:{b[2]}": n for n, b in named if b[0] in ("output", "copy")}


def _number_of(
    tensor: str, index: Mapping[str, int], taken_from: Mapping[str, Sequence[str]]
) -> int | None:
    """The buffer that a tensor is in, its own or one taken over; None where it has none here."""
    name: str | None = tensor
    while name is not None and name not in index:
        name = next(iter(taken_from.get(name, ())), None)
    return None if name is None else index[name]

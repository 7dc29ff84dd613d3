"""A plan's steps as its workers' allocators will see them: what they count, what they lack."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pardnn.tensorflow import gates
from pardnn.tensorflow.allocator import GRAIN_BYTES, Buffer, Played, Replacement, play

# When copies come is up to chance; in how many other ways than the plan's a step is played.
_OTHER_WAYS = 6


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

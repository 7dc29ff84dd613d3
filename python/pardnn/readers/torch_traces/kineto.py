"""Times of ops out of a Kineto trace, which may hold many iterations.

A Kineto trace of several iterations has a multiple of the calls of each name, and the n-th call of
every round is the n-th of the trace. Where the counts do not fit, `External id` is the call's
`rf_id` if both have one name, as ids of another run mean other calls; else the time is the median
of all calls of the name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from pardnn.readers.content import Content
from pardnn.readers.errors import ReadError
from pardnn.readers.torch_traces.trace import Call
from pardnn.readers.values import number

_DEVICE = ("kernel", "gpu_memset", "gpu_memcpy")
_LAUNCH = ("cuda_runtime", "cuda_driver", "hip_runtime")
_NS_PER_US = 1000


@dataclass
class _Event:
    name: str
    begin: float
    end: float
    external: object
    device_us: float = 0
    has_kernel: bool = False


@dataclass
class Times:
    """``ns`` by number of the node; ``kernels``: how many of these are times of
    kernels. ``by_name``: calls whose time is that of all calls of the name.
    """

    ns: dict[int, int] = field(default_factory=dict)
    kernels: int = 0
    iterations: int = 1
    by_name: list[int] = field(default_factory=list)


def is_kineto(found: object) -> bool:
    """Whether JSON is a Kineto trace."""
    return (
        isinstance(found, dict)
        and isinstance(found.get("traceEvents"), list)
        and ("deviceProperties" in found or "schemaVersion" in found)
    )


def times(path: str, calls: list[Call]) -> Times:
    """The median time of each call that the file knows. Raises ReadError."""
    content = Content.of_file(Path(path))
    if not is_kineto(content.json):
        raise ReadError(content.name, "no Kineto trace", "the one of the run of the trace")
    events = _events(content.json["traceEvents"], content.name)
    by_id = {event.external: event for event in events}
    named: dict[str, list[_Event]] = {}
    for event in events:
        named.setdefault(event.name, []).append(event)
    result = Times()
    for name, ours in _by_name(calls).items():
        theirs = named.get(name, [])
        rounds = len(theirs) // len(ours)
        for at, call in enumerate(ours):
            same = theirs[at :: len(ours)] if rounds * len(ours) == len(theirs) else []
            one = by_id.get(call.rf_id)
            if not same and one is not None and one.name == name:
                same = [one]
            if not same and theirs:
                same = theirs
                result.by_name.append(call.number)
            if same:
                with_kernel = [each for each in same if each.has_kernel]
                spans = [e.device_us for e in with_kernel] or [e.end - e.begin for e in same]
                result.ns[call.number] = round(median(spans) * _NS_PER_US)
                result.kernels += bool(with_kernel)
                result.iterations = max(result.iterations, rounds)
    return result


def _by_name(calls: Iterable[Call]) -> dict[str, list[Call]]:
    found: dict[str, list[Call]] = {}
    for call in calls:
        found.setdefault(call.name, []).append(call)
    return found


def _events(rows: list[Any], name: str) -> list[_Event]:
    """Ops in order of time, each with the time of the kernels launched inside of it."""
    device: dict[object, float] = {}
    threads: dict[str, list[tuple[float, float, bool, Any]]] = {}
    for at, row in enumerate(rows):
        if not isinstance(row, dict) or row.get("ph") != "X":
            continue
        kind, more, place = row.get("cat"), row.get("args"), f"{name}: traceEvents[{at}]"
        more = more if isinstance(more, dict) else {}
        if kind not in ("cpu_op", *_DEVICE, *_LAUNCH):
            continue
        span = number(row.get("dur"), place, "dur")
        if kind in _DEVICE:
            one = str(more.get("correlation"))
            device[one] = device.get(one, 0) + span
            continue
        begin = number(row.get("ts"), place, "ts")
        thread = threads.setdefault(f"{row.get('pid')} {row.get('tid')}", [])
        if kind == "cpu_op":
            event = _Event(str(row.get("name")), begin, begin + span, _hashable(more))
            thread.append((begin, -span, False, event))
        else:
            thread.append((begin, -span, True, str(more.get("correlation"))))
    found = [event for thread in threads.values() for event in _nested(thread, device)]
    return sorted(found, key=lambda event: event.begin)


def _hashable(more: Mapping[str, object]) -> object:
    found = more.get("External id")
    return found if isinstance(found, int | str) else None


def _nested(
    thread: list[tuple[float, float, bool, Any]], device: Mapping[object, float]
) -> list[_Event]:
    """The ops of a thread; what is launched inside of an op is the op's."""
    thread.sort(key=lambda each: each[:3])
    found: list[_Event] = []
    around: list[_Event] = []
    for begin, _, is_launch, what in thread:
        while around and around[-1].end <= begin:
            around.pop()
        if not is_launch:
            around.append(what)
            found.append(what)
        elif what in device:
            for event in around[-100:]:
                event.device_us += device[what]
                event.has_kernel = True
    return found

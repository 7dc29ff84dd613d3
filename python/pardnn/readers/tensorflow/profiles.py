"""Times of ops out of what TensorFlow's profilers write: StepStats, RunMetadata, timelines.

An op appears on several tracks: the host's row, where it was dispatched, one for each stream its
kernels ran on, and `stream:all`, which repeats these. One track counts: that of the device, if the
op is there. Of several steps in one file, the median counts, without a first one that was cold.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median_low
from typing import Any, TypeGuard

from pardnn.readers.content import Content
from pardnn.readers.errors import ReadError
from pardnn.readers.tensorflow import files, types

_STREAM_ALL = "stream:all"
_STREAM = re.compile(r"stream:\d+")
_GPU = re.compile(r"gpu:\d", re.IGNORECASE)
# A first step that takes this many times what a usual one takes loaded kernels and tuned them.
_COLD = 3
_MOST_NS = 1 << 62
_HOST = "host"
_COPIES = ("MEMCPY", "Memcpy", "MEMSET")


@dataclass(frozen=True)
class Event:
    """One row of a track: node `name` of type `op`, its inputs where the profiler names them."""

    track: str
    name: str
    op: str
    start_ns: int
    length_ns: int
    inputs: tuple[str, ...] = ()


@dataclass
class Profile:
    """Times by node name; `sizes` of outputs by (name, number); sentences about both.

    ``counts``: what the file holds.
    """

    ns: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    sizes: dict[tuple[str, int], int] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    counts: dict[str, object] = field(default_factory=dict)


def is_profile(content: Content) -> bool:
    """Whether a file is a profile of TensorFlow's."""
    return files.kind_of(content.data) in files.PROFILES or is_timeline(content)


def is_timeline(content: Content) -> bool:
    """Whether a file is a timeline: Chrome's events, those of ops with TensorFlow's category."""
    if not content.looks_like_json or b'"traceEvents"' not in content.data[: 1 << 20]:
        return False
    found = content.object("traceEvents")
    events = found["traceEvents"] if found is not None else None
    return isinstance(events, list) and any(
        isinstance(e, dict) and e.get("cat") == "Op" and isinstance(e.get("args"), dict)
        for e in events
    )


def profile_of(path: str | Path) -> Profile:
    """The times in a file. Raises ReadError; OSError where the system refuses."""
    content = Content.of_file(Path(path))
    if not is_profile(content):
        raise ReadError(
            content.name, "no profile", "TensorFlow's StepStats, RunMetadata or timeline JSON"
        )
    return profile_in(content)


def profile_in(content: Content) -> Profile:
    """The times in a file that is a profile."""
    profile = Profile()
    if is_timeline(content):
        events = content.json["traceEvents"]
        profile.events = list(_timeline(content, events))
        profile.counts = _event_counts(events)
        profile.counts["meta"] = sorted(set(content.json) - {"traceEvents"})
    else:
        kind = files.kind_of(content.data)
        assert kind is not None
        message = files.load(content, kind)
        stats = message.step_stats if kind == "RunMetadata" else message
        profile.events = list(_step_stats(stats, profile.sizes))
        profile.counts = {"bytes": len(content.data)}
    # Copies between devices are what the planner decides, not ops.
    profile.events = [e for e in profile.events if not (e.op or e.name).startswith(_COPIES)]
    _times(profile)
    return profile


# --- rows --------------------------------------------------------------------------------------


def _step_stats(stats: Any, sizes: dict[tuple[str, int], int]) -> Iterator[Event]:
    for device in stats.dev_stats:
        track = _track(device.device)
        if track is None:
            continue
        for node in device.node_stats:
            start = node.all_start_micros * 1000
            first = node.op_start_rel_nanos or node.op_start_rel_micros * 1000
            last = node.op_end_rel_nanos or node.op_end_rel_micros * 1000
            last = last or node.all_end_rel_micros * 1000
            op, inputs = _label(node.timeline_label)
            length = max(0, last - first)
            yield Event(track, node.node_name, op, start + first, length, inputs)
            for output in node.output if _HOST in track else ():
                size = _described_bytes(output.tensor_description)
                if size is not None:
                    sizes[node.node_name, output.slot] = size


def _described_bytes(tensor: Any) -> int | None:
    item = types.item_bytes(tensor.dtype)
    if item is None or tensor.shape.unknown_rank:
        return None
    for one in tensor.shape.dim:
        item *= one.size
    return item if 0 <= item < _MOST_NS else None


def _label(text: str) -> tuple[str, tuple[str, ...]]:
    """Type and inputs in a label such as `conv = Conv2D(x, w)`."""
    found = re.search(r" = ([\w.]+)\(([^()]*)\)", text)
    if found is None:
        return "", ()
    return found[1], tuple(part.strip() for part in found[2].split(",") if part.strip())


def _timeline(content: Content, events: Sequence[Any]) -> Iterator[Event]:
    tracks: dict[object, str | None] = {}
    for event in events:
        if isinstance(event, dict) and event.get("name") == "process_name":
            arguments = event.get("args")
            label = arguments.get("name", "") if isinstance(arguments, dict) else ""
            tracks[_hashable(event.get("pid"))] = _track(str(label).removesuffix(" Compute"))
    for number, event in enumerate(events):
        if not isinstance(event, dict) or event.get("ph") != "X" or event.get("cat") != "Op":
            continue
        track = tracks.get(_hashable(event.get("pid")), _HOST)
        arguments = event.get("args")
        if track is None or not isinstance(arguments, dict) or "name" not in arguments:
            continue
        start, length = event.get("ts"), event.get("dur")
        if not _is_time(start) or not _is_time(length):
            raise ReadError(
                f"{content.name}: event {number}",
                f"ts {start!r:.40} and dur {length!r:.40}",
                "microseconds, 0 or more",
            )
        inputs = tuple(str(v) for k, v in sorted(arguments.items()) if k.startswith("input"))
        kind = str(arguments.get("op") or event.get("name") or "")
        ns = round(float(start) * 1000), round(float(length) * 1000)
        yield Event(track, str(arguments["name"]), kind, *ns, inputs)


def _is_time(value: object) -> TypeGuard[float]:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return 0 <= value < _MOST_NS / 1000


def _hashable(value: object) -> object:
    return value if isinstance(value, int | str) else str(value)


def _track(device: str) -> str | None:
    """`stream:all`, `stream:N`, a host's row, or None for rows of copies and of tensors."""
    if device.endswith(_STREAM_ALL):
        return _STREAM_ALL
    found = _STREAM.search(device)
    if found is not None:
        return found[0]
    if "memcpy" in device or device.endswith(("Tensors", "Allocators")):
        return None
    return f"{_HOST} {device}"


# --- one time for each op ----------------------------------------------------------------------


def _times(profile: Profile) -> None:
    steps = _steps(profile.events)
    cold = _is_cold(steps)
    counted = steps[1:] if cold else steps
    found: dict[str, list[int]] = defaultdict(list)
    on_device = {e.name for e in profile.events if e.track.startswith("stream")}
    for step in counted:
        for name, length in _one_track(step, on_device).items():
            found[name].append(length)
    profile.ns = {name: median_low(lengths) for name, lengths in found.items()}
    _say(profile, len(steps), cold, on_device)


def _steps(events: Iterable[Event]) -> list[list[Event]]:
    """Events by step: each begins with the row `_SOURCE` of the first device that has one."""
    steps: list[list[Event]] = [[]]
    started: set[str] = set()
    for event in sorted(events, key=lambda e: e.start_ns):
        if event.name == "_SOURCE":
            if event.track in started:
                steps.append([])
                started.clear()
            started.add(event.track)
        steps[-1].append(event)
    return [step for step in steps if step]


def _one_track(step: Sequence[Event], on_device: set[str]) -> dict[str, int]:
    """Time of each op in one step, on the one track that counts for it."""
    rows: dict[str, dict[str, list[Event]]] = defaultdict(lambda: defaultdict(list))
    for event in step:
        rows[event.name][event.track].append(event)
    result = {}
    for name, tracks in rows.items():
        if name == "_SOURCE" or name == "_SINK":
            continue
        streams = {t: found for t, found in tracks.items() if t.startswith("stream")}
        if name in on_device and not streams:
            continue
        chosen = streams.get(_STREAM_ALL) or max((streams or tracks).values(), key=_covered)
        result[name] = _covered(chosen)
    return result


def _covered(events: Sequence[Event]) -> int:
    """Time that the kernels of an op cover, what overlaps once."""
    total = end = 0
    for event in sorted(events, key=lambda e: e.start_ns):
        last = event.start_ns + event.length_ns
        total += max(0, last - max(end, event.start_ns))
        end = max(end, last)
    return total


def _is_cold(steps: Sequence[Sequence[Event]]) -> bool:
    """Whether the first of several steps took far longer than the others."""
    if len(steps) < 2:
        return False
    lengths = [max(e.start_ns + e.length_ns for e in s) - s[0].start_ns for s in steps]
    return lengths[0] > _COLD * median_low(lengths[1:])


def _say(profile: Profile, steps: int, cold: bool, on_device: set[str]) -> None:
    count = len(profile.ns)
    if cold:
        profile.notes.append(
            f"the first of {steps} steps was cold and is left out; times of {count} ops are the "
            f"median of {steps - 1}"
        )
    elif steps > 1:
        profile.notes.append(f"times of {count} ops are the median of {steps} steps")
    else:
        profile.notes.append(
            f"times of {count} ops are of one step; the first of a run is cold, profile a later one"
        )
    hosts = {e.track for e in profile.events}
    if not on_device and any(_GPU.search(track) for track in hosts):
        profile.notes.append(
            "only rows of the host are in the profile: times of a GPU's ops are those of dispatch"
        )


def _event_counts(events: Sequence[Mapping[str, Any]]) -> dict[str, object]:
    """Events of a timeline, by phase and by category."""
    phases: dict[str, int] = defaultdict(int)
    categories: dict[str, int] = defaultdict(int)
    for event in events:
        if isinstance(event, dict):
            phases[str(event.get("ph"))] += 1
            categories[str(event.get("cat") or "null")] += 1
    return {"events": len(events), "ph": dict(phases), "cats": dict(categories)}

"""A profile of TensorFlow's by itself: the ops that ran, their inputs by name, their times.

Where the graph is at hand, its file is read and the profile given by --costs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pardnn import escape_key
from pardnn.readers.content import Content
from pardnn.readers.errors import ReadError
from pardnn.readers.reading import Options, Reading, started
from pardnn.readers.tensorflow.profiles import Event, Profile, is_profile, profile_in

NAME = "tensorflow-profile"
OPTIONS: tuple[str, ...] = ()
_NUMBERED = re.compile(r"(.+):(\d{1,4})")

Tensor = tuple[str, int]


def recognise(content: Content) -> bool:
    """Whether a file is StepStats, RunMetadata or a timeline."""
    return is_profile(content)


def read(content: Content, options: Options) -> Reading:
    """The ops of the profile's step as a graph. Raises ReadError."""
    profile = profile_in(content)
    events = _ops(profile)
    if not events:
        raise ReadError(content.name, "a profile without ops", "at least one")
    inputs = _edges(events)
    outputs: dict[str, int] = {}
    for name, number in (tensor for given in inputs.values() for tensor in given):
        outputs[name] = max(outputs.get(name, 0), number + 1)
    graph = started(NAME, "measured", profile.counts)
    unknown: list[str] = []
    for name, given in inputs.items():
        sizes = [profile.sizes.get((name, n)) for n in range(outputs.get(name, 0))]
        unknown += [name] if None in sizes else []
        texts = [f"{escape_key(one)}:{n}" if n else escape_key(one) for one, n in given]
        kind = escape_key(events[name].op or "Op")
        graph.op(escape_key(name), kind, profile.ns[name], texts, sizes)
    return Reading(graph, NAME, [*profile.notes, *_missing(events, unknown)], profile.counts)


def _ops(profile: Profile) -> dict[str, Event]:
    """One event of each op, one that names inputs where there is one."""
    found: dict[str, Event] = {}
    for event in profile.events:
        if event.name in profile.ns and (event.name not in found or event.inputs):
            found[event.name] = event
    return found


def _edges(events: Mapping[str, Event]) -> dict[str, list[Tensor]]:
    """What each op reads of the others, ops in topological order; edges that go round are cut."""
    given = {name: _inputs(event, events) for name, event in events.items()}
    order: dict[str, None] = {}
    open_ops: set[str] = set()
    for name in given:
        stack = [(name, iter(given[name]))] if name not in order else []
        while stack:
            current, rest = stack[-1]
            open_ops.add(current)
            before = next(rest, None)
            if before is None:
                order[current] = None
                open_ops.discard(current)
                stack.pop()
            elif before[0] not in order and before[0] not in open_ops:
                stack.append((before[0], iter(given[before[0]])))
    place = {name: number for number, name in enumerate(order)}
    return {name: [t for t in given[name] if place[t[0]] < place[name]] for name in order}


def _inputs(event: Event, events: Mapping[str, Event]) -> list[Tensor]:
    """Inputs of an op that are ops of the profile themselves; `^` marks control edges."""
    found = []
    for text in event.inputs:
        numbered = _NUMBERED.fullmatch(text.lstrip("^"))
        name = numbered[1] if numbered else text.lstrip("^")
        if name in events and name != event.name:
            found.append((name, int(numbered[2]) if numbered else 0))
    return found


def _missing(events: Mapping[str, Event], unknown: list[str]) -> list[str]:
    notes = ["a profile alone has neither variables nor ops that did not run: give it by --costs"]
    if unknown:
        notes.append(f"{len(unknown)} of {len(events)} ops ({unknown[0]} first) give unknown sizes")
    return notes

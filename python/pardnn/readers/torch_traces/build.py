"""A trace as a graph: the outermost calls of operators, with what they read, make and change.

A storage is a buffer; tensors that lie in it are views of it. A storage that is read before
anything made it is an input, and a variable where a call changes it. A call that changes several
variables becomes one op for each of them.
"""

from __future__ import annotations

import pardnn
from pardnn.readers.content import Content
from pardnn.readers.errors import ReadError
from pardnn.readers.names import Keys
from pardnn.readers.reading import Options, Reading, started
from pardnn.readers.torch_traces import kineto
from pardnn.readers.torch_traces.trace import Call, Stored, calls

NAME = "torch-trace"
OPTIONS: tuple[str, ...] = ("costs",)
_BACKWARD = "autograd::engine::"
_UPDATE = "Optimizer.step"


def recognise(content: Content) -> bool:
    """Nodes and a schema, with the process of the trace; or Kineto's events."""
    return content.object("schema", "pid", "nodes") is not None or kineto.is_kineto(content.json)


def read(content: Content, options: Options) -> Reading:
    """The graph of the calls of a trace. Raises ReadError."""
    if kineto.is_kineto(content.json):
        raise ReadError(
            content.name,
            "a Kineto trace (times, no tensors)",
            "the execution trace of the run, with this file behind --costs",
        )
    nodes = calls(content.json["nodes"], content.name)
    counts = {"nodes": len(nodes), "schema": str(content.json["schema"])}
    chosen, phases = _outermost(nodes)
    if not chosen:
        raise ReadError(content.name, "no call of an operator", "at least one")
    times = None if options.costs is None else kineto.times(options.costs, nodes)
    graph = started(NAME, "measured" if times else "unknown", counts)
    step = _Step(graph, chosen, phases, times.ns if times else {})
    step.add_all()
    notes = [f"the {len(chosen)} outermost calls of operators are ops; what they call is inside"]
    if times is None:
        notes.append("a trace has no times: give the Kineto trace of the run by --costs FILE")
    else:
        notes += _about(times, chosen)
    return Reading(graph, NAME, notes, counts)


def _about(times: kineto.Times, chosen: list[Call]) -> list[str]:
    known = sum(call.number in times.ns for call in chosen)
    notes = [f"{known} of {len(chosen)} ops have times, medians of up to {times.iterations} runs"]
    numbers = {call.number for call in chosen}
    guessed = sum(number in numbers for number in times.by_name)
    if guessed:
        notes.append(f"{guessed} of them have the median of all calls of their name")
    if times.kernels:
        notes.append("where a call launched kernels its time is theirs, else that of the host")
    else:
        notes.append("the Kineto trace has no kernels: all times are those of the host")
    return notes


def _outermost(nodes: list[Call]) -> tuple[list[Call], dict[int, str]]:
    """Calls of operators that no other one calls, and the phase of each."""
    by_number = {call.number: call for call in nodes}
    inside: dict[int, tuple[bool, str]] = {}
    for call in nodes:
        path = [call]
        while path[-1].number not in inside and path[-1].parent != path[-1].number:
            path.append(by_number[path[-1].parent])
        for each in reversed(path):
            above = by_number[each.parent]
            called, phase = inside.get(above.number, (False, "f"))
            phase = "b" if each.name.startswith(_BACKWARD) else phase
            phase = "u" if each.name.startswith(_UPDATE) else phase
            called = called or (above is not each and bool(above.schema))
            inside.setdefault(each.number, (called, phase))
    chosen = [call for call in nodes if call.schema and not inside[call.number][0]]
    return chosen, {number: phase for number, (_, phase) in inside.items()}


class _Step:
    """Adds calls in the order in which they ran."""

    def __init__(
        self, graph: pardnn.Graph, chosen: list[Call], phases: dict[int, str], ns: dict[int, int]
    ) -> None:
        self._graph, self._calls, self._phases, self._ns = graph, chosen, phases, ns
        self._keys = Keys()
        self._now: dict[int, str] = {}  # reference to what a storage holds
        self._size: dict[int, int] = {}
        self._readers: dict[int, list[str]] = {}  # ops that read it since it was last changed
        self._sizes = _sizes(chosen)
        self._variables = _variables(chosen)
        self._groups = _groups(chosen, self._variables)
        self._held: set[int] = set()  # storages that hold a variable by now

    def add_all(self) -> None:
        """Every call."""
        for call in self._calls:
            for part, share in _parts(call, self._variables):
                self._add(call, part, share)

    def _add(self, call: Call, inputs: list[list[Stored]], share: float) -> None:
        key = self._keys.new(f"{call.name}.{call.number}")
        read = list(dict.fromkeys(one.storage for each in inputs for one in each))
        changed = _changed(call, inputs)
        for storage in read:
            self._begin(storage)
        written = [storage for storage in changed if storage in self._held]
        texts = [("!" if each in written else "") + self._now[each] for each in read]
        after = dict.fromkeys(one for each in written for one in self._readers.get(each, ()))
        made = [*changed]
        if share == 1:
            made += [one.storage for one in call.outputs]
        made = list(dict.fromkeys(made))
        outputs = [self._output(call, each, read, changed) for each in made]
        ns = self._ns.get(call.number)
        self._graph.op(
            key,
            pardnn.escape_key(call.name),
            None if ns is None else round(ns * share),
            [*texts, *(f"^{each}" for each in after)],
            outputs,
            group=self._groups[written[0]] if written else None,
            phase=self._phases[call.number],
        )
        for storage in read:
            self._readers.setdefault(storage, []).append(key)
        for number, storage in enumerate(made):
            if storage in changed or storage not in read:
                self._now[storage] = f"{key}:{number}" if number else key
                self._readers[storage] = []

    def _output(self, call: Call, storage: int, read: list[int], changed: list[int]) -> int | str:
        """A view, a variable that was changed, a tensor that was changed, or a new one."""
        if storage not in read:
            self._held.discard(storage)
            self._size[storage] = self._sizes[call.number, storage]
            return self._size[storage]
        if storage in changed and storage not in self._held:
            return f"{self._size[storage]}~{read.index(storage)}"
        return f"={read.index(storage)}"

    def _begin(self, storage: int) -> None:
        """What holds a storage that nothing made."""
        if storage in self._now:
            return
        size = self._sizes[0, storage]
        self._size[storage] = size
        key = self._keys.new(f"storage{storage}")
        if storage in self._variables:
            variable, group = self._keys.new(f"storage{storage}.value"), self._groups[storage]
            self._held.add(storage)
            self._graph.var(variable, size, group=group)
            self._graph.op(key, "Read", 0, [variable], ["=0"], group=group, phase="f")
        else:
            self._graph.op(key, "Input", 0, [], [size], phase="f")
        self._now[storage] = key


def _changed(call: Call, inputs: list[list[Stored]]) -> list[int]:
    """Storages that a call changes."""
    lists = [inputs[at] for at in call.changes if at < len(inputs)]
    return list(dict.fromkeys(one.storage for each in lists for one in each))


def _sizes(chosen: list[Call]) -> dict[tuple[int, int], int]:
    """Bytes of a storage by the call that made it (0: none did): the most that a tensor reaches."""
    found: dict[tuple[int, int], int] = {}
    maker: dict[int, int] = {}
    for call in chosen:
        read = [one for each in call.inputs for one in each]
        known = {one.storage for one in read}
        maker.update({one.storage: call.number for one in call.outputs if one.storage not in known})
        for one in [*read, *call.outputs]:
            at = maker.get(one.storage, 0), one.storage
            found[at] = max(found.get(at, 0), one.bytes)
    return found


def _variables(chosen: list[Call]) -> set[int]:
    """Storages that are there before the step and changed in it."""
    made: set[int] = set()
    found: set[int] = set()
    for call in chosen:
        read = {one.storage for each in call.inputs for one in each}
        found |= set(_changed(call, call.inputs)) - made
        made |= {one.storage for one in call.outputs} - read
    return found


def _groups(chosen: list[Call], variables: set[int]) -> dict[int, str]:
    """Variables that one op changes share a group."""
    above = {storage: storage for storage in variables}

    def top(storage: int) -> int:
        while above[storage] != storage:
            above[storage] = above[above[storage]]
            storage = above[storage]
        return storage

    for call in chosen:
        for inputs, _ in _parts(call, variables):
            changed = [each for each in _changed(call, inputs) if each in variables]
            for one in changed[1:]:
                above[top(one)] = top(changed[0])
    return {storage: f"storage{top(storage)}" for storage in variables}


def _parts(call: Call, variables: set[int]) -> list[tuple[list[list[Stored]], float]]:
    """A call as it is, or what it does to each element of the lists that it changes."""
    lists = [call.inputs[at] for at in call.changes if at < len(call.inputs)]
    count = max((len(each) for each in lists), default=0)
    if count <= 1 or not any(one.storage in variables for each in lists for one in each):
        return [(call.inputs, 1.0)]
    total = sum(one.bytes for one in lists[0]) or 1
    parts = []
    for at in range(count):
        inputs = [[each[at]] if len(each) == count else each for each in call.inputs]
        size = inputs[call.changes[0]][0].bytes if inputs[call.changes[0]] else 0
        parts.append((inputs, min(size / total, 1.0)))
    return parts

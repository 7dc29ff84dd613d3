"""What a look ahead saw, as the planner sees it, and the plan as ranks use it."""

from __future__ import annotations

import collections
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pardnn
from pardnn.torch.script.calls import Key
from pardnn.torch.script.record import Memory, OpSeen, Seen
from pardnn.torch.script.tables import Tables

# A memory that is held for some ops after its last reader is stated so from this size on.
_HELD_BYTES = 16 * 1024
_Reads = dict[int, collections.Counter[int]]


@dataclass
class _Line:
    """One op of the graph to be, before places in the sequence are known."""

    key: str
    type: str
    cost: int
    inputs: list[str]
    outputs: list[Any]
    unit: int
    phase: str
    name: str


class StepGraph:
    """The graph of the step between two optimizer steps; ``graph`` is what is planned."""

    def __init__(self, seen: Seen) -> None:
        self._seen = seen
        self._lines: list[_Line] = []
        self._now: dict[int, str] = {}
        self._readers: dict[int, list[str]] = collections.defaultdict(list)
        self._touched: set[int] = set()
        self._shared: dict[int, int] = {}
        self._reads = 0
        self._ends: dict[int, list[int]] = collections.defaultdict(list)
        self._last_use = self._last_uses()
        self._variables = [
            number for number, memory in enumerate(seen.memories) if self._lasts(memory)
        ]
        self._lasting = set(self._variables)
        self._build()
        self.graph = self._made()

    def _lasts(self, memory: Memory) -> bool:
        """Whether it is there before, during and after the step."""
        begin, end = self._seen.begin, self._seen.end
        if memory.parameter is not None and memory.born <= end:
            return memory.gone is None or memory.gone > end
        return memory.born <= begin and (memory.gone is None or memory.gone > end)

    def _last_uses(self) -> dict[int, int]:
        last = {}
        for position in range(self._seen.begin, self._seen.end):
            op = self._seen.ops[position]
            for number in (*op.reads, *op.writes):
                last[number] = position
        return last

    def _build(self) -> None:
        begin, end = self._seen.begin, self._seen.end
        for number, memory in enumerate(self._seen.memories):
            if number in self._lasting:
                continue
            gone = end if memory.gone is None else min(memory.gone, end)
            if memory.born <= begin < gone:
                self._add(f"given{number}", "Given", 1, [], [memory.nbytes], memory.unit, "f", "")
                self._now[number] = f"given{number}"
            if begin < gone < end:
                self._ends[gone].append(number)
        for position in range(begin, end):
            self._op(position, self._seen.ops[position])
            for number in self._ends.get(position + 1, ()):
                self._let_go(number, position)

    def _op(self, position: int, op: OpSeen) -> None:
        memories = self._seen.memories
        inputs: list[str] = []
        places: dict[int, int] = {}
        written = {n for n in op.writes if memories[n].unit == op.unit}
        for number in dict.fromkeys((*op.reads, *op.writes)):
            source = self._source(number, number in written)
            if source is None:
                continue
            places[number] = len(inputs)
            inputs.append(f"!{source}" if number in written else source)
        for number, nbytes in dict(op.shared).items():
            self._shared[number] = nbytes
            inputs.append(f"every{number}")
        key = f"op{position}"
        outputs: list[Any] = []
        for number, _ in op.makes:
            self._now[number] = f"{key}:{len(outputs)}"
            outputs.append(self._size(number))
        for number in op.writes:
            if number not in places:
                continue
            if number in written:
                inputs.extend(f"^{reader}" for reader in self._readers.pop(number, ()))
            if number in self._lasting:
                self._now.pop(number, None)
                self._readers[number] = [key]
                continue
            self._now[number] = f"{key}:{len(outputs)}"
            own = f"={places[number]}"
            outputs.append(own if number in written else memories[number].nbytes)
        for number in op.reads:
            if number not in op.writes:
                self._readers[number].append(key)
        cost = self._seen.costs_ns[op.kind]
        name = f"{_name_of(op)}/{position}"
        self._add(key, op.name, cost, inputs, outputs, op.unit, op.phase, name)

    def _source(self, number: int, written: bool) -> str | None:
        """The tensor that an op finds in a memory; a variable itself where it is written."""
        if number in self._lasting:
            if written:
                return f"var{number}"
            if number not in self._now:
                key = f"read{self._reads}"
                self._reads += 1
                before = [f"^{one}" for one in self._readers.get(number, ())[:1]]
                unit = self._seen.memories[number].unit
                self._add(key, "Read", 1, [f"var{number}", *before], ["=0"], unit, "f", "")
                self._now[number] = key
                self._readers[number] = [key]
        return self._now.get(number)

    def _size(self, number: int) -> Any:
        memory = self._seen.memories[number]
        lives = memory.gone is None or memory.gone > self._seen.end
        return f"{memory.nbytes}*" if lives else memory.nbytes

    def _let_go(self, number: int, position: int) -> None:
        """States that a memory is held until here, where that is not clear from its readers."""
        memory = self._seen.memories[number]
        if memory.nbytes < _HELD_BYTES or self._last_use.get(number, -1) >= position:
            return
        source = self._now.get(number)
        if source is not None:
            self._add(f"held{number}", "Held", 1, [source], [], memory.unit, "b", "")

    def _add(self, *fields: Any) -> None:
        self._lines.append(_Line(*fields))

    def _made(self) -> pardnn.Graph:
        graph = pardnn.Graph(kinds=["cpu"], about={"costs": "measured", "engine": "torch"})
        for number in self._variables:
            memory = self._seen.memories[number]
            what = self._seen.units[memory.unit]
            name = f"parameter {memory.parameter}" if memory.parameter is not None else str(what)
            graph.var(f"var{number}", memory.nbytes, group=f"u{memory.unit}", name=name)
        for number, nbytes in self._shared.items():
            graph.op(f"every{number}", "Given", 0, (), [nbytes], every=True)
        for place, line in enumerate(self._lines):
            graph.op(
                line.key,
                pardnn.escape_key(line.type),
                line.cost,
                line.inputs,
                line.outputs,
                group=f"u{line.unit}",
                phase=line.phase,
                at=place,
                name=line.name or None,
            )
        return graph

    def variable_sizes(self) -> dict[str, int]:
        """Bytes of each variable, by key."""
        return {f"var{number}": self._seen.memories[number].nbytes for number in self._variables}

    def where(self, plan: pardnn.Plan, devices: Mapping[str, int]) -> dict[int, int]:
        """The rank of each unit."""
        where: dict[int, int] = {}
        placed = plan.device_of
        for number in self._variables:
            where[self._seen.memories[number].unit] = devices[placed[f"var{number}"]]
        for line in self._lines:
            where[line.unit] = devices[placed[line.key]]
        return where

    def tables(self, plan: pardnn.Plan, devices: Mapping[str, int]) -> Tables:
        """Where ranks have parameters and ops, and who reads results on other ranks."""
        where = self.where(plan, devices)
        parameters, ops = {}, {}
        for unit, what in enumerate(self._seen.units):
            if unit not in where:
                continue
            if what[0] == "parameter":
                parameters[what[1]] = where[unit]
            else:
                ops[what] = where[unit]
        reads, at_once = self._reads_elsewhere(where)
        of_parameters: dict[int, Mapping[int, int]] = {}
        for number, counts in reads.items():
            parameter = self._seen.memories[number].parameter
            if parameter is not None:
                of_parameters[parameter] = counts
        return Tables(parameters, ops, *self._readers_of(reads, at_once), of_parameters)

    def _reads_elsewhere(self, where: Mapping[int, int]) -> tuple[_Reads, dict[int, set[int]]]:
        """Of each memory, how often ranks read it that do not have it, and which of these ranks do
        so before it is changed.
        """
        reads: _Reads = collections.defaultdict(collections.Counter)
        at_once: dict[int, set[int]] = collections.defaultdict(set)
        changed: set[int] = set()
        for op in self._seen.ops[self._seen.begin : self._seen.end]:
            for number in op.reads:
                if where.get(self._seen.memories[number].unit) != where[op.unit]:
                    reads[number][where[op.unit]] += 1
                    if number not in changed:
                        at_once[number].add(where[op.unit])
            changed.update(op.writes)
        return dict(reads), dict(at_once)

    def _readers_of(
        self, reads: _Reads, at_once: Mapping[int, set[int]]
    ) -> tuple[dict[Key, Any], dict[Key, Any]]:
        """Of each result of an op with a key: how often other ranks read it, at most, and who of
        them as it was made.
        """
        readers: dict[Key, dict[int, dict[int, int]]] = {}
        first: dict[Key, dict[int, frozenset[int]]] = {}
        for op in self._seen.ops[self._seen.begin : self._seen.end]:
            if op.key is None:
                continue
            for number, result in op.makes:
                if result is None:
                    continue
                for rank, count in reads.get(number, {}).items():
                    known = readers.setdefault(op.key, {}).setdefault(result, {})
                    known[rank] = max(known.get(rank, 0), count)
                if number in at_once:
                    soon = first.setdefault(op.key, {})
                    soon[result] = soon.get(result, frozenset()) | at_once[number]
        return readers, first


def _name_of(op: OpSeen) -> str:
    """The module or the script's line that an op belongs to, and the op."""
    key: Any = op.key
    if key is None or key[0] == "gradient":
        return op.name
    while key[0] == "backward":
        key = key[1]
    return f"{key[0]}.{op.name}" if isinstance(key[1], str) else f"{key[0]}.{key[1]}"

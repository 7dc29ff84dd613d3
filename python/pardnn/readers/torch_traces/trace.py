"""The nodes of an execution trace, of schema 1.0 and 1.1 alike."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pardnn.readers.errors import ReadError, quoted
from pardnn.readers.values import MOST, integer, text_of

_TENSOR_PARTS = 6


@dataclass(frozen=True)
class Stored:
    """A tensor of the trace: the storage that it lies in, and the bytes up to its end."""

    storage: int
    bytes: int


@dataclass
class Call:
    """A node. ``inputs``: one list of tensors for each argument; ``changes``: arguments written."""

    number: int
    name: str
    parent: int
    rf_id: int
    schema: str
    place: str
    inputs: list[list[Stored]]
    outputs: list[Stored]
    changes: list[int] = field(default_factory=list)


def calls(rows: Any, name: str) -> list[Call]:
    """All nodes by number. Raises ReadError."""
    if not isinstance(rows, list) or not rows:
        raise ReadError(f"{name}: nodes", quoted(rows), "a list of nodes")
    found: dict[int, Call] = {}
    for at, row in enumerate(rows):
        place = f"{name}: nodes[{at}]"
        if not isinstance(row, dict):
            raise ReadError(place, quoted(row), "an object")
        call = _call(row, place)
        if call.number in found:
            raise ReadError(place, f"the id {call.number} a second time", "ids that differ")
        found[call.number] = call
    _check_parents(found)
    return [found[number] for number in sorted(found)]


def _call(row: dict[str, Any], place: str) -> Call:
    more = row.get("attrs", [])
    if not isinstance(more, list) or not all(isinstance(each, dict) for each in more):
        raise ReadError(f"{place}: attrs", quoted(more), "a list of objects")
    values = {str(each.get("name")): each.get("value") for each in more} | row
    parent = row["ctrl_deps"] if "ctrl_deps" in row else row.get("parent")
    inputs, outputs = row.get("inputs"), row.get("outputs")
    if isinstance(inputs, dict) and isinstance(outputs, dict):
        inputs, outputs = inputs.get("values"), outputs.get("values")
    if not isinstance(inputs, list) or not isinstance(outputs, list):
        raise ReadError(place, "inputs or outputs that are no list", "lists of values")
    schema = text_of(values.get("op_schema") or "")
    return Call(
        integer(row.get("id"), place, "the id"),
        text_of(row.get("name") or "unnamed"),
        integer(parent, place, "the parent"),
        integer(values.get("rf_id", 0), place, "the rf_id"),
        schema,
        place,
        [_tensors(value, place) for value in inputs],
        [each for value in outputs for each in _tensors(value, place)],
        _changed(schema),
    )


def _tensors(value: object, place: str) -> list[Stored]:
    """The tensors of a value: one, or those of a list."""
    if not isinstance(value, list):
        return []
    if len(value) == _TENSOR_PARTS and isinstance(value[5], str):
        _, storage, offset, count, size = (
            integer(each, place, "a part of a tensor") for each in value[:5]
        )
        total = (offset + count) * size
        if min(offset, count, size) < 0 or total > MOST:
            raise ReadError(place, f"a tensor of {total} bytes", "0 to 2^62")
        return [Stored(storage, total)] if storage > 0 and total else []
    parts = [each for each in value if isinstance(each, list) and len(each) == _TENSOR_PARTS]
    return [one for each in parts if isinstance(each[5], str) for one in _tensors(each, place)]


def _changed(schema: str) -> list[int]:
    """The arguments that a schema marks with ``!``."""
    inside = schema.partition("(")[2].rpartition("->")[0]
    parts = [part for part in inside.split(", ") if part.strip() != "*"]
    return [at for at, part in enumerate(parts) if "!" in part.split(" ")[0]]


def _check_parents(found: dict[int, Call]) -> None:
    """A node's parent exists and leads to the root, which is its own."""
    good: set[int] = set()
    for call in found.values():
        path: set[int] = set()
        at = call
        while at.number not in good:
            path.add(at.number)
            good.add(at.number)
            if at.parent == at.number:
                break
            if at.parent not in found:
                raise ReadError(at.place, f"the parent {at.parent}", "the id of a node")
            at = found[at.parent]
            if at.number in path and at.parent != at.number:
                raise ReadError(at.place, "a cycle of parents", "a path to the root")

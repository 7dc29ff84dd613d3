"""A symbol's nodes, whichever of the three generations of the format wrote them.

Until 2016 an op's parameters were in ``param`` and what users added in ``attr``; then both were in
``attr``; now both are in ``attrs``. Inputs are (node, output) or (node, output, version).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pardnn.readers.errors import ReadError, quoted
from pardnn.readers.values import text_of

_PARAMETERS = ("attr", "attrs", "param")
_MOST_VALUE = 10**15
_MOST_DIMS = 16
Input = tuple[int, int]


@dataclass
class Node:
    """``op`` is None of a value. ``inner`` is a symbol that the op stands for."""

    number: int
    name: str
    op: str | None
    attributes: Mapping[str, str]
    inputs: list[Input] = field(default_factory=list)
    controls: list[int] = field(default_factory=list)
    source: int | None = None  # the forward node of a backward one
    inner: list[Symbol] = field(default_factory=list)


@dataclass
class Symbol:
    """Nodes in topological order, the arguments among them, and the outputs."""

    nodes: list[Node]
    arguments: list[int]
    heads: list[Input]


def parse(value: Any, place: str) -> Symbol:
    """The symbol that a JSON object states. Raises ReadError."""
    rows = value.get("nodes")
    if not isinstance(rows, list):
        raise ReadError(place, f"nodes {quoted(rows)}", "a list")
    nodes: list[Node] = []
    for number, row in enumerate(rows):
        nodes.append(_node(row, number, f"{place}: nodes[{number}]"))
    arguments = _numbers(value.get("arg_nodes", []), len(nodes), f"{place}: arg_nodes")
    heads = _inputs(value.get("heads", []), len(nodes), f"{place}: heads")
    return Symbol(nodes, arguments, heads)


def _node(row: Any, number: int, place: str) -> Node:
    if not isinstance(row, dict) or not isinstance(row.get("op"), str):
        raise ReadError(place, quoted(row), "an object with an op")
    attributes: dict[str, str] = {}
    for member in _PARAMETERS:
        found = row.get(member, {})
        if not isinstance(found, dict):
            raise ReadError(place, f"{member} {quoted(found)}", "an object")
        attributes |= {name: str(each) for name, each in found.items()}
    source = row.get("backward_source_id", -1)
    if source != -1 and not (isinstance(source, int) and 0 <= source < number):
        raise ReadError(
            place, f"backward_source_id {quoted(source)}", "the number of a node before"
        )
    inner = row.get("subgraphs", [])
    if not isinstance(inner, list) or not all(isinstance(each, dict) for each in inner):
        raise ReadError(place, f"subgraphs {quoted(inner)}", "a list of symbols")
    return Node(
        number,
        text_of(row.get("name", "")) or f"node{number}",
        None if row["op"] == "null" and source == -1 else text_of(row["op"]),
        attributes,
        _inputs(row.get("inputs", []), number, f"{place}: inputs"),
        _numbers(row.get("control_deps", []), number, f"{place}: control_deps"),
        None if source == -1 else source,
        [parse(each, f"{place}: subgraphs") for each in inner],
    )


def _inputs(rows: Any, before: int, place: str) -> list[Input]:
    """References to outputs of nodes with a lower number than ``before``."""
    if not isinstance(rows, list):
        raise ReadError(place, quoted(rows), "a list")
    inputs = []
    for row in rows:
        fine = isinstance(row, list) and 2 <= len(row) <= 3
        if not fine or not all(isinstance(each, int) and each >= 0 for each in row):
            raise ReadError(place, quoted(row), "[node, output] or [node, output, version]")
        if row[0] >= before or row[1] >= 1 << 16:
            raise ReadError(place, f"output {row[1]} of node {row[0]}", "one of a node before")
        inputs.append((row[0], row[1]))
    return inputs


def _numbers(rows: Any, before: int, place: str) -> list[int]:
    if not isinstance(rows, list):
        raise ReadError(place, quoted(rows), "a list")
    for row in rows:
        if not isinstance(row, int) or not 0 <= row < before:
            raise ReadError(place, quoted(row), "the number of a node before")
    return rows


def integers(text: str | None) -> tuple[int, ...] | None:
    """The numbers of a text such as ``(3, 3)`` or ``3``; None where it is no such text."""
    words = (text or "").strip("()[] ").replace("L", "").split(",")
    words = [word.strip() for word in words if word.strip()]
    if not words or len(words) > _MOST_DIMS:
        return None
    if not all(word.lstrip("-").isdecimal() and len(word) < 16 for word in words):
        return None
    return tuple(int(word) for word in words)


def integer(attributes: Mapping[str, str], name: str, default: int) -> int:
    """A parameter that is one number."""
    found = integers(attributes.get(name))
    return found[0] if found is not None and len(found) == 1 else default


def is_set(attributes: Mapping[str, str], name: str) -> bool:
    """Whether a parameter says yes."""
    return attributes.get(name, "False") in ("True", "true", "1")

"""Graphs of Chakra: JSON with a ``workload_graph``, or messages each behind its length.

Nodes have times and what they depend on, and no sizes but those of communication.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pardnn.readers import wire
from pardnn.readers.content import Content
from pardnn.readers.errors import ReadError, quoted
from pardnn.readers.names import Keys
from pardnn.readers.reading import Options, Reading, started
from pardnn.readers.torch_traces.messages import delimited
from pardnn.readers.values import integer, ns_of_ms, text_of
from pardnn.readers.values import number as quantity

NAME = "chakra"
OPTIONS: tuple[str, ...] = ()
_TYPES = {1: "Metadata", 2: "Load", 3: "Store", 4: "Compute", 5: "Send", 6: "Receive"}
_TYPES |= {7: "Collective"}


@dataclass
class _Node:
    number: int
    name: str
    type: str
    ns: int | None
    data: list[int]
    control: list[int]
    is_kernel: bool
    bytes: int | None
    place: str


def recognise(content: Content) -> bool:
    """JSON with the member ``workload_graph``, or two messages that have a node's shape."""
    if content.looks_like_json:
        return content.object("workload_graph") is not None
    return not content.is_text and _is_delimited(content.data)


def _is_delimited(data: bytes) -> bool:
    """Whether a message of attributes is first, and a numbered and named one behind it."""
    head, size = _part(data, 0)
    if head < 0:
        return False
    about = list(wire.fields(data, head, head + size))
    if not about or about[-1][0] != 0 or not {f[:2] for f in about[:-1]} <= {(1, 2), (2, 2)}:
        return False
    begin, length = _part(data, head + size)
    if begin < 0:
        return False
    node = [field[:2] for field in wire.fields(data, begin, begin + length)]
    begins = [field for field in node if field != (1, wire.VARINT)]  # an id of 0 is left out
    return begins[:2] == [(2, wire.BYTES), (3, wire.VARINT)] and node[-1][0] == 0


def _part(data: bytes, at: int) -> tuple[int, int]:
    """Where a message begins and its length; -1 where none is whole."""
    size, begin = wire.varint(data, at)
    return (begin, size) if begin >= 0 and 0 < size <= len(data) - begin else (-1, 0)


def read(content: Content, options: Options) -> Reading:
    """The graph of all nodes. Raises ReadError."""
    del options
    nodes = _nodes(content)
    counts = {"nodes": len(nodes), "edges": sum(len(node.data) for node in nodes.values())}
    if not content.looks_like_json:
        counts["bytes"] = len(content.data)
    missing = _drop_missing(nodes)
    _check_cycles(nodes)
    read_by = {number for node in nodes.values() for number in (*node.data, *node.control)}
    with_output = {number for node in nodes.values() for number in node.data}
    graph = started(NAME, "measured", counts)
    keys = Keys()
    key_of = {number: keys.new(f"{node.name}.{number}") for number, node in nodes.items()}
    for number, node in nodes.items():
        inputs = [key_of[one] for one in node.data]
        inputs += [f"^{key_of[one]}" for one in dict.fromkeys(node.control)]
        outputs = [node.bytes] if number in with_output else []
        graph.op(key_of[number], node.type, node.ns, inputs, outputs)
    lonely = [n for n in nodes.values() if n.is_kernel and n.number not in read_by]
    return Reading(graph, NAME, _notes(nodes, missing, lonely, with_output), counts)


def _notes(
    nodes: dict[int, _Node], missing: list[str], lonely: list[_Node], with_output: set[int]
) -> list[str]:
    notes = []
    if missing:
        notes.append(f"{len(missing)} dependencies on nodes that are missing: {missing[0]} first")
    if lonely:
        first = f"node {lonely[0].number} {quoted(lonely[0].name)}"
        notes.append(f"{len(lonely)} kernels have no successor: {first} first")
    timeless = [node for node in nodes.values() if node.ns is None]
    if timeless:
        notes.append(f"{len(timeless)} nodes have no time: node {timeless[0].number} first")
    unsized = [number for number in nodes if number in with_output and nodes[number].bytes is None]
    if unsized:
        notes.append(f"Chakra states no sizes of {len(unsized)} tensors; they are unknown")
    return notes


def _nodes(content: Content) -> dict[int, _Node]:
    if content.looks_like_json:
        rows = content.json["workload_graph"]
        if not isinstance(rows, list):
            raise ReadError(f"{content.name}: workload_graph", quoted(rows), "a list")
        found = [_of_json(row, f"{content.name}: node {at}") for at, row in enumerate(rows)]
    else:
        messages = delimited(content.data, content.name)
        found = [_of_message(row, f"{content.name}: node {at}") for at, row in enumerate(messages)]
    nodes: dict[int, _Node] = {}
    for node in found:
        if node.number in nodes:
            raise ReadError(node.place, f"the id {node.number} a second time", "ids that differ")
        nodes[node.number] = node
    if not nodes:
        raise ReadError(content.name, "no nodes", "at least one")
    return nodes


def _of_json(row: Any, place: str) -> _Node:
    if not isinstance(row, dict):
        raise ReadError(place, quoted(row), "an object")
    time = row.get("runtime")
    return _Node(
        integer(row.get("Id"), place, "the Id"),
        text_of(row.get("Name") or "unnamed"),
        _type(row.get("NodeType")),
        None
        if time is None
        else ns_of_ms(quantity(time, place, "runtime") / 1000, place, "runtime"),
        _numbers(row.get("data_deps", []), place),
        _numbers(row.get("ctrlDeps", []), place),
        row.get("is_cpu_op") is False,
        None,
        place,
    )


def _of_message(row: Any, place: str) -> _Node:
    """A message; a time of 0 is one that nobody wrote."""
    values = {each.name: each for each in row.attr}
    size = values.get("comm_size")
    time = ns_of_ms(row.duration_micros / 1000, place, "duration_micros")
    known = max(size.int64_val, size.uint64_val) if size is not None else 0
    return _Node(
        row.id,
        row.name or "unnamed",
        _type(row.type),
        time or None,
        [*row.data_deps],
        [*row.ctrl_deps],
        "is_cpu_op" in values and not values["is_cpu_op"].bool_val,
        known if 0 < known < 1 << 62 else None,
        place,
    )


def _type(value: object) -> str:
    return _TYPES.get(value, "Node") if isinstance(value, int) else "Node"


def _numbers(values: Any, place: str) -> list[int]:
    if not isinstance(values, list):
        raise ReadError(place, quoted(values), "a list of Ids")
    return [integer(each, place, "a dependency") for each in values]


def _drop_missing(nodes: dict[int, _Node]) -> list[str]:
    """Removes dependencies on nodes that are not there; says which they were."""
    missing = []
    for node in nodes.values():
        for deps in (node.data, node.control):
            missing += [f"{each} of node {node.number}" for each in deps if each not in nodes]
            deps[:] = [each for each in deps if each in nodes]
    return missing


def _check_cycles(nodes: dict[int, _Node]) -> None:
    """Raises ReadError that names a node of a cycle."""
    waiting = {n: len(node.data) + len(node.control) for n, node in nodes.items()}
    after: dict[int, list[int]] = {}
    for number, node in nodes.items():
        for one in (*node.data, *node.control):
            after.setdefault(one, []).append(number)
    ready = [number for number, count in waiting.items() if not count]
    while ready:
        one = ready.pop()
        del waiting[one]
        for number in after.get(one, ()):
            waiting[number] -= 1
            if not waiting[number]:
                ready.append(number)
    if not waiting:
        return
    seen: set[int] = set()
    at = next(iter(waiting))
    while at not in seen:
        seen.add(at)
        at = next(each for each in (*nodes[at].data, *nodes[at].control) if each in waiting)
    found = f"a cycle through node {at} {quoted(nodes[at].name)}"
    raise ReadError(nodes[at].place, found, "a graph without cycles")

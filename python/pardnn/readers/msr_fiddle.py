"""Graphs of msr-fiddle/dnn-partitioning: JSON with the members ``nodes`` and ``edges``.

A node is an op. It has one output for each size among the edges that leave it, since one output
cannot have two. ``size`` of a node is all that it occupies: where that is more than its outputs,
the rest is what stays there, its parameters, and becomes a variable; nodes whose edges carry bits,
not bytes, stand for several outputs and have none. Backward nodes repeat the size of their forward
node and have none either. Members of a colour class must share a device: they form a group.

The ``cost`` of an edge is the time of its bytes at 2 GiB/s: in milliseconds, in some files in
seconds, in some with values that are neither. ``size`` says it better, and is what counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pardnn
from pardnn.readers.content import Content
from pardnn.readers.edges import Edges
from pardnn.readers.errors import ReadError, quoted
from pardnn.readers.reading import Options, Reading, started
from pardnn.readers.values import bytes_of, integer, ns_of_ms, text_of

NAME = "msr-fiddle"
OPTIONS: tuple[str, ...] = ()

_BYTES_PER_MS = (2 << 30) / 1000
_NODE = ("id", "fpgaLatency")
_EDGE = ("sourceId", "destId")


class _Edges(Edges):
    """Edges, and what their costs were seen to be."""

    in_ms = 0
    in_seconds = 0
    with_bytes = 0
    without_size = 0


def recognise(content: Content) -> bool:
    """Lists of nodes and edges whose first node has a latency on an accelerator."""
    found = content.object("nodes", "edges")
    if found is None or not isinstance(found["nodes"], list) or not found["nodes"]:
        return False
    first = found["nodes"][0]
    return isinstance(first, dict) and all(member in first for member in _NODE)


def read(content: Content, options: Options) -> Reading:
    """The graph: op ``nID`` for each node."""
    del options
    top = content.json
    nodes = _nodes(top["nodes"], content.name)
    edges = _edges(top["edges"], nodes, content.name)
    kinds = _kinds(nodes.values())
    counts = {"nodes": len(nodes), "edges": len(top["edges"])}
    graph = started(NAME, "measured", counts, kinds)
    held = 0
    for number, node in nodes.items():
        held += _add(graph, node, edges, len(kinds) > 1, f"{content.name}: node {number}")
    return Reading(
        graph,
        NAME,
        _notes(edges, kinds, held),
        counts,
    )


def _nodes(rows: list[Any], name: str) -> dict[int, dict[str, Any]]:
    nodes: dict[int, dict[str, Any]] = {}
    for place, row in enumerate(rows):
        where = f"{name}: nodes[{place}]"
        _check(row, _NODE, where)
        number = integer(row["id"], where, "the id")
        if number in nodes:
            raise ReadError(where, f"the id {number} a second time", "ids that differ")
        nodes[number] = row
    return nodes


def _check(row: object, members: Iterable[str], where: str) -> None:
    if not isinstance(row, dict):
        raise ReadError(where, quoted(row), "an object")
    for member in members:
        if member not in row:
            raise ReadError(where, f"no {member}", "an object that has it")


def _edges(rows: object, nodes: dict[int, dict[str, Any]], name: str) -> _Edges:
    if not isinstance(rows, list):
        raise ReadError(f"{name}: edges", quoted(rows), "a list")
    edges = _Edges()
    for place, row in enumerate(rows):
        where = f"{name}: edges[{place}]"
        _check(row, _EDGE, where)
        ends = [integer(row[member], where, member) for member in _EDGE]
        for end in ends:
            if end not in nodes:
                raise ReadError(where, f"an edge of the node {end}", "the id of a node")
        source, reader = ends
        size = None if row.get("size") is None else bytes_of(row["size"], where, "the size")
        edges.add(f"n{source}", f"n{reader}", size)
        _count_cost(edges, row.get("size"), row.get("cost"))
    return edges


def _count_cost(edges: _Edges, size: float | None, cost: object) -> None:
    """Which unit the cost of an edge is in, as far as its size tells."""
    if size is None:
        edges.without_size += 1
    if not size:
        return
    edges.with_bytes += 1
    if isinstance(cost, int | float):
        milliseconds = size / _BYTES_PER_MS
        edges.in_ms += abs(cost - milliseconds) < milliseconds / 100
        edges.in_seconds += abs(cost * 1000 - milliseconds) < milliseconds / 100


def _kinds(nodes: Iterable[dict[str, Any]]) -> list[str]:
    """One kind of device, unless some nodes run on the host only."""
    return ["any"] if all(_is_supported(node) for node in nodes) else ["accelerator", "cpu"]


def _is_supported(node: dict[str, Any]) -> bool:
    return bool(node.get("supportedOnFpga", True))


def _cost(node: dict[str, Any], has_host: bool, where: str) -> int | tuple[int, int]:
    """Nanoseconds on an accelerator, or on both kinds where the graph needs a host."""
    if not has_host:
        return ns_of_ms(node["fpgaLatency"], where, "fpgaLatency")
    host = ns_of_ms(node.get("cpuLatency"), where, "cpuLatency")
    if not _is_supported(node):
        return pardnn.NOT_ALLOWED, host
    return ns_of_ms(node["fpgaLatency"], where, "fpgaLatency"), host


def _add(
    graph: pardnn.Graph, node: dict[str, Any], edges: _Edges, has_host: bool, where: str
) -> int:
    """Adds a node's op and its variable; the bytes of the latter."""
    number = node["id"]
    key, colour = f"n{number}", node.get("colorClass")
    is_backward = bool(node.get("isBackwardNode", False))
    size = bytes_of(node.get("size") or 0, where, "the size")
    outputs: list[int | None | str] = list(edges.outputs(key))
    group = None if colour is None else pardnn.escape_key(f"c{colour}")
    held = 0
    if not outputs and size and not is_backward:
        outputs = [f"{size}*"]  # the result of the graph
    elif not is_backward and all(isinstance(each, int) and each > 1 for each in outputs):
        held = max(0, size - sum(each for each in outputs if isinstance(each, int)))
    if held:
        group = group or key
        graph.var(f"{key}.held", held, group=group)
    graph.op(
        key,
        "Node",
        _cost(node, has_host, where),
        edges.inputs.get(key, []),
        outputs,
        group=group,
        phase="b" if is_backward else "f",
        name=text_of(node["name"]) if node.get("name") else None,
    )
    return held


def _notes(edges: _Edges, kinds: list[str], held: int) -> list[str]:
    notes = []
    if edges.in_ms or edges.in_seconds:
        unit = "milliseconds" if edges.in_ms >= edges.in_seconds else "seconds"
        notes.append(
            f"the costs of {max(edges.in_ms, edges.in_seconds)} of {edges.with_bytes} edges are "
            f"{unit} of a link of 2 GiB/s; sizes are used instead"
        )
    if edges.without_size:
        notes.append(f"{edges.without_size} edges have no size, so tensors of unknown size remain")
    if held:
        notes.append(f"{held} bytes of nodes beyond their outputs are taken for variables")
    if len(kinds) > 1:
        notes.append("some nodes run on the host only: plan for a machine of accelerator and cpu")
    return notes

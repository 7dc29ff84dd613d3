"""A DOT graph as ops: a node an op, an edge a tensor that is read."""

from __future__ import annotations

import re

import pardnn
from pardnn.readers.content import Content
from pardnn.readers.dot import quantities
from pardnn.readers.dot.parser import DotGraph, parse
from pardnn.readers.edges import Edges
from pardnn.readers.reading import Options, Reading, started
from pardnn.readers.values import text_of

NAME = "dot"
OPTIONS: tuple[str, ...] = ()

_BEGIN = re.compile(r'(strict\s+)?(di)?graph\b\s*("|[\w.<-]|\{|$)', re.IGNORECASE)
_COMMENT = re.compile(r"\s+|//[^\n]*|#[^\n]*")
# What a link of 12 GB/s, the usual one, carries in a us.
_BYTES_PER_US = 12_000


def recognise(content: Content) -> bool:
    """Text that begins, behind comments, with the words of a graph."""
    if not content.is_text:
        return False
    at, head = 0, content.head
    while at < len(head):
        if head.startswith("/*", at):
            end = head.find("*/", at)
            at = len(head) if end < 0 else end + 2
            continue
        found = _COMMENT.match(head, at)
        if found is None:
            break
        at = found.end()
    return _BEGIN.match(head, at) is not None


def read(content: Content, options: Options) -> Reading:
    """The graph: an op with the key of its node for each."""
    del options
    dot = parse(content.text, content.name)
    keys = {name: pardnn.escape_key(text_of(name) or "node") for name in dot.nodes}
    stated = {name: quantities.stated(each) for name, each in dot.nodes.items()}
    notes = _Notes()
    edges = _edges(dot, keys, stated, content.name, notes)
    counts = {"nodes": len(dot.nodes), "edges": len(dot.edges)}
    graph = started(NAME, "stated", counts)
    for name, key in keys.items():
        attributes, place = stated[name], f"{content.name}: node {key}"
        cost, notes_unit = quantities.time_ns(attributes, place)
        notes.times_assumed += notes_unit
        notes.times_missing += cost is None
        outputs: list[int | str | None] = list(edges.outputs(key))
        size, _ = quantities.size_bytes(_of_node(attributes), place, 1)
        if not outputs and size is not None:
            outputs = [f"{size}*"]
        held = quantities.memory_bytes(attributes, place)
        if held:
            graph.var(f"{key}.held", held, group=key)
        label = dot.nodes[name].get("label", "")
        graph.op(
            key,
            _type(attributes),
            cost,
            edges.inputs.get(key, []),
            outputs,
            group=key if held else None,
            name=text_of(label) if label and "\n" not in label and label != r"\N" else None,
        )
    return Reading(graph, NAME, notes.sentences(dot), counts)


class _Notes:
    """What was assumed and what is missing, counted."""

    times_assumed = 0
    times_missing = 0
    sizes_assumed = 0
    sizes_missing = 0

    def sentences(self, dot: DotGraph) -> list[str]:
        """What there is to say."""
        notes = []
        if self.times_assumed:
            notes.append(f"times of {self.times_assumed} nodes have no unit and are taken for us")
        if self.times_missing:
            notes.append(
                f"{self.times_missing} nodes have no time; an attribute such as "
                'duration="12us" states it'
            )
        if self.sizes_assumed:
            notes.append(
                f"weights of {self.sizes_assumed} edges are taken for the us that a link of "
                "12 GB/s needs"
            )
        if self.sizes_missing:
            notes.append(
                f"{self.sizes_missing} edges have no size; an attribute such as "
                'size="4MiB" of the edge or its node states it'
            )
        if dot.merged:
            notes.append(f"{dot.merged} edges stand twice in a strict graph and count once")
        return notes


def _edges(
    dot: DotGraph,
    keys: dict[str, str],
    stated: dict[str, dict[str, str]],
    name: str,
    notes: _Notes,
) -> Edges:
    edges = Edges()
    for source, reader, attributes, place in dot.edges:
        stated_here = quantities.stated(attributes) if attributes else attributes
        size, assumed = quantities.size_bytes(stated_here, place, _BYTES_PER_US)
        if size is None:
            node = _of_node(stated[source])
            size, _ = quantities.size_bytes(node, f"{name}: node {keys[source]}", 1)
        notes.sizes_assumed += assumed
        notes.sizes_missing += size is None
        edges.add(keys[source], keys[reader], size)
    return edges


def _of_node(attributes: dict[str, str]) -> dict[str, str]:
    """Of a node weight and cost are times."""
    return {name: each for name, each in attributes.items() if name not in quantities.UNITLESS}


def _type(attributes: dict[str, str]) -> str:
    for name in quantities.TYPES:
        if attributes.get(name):
            return pardnn.escape_key(text_of(attributes[name]))
    return "Node"

"""Graphs of METIS: a header of counts, then for each vertex a line of its weights and neighbours.

The edges of such a graph have no direction. Each is taken to lead from the vertex of the lower
number to the other, which makes the graph acyclic. The first weight of a vertex is its time in us,
its size, where the format code says that there is one, the bytes that it sends to all neighbours;
weights of edges are bytes else. What the header leaves out is 1 by the format's definition, and
says nothing: times are unknown then, sizes too.
"""

from __future__ import annotations

from pardnn.readers.content import Content
from pardnn.readers.edges import Edges
from pardnn.readers.errors import ReadError, quoted
from pardnn.readers.reading import Options, Reading, started
from pardnn.readers.values import MOST

NAME = "metis"
OPTIONS: tuple[str, ...] = ()

_NS_PER_US = 1000
_CODES = {"0", "1", "10", "11", "100", "101", "110", "111", "00", "01", "000", "001", "010", "011"}


class _Header:
    """What the first line says: counts, and which numbers a line has."""

    def __init__(self, line: str, place: str) -> None:
        words = line.split()
        fine = all(word.isascii() and word.isdigit() and len(word) < 19 for word in words)
        if not (2 <= len(words) <= 4 and fine and (len(words) < 3 or words[2] in _CODES)):
            raise ReadError(place, quoted(line), "VERTICES EDGES [FORMAT [WEIGHTS]] of METIS")
        code = words[2].zfill(3) if len(words) > 2 else "000"
        self.vertices, self.edges = int(words[0]), int(words[1])
        self.has_sizes, has_weights, self.has_edge_weights = (digit == "1" for digit in code)
        self.weights = 0
        if has_weights:
            self.weights = int(words[3]) if len(words) > 3 else 1


def recognise(content: Content) -> bool:
    """A first line of two to four counts, behind comments."""
    if not content.is_text:
        return False
    line = _first_line(content.head)
    try:
        return _Header(line, "").vertices > 0
    except ReadError:
        return False


def read(content: Content, options: Options) -> Reading:
    """The graph: op ``vN`` for vertex N."""
    del options
    lines = _lines(content)
    place, first = lines[0] if lines else (f"{content.name}:1", "")
    header = _Header(first, place)
    rows = lines[1:]
    while len(rows) > header.vertices and not rows[-1][1].strip():
        rows.pop()
    if len(rows) != header.vertices:
        raise ReadError(place, f"{header.vertices} vertices", f"{len(rows)}, one for each line")
    counts = {"nodes": header.vertices, "edges": header.edges}
    graph = started(NAME, "stated", counts)
    edges, weights, sizes = Edges(), [], []
    ends = 0
    for number, (where, line) in enumerate(rows, 1):
        values = _numbers(line, where)
        head = header.has_sizes + header.weights
        if len(values) < head:
            raise ReadError(where, f"{len(values)} numbers", f"at least {head} of this vertex")
        sizes.append(values[0] if header.has_sizes else None)
        weights.append(values[int(header.has_sizes)] if header.weights else None)
        ends += _add_edges(edges, number, values[head:], header, sizes[-1], where)
    if edges.count * 2 != ends or edges.count != header.edges:
        found = f"{edges.count} edges from lower to higher vertices and {ends - edges.count} back"
        raise ReadError(place, found, f"{header.edges} each, as the header says")
    for number, weight in enumerate(weights, 1):
        key = f"v{number}"
        cost = None if weight is None else min(weight * _NS_PER_US, MOST)
        graph.op(key, "Vertex", cost, edges.inputs.get(key, []), edges.outputs(key))
    return Reading(graph, NAME, _notes(header), counts)


def _add_edges(
    edges: Edges, number: int, values: list[int], header: _Header, size: int | None, where: str
) -> int:
    """Adds the edges to higher vertices; how many edges the line has."""
    step = 2 if header.has_edge_weights else 1
    if len(values) % step:
        raise ReadError(where, "a neighbour without the weight of its edge", "pairs of numbers")
    for at in range(0, len(values), step):
        neighbour = values[at]
        if not 1 <= neighbour <= header.vertices or neighbour == number:
            raise ReadError(where, f"the neighbour {neighbour}", "the number of another vertex")
        if neighbour > number:
            weight = values[at + 1] if header.has_edge_weights else None
            edges.add(f"v{number}", f"v{neighbour}", weight if size is None else size)
    return len(values) // step


def _numbers(line: str, where: str) -> list[int]:
    values = []
    for word in line.split():
        if not (word.isascii() and word.isdigit() and len(word) < 19):
            raise ReadError(where, quoted(word), "a whole number below 10^18")
        values.append(int(word))
    return values


def _lines(content: Content) -> list[tuple[str, str]]:
    """Lines with their places, without comments."""
    return [
        (f"{content.name}:{number}", line)
        for number, line in enumerate(content.text.splitlines(), 1)
        if not line.startswith("%")
    ]


def _first_line(text: str) -> str:
    return next((line for line in text.splitlines() if not line.startswith("%")), "")


def _notes(header: _Header) -> list[str]:
    notes = ["edges have no direction here: each leads from the lower vertex to the higher one"]
    if header.weights:
        notes.append("weights of vertices are taken for us")
    else:
        notes.append("vertices have no weights, so costs are unknown; format 10 or 11 has them")
    if header.weights > 1:
        notes.append(f"{header.weights - 1} more weights of each vertex are not used")
    if header.has_sizes or header.has_edge_weights:
        notes.append("sizes of vertices, else weights of edges, are taken for bytes")
    else:
        notes.append("edges have no weights, so sizes are unknown; format 1 or 11 has them")
    return notes

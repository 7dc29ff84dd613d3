"""Statements of the DOT language: nodes and edges with their attributes."""

from __future__ import annotations

from dataclasses import dataclass, field

from pardnn.readers.dot.quantities import KEPT, plain
from pardnn.readers.dot.words import ID, QUOTED, SIGN, Place, words
from pardnn.readers.errors import ReadError, quoted

Attributes = dict[str, str]

_MOST_DEPTH = 200
_KEYWORDS = frozenset({"node", "edge", "graph", "subgraph", "digraph", "strict"})
_END = ("", -1, -1)


@dataclass
class DotGraph:
    """``nodes``: attributes by name, in order. ``edges``: source, reader, attributes, place.

    Attributes are those that have a meaning here, by plain name; dictionaries may be shared.
    """

    nodes: dict[str, Attributes] = field(default_factory=dict)
    edges: list[tuple[str, str, Attributes, Place]] = field(default_factory=list)
    merged: int = 0  # edges that ``strict`` took for one with an earlier one


@dataclass
class _Scope:
    """What holds inside of a pair of braces, and the nodes named there."""

    node: Attributes
    edge: Attributes
    names: dict[str, None] = field(default_factory=dict)


def parse(text: str, name: str) -> DotGraph:
    """The first graph of a text. Raises ReadError with the line of a mistake."""
    return _Parser(text, name).run()


class _Parser:
    def __init__(self, text: str, name: str) -> None:
        self._name, self._all = name, text
        # A chain of subgraphs joins all nodes of one to all of the next; and a graph takes more
        # memory than its text: what goes beyond these bounds was made for it.
        self._most_edges = len(text) // 5 + 200_000
        self._most_nodes = len(text) // 14 + 100_000
        self._words = words(text, name)
        self._text, self._sort, self._at = next(self._words, _END)
        self._graph = DotGraph()
        self._known_edges: dict[tuple[str, str], int] = {}
        self._is_strict = False

    def run(self) -> DotGraph:
        self._is_strict = self._take_keyword("strict")
        if self._keyword() == "graph":
            raise ReadError(str(self._place()), "a graph without directions", "a digraph")
        if not self._take_keyword("digraph"):
            raise self._refusal("digraph")
        if self._sort != SIGN:
            self._advance()
        self._expect("{")
        self._body(_Scope({}, {}), 1)
        return self._graph

    def _advance(self) -> str:
        text = self._text
        if self._sort < 0:
            raise self._refusal("more of the graph")
        self._text, self._sort, self._at = next(self._words, _END)
        return text

    def _place(self) -> Place:
        return Place(self._name, self._all, len(self._all) if self._at < 0 else self._at)

    def _too_many(self, what: str) -> ReadError:
        size = f"{len(self._all)} characters"
        return ReadError(str(self._place()), f"more {what} than fit {size}", "a graph of real ops")

    def _refusal(self, expected: str) -> ReadError:
        found = "the end of the file" if self._sort < 0 else quoted(self._text)
        return ReadError(str(self._place()), found, expected)

    def _take(self, sign: str) -> bool:
        if self._sort != SIGN or self._text != sign:
            return False
        self._text, self._sort, self._at = next(self._words, _END)
        return True

    def _expect(self, sign: str) -> None:
        if not self._take(sign):
            raise self._refusal(quoted(sign))

    def _keyword(self) -> str | None:
        """The keyword that stands here; quoted, it would be a name."""
        if self._sort != ID or len(self._text) > len("subgraph"):
            return None
        word = self._text.lower()
        return word if word in _KEYWORDS else None

    def _take_keyword(self, keyword: str) -> bool:
        taken = self._keyword() == keyword
        if taken:
            self._advance()
        return taken

    def _id(self, what: str) -> str:
        if self._sort < ID or self._keyword():
            raise self._refusal(what)
        sort, text = self._sort, self._advance()
        while sort == QUOTED and self._take("+"):  # strings may be joined
            if self._sort != QUOTED:
                raise self._refusal("a string behind +")
            text += self._advance()
        return text

    def _body(self, scope: _Scope, depth: int) -> None:
        """Statements up to the closing brace."""
        if depth > _MOST_DEPTH:
            place = str(self._place())
            raise ReadError(place, "subgraphs nested too deeply", f"at most {_MOST_DEPTH} levels")
        while not self._take("}"):
            if not (self._take(";") or self._take(",")):
                self._statement(scope, depth)

    def _statement(self, scope: _Scope, depth: int) -> None:
        keyword = self._keyword()
        if keyword in ("node", "edge", "graph"):
            self._advance()
            attributes = self._attributes()
            if keyword == "node":
                scope.node = scope.node | attributes
            if keyword == "edge":
                scope.edge = scope.edge | attributes
            return
        place = self._place()
        names = self._end(scope, depth)
        if self._sort == SIGN and self._text == "->":
            self._chain(scope, depth, names, place)
            return
        if self._sort == SIGN and self._text == "--":
            raise ReadError(str(place), "an edge without a direction", quoted("->"))
        attributes = self._attributes()
        for name in names if attributes else ():
            self._graph.nodes[name] = self._graph.nodes[name] | attributes

    def _chain(self, scope: _Scope, depth: int, first: dict[str, None], place: Place) -> None:
        """Edges from each end to the next."""
        ends = [first]
        while self._take("->"):
            ends.append(self._end(scope, depth))
        attributes = scope.edge | self._attributes()
        for sources, readers in zip(ends, ends[1:], strict=False):
            if len(self._graph.edges) + len(sources) * len(readers) > self._most_edges:
                raise self._too_many("edges")
            for source in sources:
                for reader in readers:
                    self._join(source, reader, attributes, place)

    def _join(self, source: str, reader: str, attributes: Attributes, place: Place) -> None:
        edges = self._graph.edges
        if self._is_strict:
            known = self._known_edges.setdefault((source, reader), len(edges))
            if known < len(edges):
                self._graph.merged += 1
                edges[known] = (source, reader, edges[known][2] | attributes, place)
                return
        edges.append((source, reader, attributes, place))

    def _end(self, scope: _Scope, depth: int) -> dict[str, None]:
        """The nodes at one end of an edge: one, or all of a subgraph; none of ``name = value``."""
        is_subgraph = self._take_keyword("subgraph")
        if is_subgraph and self._sort >= ID:
            self._advance()
        if self._take("{"):
            inner = _Scope(scope.node, scope.edge)
            self._body(inner, depth + 1)
            scope.names.update(inner.names)
            return inner.names
        if is_subgraph:
            raise self._refusal(quoted("{"))
        name = self._id("a node, an edge or a subgraph")
        if self._take("="):  # of the graph itself
            self._id("a value")
            return {}
        while self._take(":"):  # a port, and where it lies
            self._id("a port")
        if name not in self._graph.nodes:
            self._graph.nodes[name] = scope.node
            if len(self._graph.nodes) > self._most_nodes:
                raise self._too_many("nodes")
        scope.names[name] = None
        return {name: None}

    def _attributes(self) -> Attributes:
        """Lists in brackets, as many as there are; names may be quoted."""
        found: Attributes = {}
        while self._take("["):
            while not self._take("]"):
                name = self._id("the name of an attribute")
                value = self._id("a value") if self._take("=") else "true"
                if plain(name) in KEPT:
                    found[plain(name)] = value
                if not self._take(","):
                    self._take(";")
        return found

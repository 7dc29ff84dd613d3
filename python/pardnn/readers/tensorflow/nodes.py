"""The nodes of a graph with their edges, and what a file's nodes count up to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pardnn
from pardnn.readers.tensorflow import types
from pardnn.readers.tensorflow.optypes import CALLS, FRAME_OPS, OPTIMIZERS

Tensor = tuple[str, int]
"""Name of a node, number of its output."""


@dataclass(slots=True)
class Node:
    """One node. `attr` maps names to AttrValue messages; `device` is as written."""

    name: str
    op: str
    inputs: list[Tensor] = field(default_factory=list)
    controls: list[str] = field(default_factory=list)
    device: str = ""
    attr: Mapping[str, Any] = field(default_factory=dict)

    def dtype(self, name: str) -> int:
        """The attribute `name` as an element type, 0 where there is none."""
        return types.plain(self.attr[name].type) if name in self.attr else 0

    def integer(self, name: str, default: int = 0) -> int:
        """The attribute `name` as a number."""
        return int(self.attr[name].i) if name in self.attr else default

    def flag(self, name: str) -> bool:
        """The attribute `name` as yes or no, no where there is none."""
        return bool(self.attr[name].b) if name in self.attr else False

    def text(self, name: str) -> str:
        """The attribute `name` as text, empty where there is none."""
        return self.attr[name].s.decode(errors="replace") if name in self.attr else ""

    def classes(self) -> list[str]:
        """The nodes that this one says it must be with."""
        if "_class" not in self.attr:
            return []
        texts = [s.decode(errors="replace") for s in self.attr["_class"].list.s]
        return [text[5:] for text in texts if text.startswith("loc:@")]


Nodes = dict[str, Node]


def nodes_of(definitions: Iterable[Any], where: str) -> Nodes:
    """The nodes of a graph by name, in the file's order; `where` begins messages of errors.

    Raises pardnn.Error for a node without name or type, a name twice, an input that no node has.
    """
    nodes: Nodes = {}
    for number, one in enumerate(definitions):
        if not one.name or not one.op:
            what = "name" if not one.name else "type"
            raise pardnn.Error(
                f"{where}node {number} ({one.name or one.op or 'empty'}) has no {what}"
            )
        if one.name in nodes:
            raise pardnn.Error(f"{where}two nodes are named {one.name}; names must differ")
        node = nodes[one.name] = Node(one.name, one.op, device=one.device, attr=one.attr)
        for text in one.input:
            if text.startswith("^"):
                node.controls.append(text[1:])
            else:
                node.inputs.append(tensor_of(text))
    for node in nodes.values():
        for name in (*(tensor[0] for tensor in node.inputs), *node.controls):
            if name not in nodes:
                raise pardnn.Error(
                    f"{where}node {node.name} reads {name!r}, and there is no node of that name; "
                    "was the graph cut without its inputs?"
                )
    return nodes


def tensor_of(text: str) -> Tensor:
    """`name` or `name:number` as a tensor."""
    name, colon, number = text.rpartition(":")
    return (name, int(number)) if colon and number.isdecimal() and len(number) < 10 else (text, 0)


def counts_of(graph: Any) -> dict[str, int]:
    """What a GraphDef holds: nodes, edges, control edges, and nodes of some sorts.

    `n` nodes, `e` inputs, `ctrl` control inputs among them, `class` nodes that name others to be
    with, `dev` different devices, `devn` nodes with one, `cf` nodes of v1 control flow, `funcalls`
    calls of functions, `nfun` functions, `fnodes` nodes in them, `refvar` and `resvar` variables of
    both sorts, `opt` updates by an optimizer, `shapes` nodes that state the shapes they give.
    """
    found: Counter[str] = Counter()
    devices = set()
    for node in graph.node:
        found["n"] += 1
        found["e"] += len(node.input)
        found["ctrl"] += sum(text.startswith("^") for text in node.input)
        found["class"] += "_class" in node.attr
        found["shapes"] += "_output_shapes" in node.attr
        found["devn"] += bool(node.device)
        devices.add(node.device)
        found["cf"] += node.op in FRAME_OPS
        found["funcalls"] += node.op in CALLS
        found["refvar"] += node.op in ("Variable", "VariableV2")
        found["resvar"] += node.op == "VarHandleOp"
        found["opt"] += node.op in OPTIMIZERS
    functions = graph.library.function
    found["dev"] = len(devices - {""})
    found["nfun"] = len(functions)
    found["fnodes"] = sum(len(one.node_def) for one in functions)
    names = "n e ctrl class dev devn cf funcalls nfun fnodes refvar resvar opt shapes"
    return {name: found[name] for name in names.split()}

"""Operator graphs in the JSON format of msr-fiddle/dnn-partitioning as graphs of this project.

A file lists `nodes` (`id`, `name`, `fpgaLatency` in ms, `isBackwardNode`, `colorClass`) and
`edges` (`sourceId`, `destId`, `size` in bytes). A node becomes an op with one output, as large as
the largest edge that leaves it. Members of a colour class must share a device: they form a group.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pardnn

NS_PER_MS = 1_000_000


def graph_of(content: dict[str, Any]) -> pardnn.Graph:
    inputs: dict[int, list[str]] = {}
    sent: dict[int, int] = {}
    for edge in content["edges"]:
        source = edge["sourceId"]
        inputs.setdefault(edge["destId"], []).append(f"n{source}")
        sent[source] = max(sent.get(source, 0), int(edge["size"]))
    graph = pardnn.Graph(about={"costs": "measured", "source": "msr-fiddle"})
    for node in content["nodes"]:
        number, colour = node["id"], node.get("colorClass")
        graph.op(
            f"n{number}",
            "Node",
            round(node["fpgaLatency"] * NS_PER_MS),
            inputs.get(number, []),
            [sent[number]] if number in sent else [],
            group=None if colour is None else f"c{colour}",
            phase="b" if node["isBackwardNode"] else "f",
            name=node["name"],
        )
    return graph


def convert(file: Path, target: Path) -> None:
    """Write the operator graph in `file` as a graph file."""
    graph_of(json.loads(file.read_text())).write(str(target))

"""Graphs of msr-fiddle: sizes, groups, units and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from given import is_planned, lines, read_json, refusal

PER_MS = (2 << 30) / 1000  # bytes


def node(number: int, ms: float = 1, **more: Any) -> dict[str, Any]:
    return {"id": number, "fpgaLatency": ms, "cpuLatency": 10 * ms, "supportedOnFpga": True} | more


def edge(source: int, reader: int, size: float, cost: float = 0) -> dict[str, Any]:
    return {"sourceId": source, "destId": reader, "size": size, "cost": cost}


#  n0 ──> n1 ──> n2     n0 and n2 are of one colour; n0 sends 8 bytes to both others
#   └────────────┘
def test_a_colour_class_is_a_group(tmp_path: Path) -> None:
    nodes = [
        node(0, 0.5, name="w:0", isBackwardNode=False, colorClass=3),
        node(1, 2, name="x", isBackwardNode=0),
        node(2, 0.0001, name="w'", isBackwardNode=1, colorClass=3),
    ]
    edges = [edge(0, 1, 8.0), edge(0, 2, 8.0), edge(1, 2, 16.0)]
    reading = read_json(tmp_path, {"nodes": nodes, "edges": edges})
    assert lines(reading) == [
        "op n0 Node 500000 > 8 @c3 ph=f name=w:0",
        "op n1 Node 2000000 < n0 > 16 ph=f name=x",
        "op n2 Node 100 < n0 n1 @c3 ph=b name=w'",
    ]
    assert reading.counts == {"nodes": 3, "edges": 3}
    assert is_planned(reading)


def test_a_source_of_two_sizes_has_two_outputs(tmp_path: Path) -> None:
    nodes = [node(0), node(1), node(2), node(3)]
    edges = [edge(0, 1, 100), edge(0, 2, 0.125), edge(0, 3, 100)]
    assert lines(read_json(tmp_path, {"nodes": nodes, "edges": edges})) == [
        "op n0 Node 1000000 > 100 1 ph=f",  # a bit occupies a byte
        "op n1 Node 1000000 < n0 ph=f",
        "op n2 Node 1000000 < n0:1 ph=f",
        "op n3 Node 1000000 < n0 ph=f",
    ]


def test_what_a_layer_occupies_beyond_its_output_stays_there(tmp_path: Path) -> None:
    nodes = [
        node(4, size=1000.0),
        node(5, size=700.0, colorClass=1),
        node(6, size=64.0),  # the result: nobody reads it
        node(7, size=1000.0, isBackwardNode=True),  # its forward node's parameters again
    ]
    edges = [edge(4, 5, 300), edge(5, 6, 200), edge(5, 7, 200)]
    reading = read_json(tmp_path, {"nodes": nodes, "edges": edges})
    assert lines(reading) == [
        "var n4.held 700 @n4",
        "var n5.held 500 @c1",
        "op n4 Node 1000000 > 300 @n4 ph=f",
        "op n5 Node 1000000 < n4 > 200 @c1 ph=f",
        "op n6 Node 1000000 < n5 > 64* ph=f",
        "op n7 Node 1000000 < n5 ph=b",
    ]
    assert reading.notes == ["1200 bytes of nodes beyond their outputs are taken for variables"]


@pytest.mark.parametrize(("cost", "unit"), [(4.0, "milliseconds"), (0.004, "seconds")])
def test_the_unit_of_the_costs_of_edges_shows_in_their_sizes(
    tmp_path: Path, cost: float, unit: str
) -> None:
    edges = [edge(0, 1, 4 * PER_MS, cost), edge(0, 1, 8 * PER_MS, 77.0)]  # the second means nothing
    reading = read_json(tmp_path, {"nodes": [node(0), node(1)], "edges": edges})
    assert reading.notes == [
        f"the costs of 1 of 2 edges are {unit} of a link of 2 GiB/s; sizes are used instead"
    ]


def test_a_node_for_the_host_only_makes_two_kinds(tmp_path: Path) -> None:
    nodes = [node(0, 1), node(1, 2, supportedOnFpga=0)]
    reading = read_json(tmp_path, {"nodes": nodes, "edges": []})
    assert lines(reading) == [
        "op n0 Node 1000000,10000000 ph=f",
        "op n1 Node -,20000000 ph=f",
    ]
    assert "accelerator" in reading.notes[0]


def test_an_edge_without_a_size_leaves_it_unknown(tmp_path: Path) -> None:
    content = {"nodes": [node(0), node(1)], "edges": [{"sourceId": 0, "destId": 1, "cost": 3}]}
    reading = read_json(tmp_path, content)
    assert lines(reading)[0] == "op n0 Node 1000000 > ? ph=f"
    assert reading.notes == ["1 edges have no size, so tensors of unknown size remain"]


@pytest.mark.parametrize(
    ("nodes", "edges", "message"),
    [
        (
            [node(0), node(0)],
            [],
            "nodes[1]: found the id 0 a second time, expected ids that differ",
        ),
        ([node(0), 7], [], 'nodes[1]: found "7", expected an object'),
        (
            [node(0, float("nan"))],
            [],
            'node 0: found fpgaLatency "nan", expected a finite number of at least 0',
        ),
        (
            [node(0, -1)],
            [],
            'node 0: found fpgaLatency "-1", expected a finite number of at least 0',
        ),
        ([node(0, 1e300)], [], "node 0: found fpgaLatency 1000000"),
        (
            [node(0)],
            [edge(0, 9, 1)],
            "edges[0]: found an edge of the node 9, expected the id of a node",
        ),
        (
            [node(0)],
            [{"sourceId": 0}],
            "edges[0]: found no destId, expected an object that has it",
        ),
        ([node(0), node(1)], [edge(0, 1, -5)], 'edges[0]: found the size "-5", expected a finite'),
        ([node(0)], {}, 'edges: found "{}", expected a list'),
        ([node(0), node(1)], [edge(0, 1, 1), edge(1, 0, 1)], 'found a cycle "n0" -> "n1" -> "n0"'),
        ([node(0)], [edge(0, 0, 1)], "found"),
    ],
)
def test_what_is_no_graph_is_refused_where_it_stands(
    tmp_path: Path, nodes: list[Any], edges: Any, message: str
) -> None:
    file = tmp_path / "graph.json"
    file.write_text(json.dumps({"nodes": nodes, "edges": edges}))
    assert refusal(file).startswith(message)


def test_half_a_character_in_a_name_is_replaced(tmp_path: Path) -> None:
    nodes = [node(0, name="\ud800")]
    assert lines(read_json(tmp_path, {"nodes": nodes, "edges": []})) == [
        "op n0 Node 1000000 ph=f name=?"
    ]

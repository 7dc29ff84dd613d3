"""Graphs of METIS: which numbers of a line mean what, and what does not add up."""

from __future__ import annotations

from pathlib import Path

import pytest
from given import is_planned, lines, read_text, refusal


#  1 ── 2     with the weights 10, 20, 30 of the vertices; 1-2 weighs 7, 1-3 weighs 8
#  └─── 3
def test_edges_lead_to_the_higher_vertex(tmp_path: Path) -> None:
    reading = read_text(tmp_path, "% a comment\n3 2 11\n10 2 7 3 8\n20 1 7\n30 1 8\n")
    assert lines(reading) == [
        "op v1 Vertex 10000 > 7 8",
        "op v2 Vertex 20000 < v1",
        "op v3 Vertex 30000 < v1:1",
    ]
    assert reading.counts == {"nodes": 3, "edges": 2}
    assert is_planned(reading)


def test_without_weights_costs_and_sizes_are_unknown(tmp_path: Path) -> None:
    reading = read_text(tmp_path, "3 1\n2\n1\n\n")  # the third vertex has no neighbour
    assert lines(reading) == ["op v1 Vertex ? > ?", "op v2 Vertex ? < v1", "op v3 Vertex ?"]
    assert [note for note in reading.notes if "unknown" in note] == [
        "vertices have no weights, so costs are unknown; format 10 or 11 has them",
        "edges have no weights, so sizes are unknown; format 1 or 11 has them",
    ]


def test_a_vertex_with_a_size_sends_that_to_all(tmp_path: Path) -> None:
    reading = read_text(tmp_path, "3 2 110 2\n64 5 99 2 3\n32 6 99 1\n32 7 99 1\n")
    assert lines(reading) == [
        "op v1 Vertex 5000 > 64",
        "op v2 Vertex 6000 < v1",
        "op v3 Vertex 7000 < v1",
    ]
    assert "1 more weights of each vertex are not used" in reading.notes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2 1\n2\n1\n1\n", "1: found 2 vertices, expected 3, one for each line"),
        ("999999999999999999 1\n2\n", "1: found 999999999999999999 vertices, expected 1, one for"),
        ("2 5\n2\n1\n", "1: found 1 edges from lower to higher vertices and 1 back, expected 5"),
        (
            "2 1\n2\n\n",
            "1: found 1 edges from lower to higher vertices and 0 back, expected 1 each",
        ),
        ("2 1\n2\n3\n", "3: found the neighbour 3, expected the number of another vertex"),
        ("2 1\n1\n1\n", "2: found the neighbour 1, expected the number of another vertex"),
        ("2 1 1\n2\n1 1\n", "2: found a neighbour without the weight of its edge"),
        ("2 1 10\n\n1 1\n", "2: found 0 numbers, expected at least 1 of this vertex"),
        ("2 1\n-2\n1\n", '2: found "-2", expected a whole number below 10^18'),
    ],
)
def test_what_does_not_add_up_is_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "graph"
    file.write_text(text)
    assert refusal(file).startswith(message)

"""The DOT language in the dialects in which people write task graphs."""

from __future__ import annotations

from pathlib import Path

import pytest
from given import is_planned, lines, read_text, refusal


def test_quoted_names_of_attributes_and_a_hash_in_the_name_of_the_graph(tmp_path: Path) -> None:
    text = r"""
    /* tasks */
    strict digraph "Fork_Nodes_3_CCR_0.10#1" {
      "kind of graph"="Fork \
and join";
      0 ["Weight"="4"]; 1 ["Weight"="5", label="one\
 line"]; 2 [weight=6]
      0 -> 1 ["Weight"="10"];  // ten us at 12 GB/s: 120000 bytes
      0 -> 1 [color=red]
      0 -> 2 ["Weight"="1"];
    }"""
    reading = read_text(tmp_path, text)
    assert lines(reading) == [
        "op 0 Node 4000 > 120000 12000",
        "op 1 Node 5000 < 0 name=one%20line",
        "op 2 Node 6000 < 0:1",
    ]
    assert reading.counts == {"nodes": 3, "edges": 2}
    assert reading.notes == [
        "times of 3 nodes have no unit and are taken for us",
        "weights of 2 edges are taken for the us that a link of 12 GB/s needs",
        "1 edges stand twice in a strict graph and count once",
    ]
    assert is_planned(reading)


def test_bare_nodes_load_and_what_is_missing_is_said(tmp_path: Path) -> None:
    reading = read_text(tmp_path, '# 1 "x"\ndigraph {\n1;\n2;\n1->2;\n}\n')
    assert lines(reading) == ["op 1 Node ? > ?", "op 2 Node ? < 1"]
    assert reading.notes == [
        '2 nodes have no time; an attribute such as duration="12us" states it',
        '1 edges have no size; an attribute such as size="4MiB" of the edge or its node states it',
    ]


def test_units_types_labels_and_what_stays(tmp_path: Path) -> None:
    text = """digraph G {
      graph [size="7,5"]; rankdir=LR
      node [duration="1.5ms"]
      a [op=MatMul, label="dense", parameter_size="1KiB" size="2 KB"]
      b [duration="20ns" label="b\\nforward_compute_time=2.5, activation_size=30"]
      a -> b; a -> c [size=5]; b:out:n -> c:in
    }"""
    assert lines(read_text(tmp_path, text)) == [
        "var a.held 1024 @a",
        "op a MatMul 1500000 > 2000 5 @a name=dense",
        "op b Node 20 < a > 30 name=b\\nforward_compute_time=2.5,%20activation_size=30",
        "op c Node 1500000 < a:1 b",
    ]


def test_chains_and_subgraphs_join_all_to_all(tmp_path: Path) -> None:
    text = 'digraph { edge [bytes="8"] node [time="1"] a -> {b; subgraph s {c}} -> "d" + "e" -> f }'
    assert lines(read_text(tmp_path, text)) == [
        "op a Node 1000 > 8",
        "op b Node 1000 < a > 8",
        "op c Node 1000 < a > 8",
        "op de Node 1000 < b c > 8",
        "op f Node 1000 < de",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("graph { a -- b }", "1: found a graph without directions, expected a digraph"),
        ("digraph {\n a -- b }", '2: found an edge without a direction, expected "->"'),
        ("digraph {\n a ", "2: found the end of the file, expected a node, an edge or a subgraph"),
        ("digraph {\n a ]", '2: found "]", expected a node, an edge or a subgraph'),
        ('digraph {\n "a', "2: found a string without an end, expected a string that ends"),
        ("digraph { /* ", "1: found a comment without an end, expected a comment that ends"),
        ("digraph { a [label=<b<i>] }", "1: found an HTML string without an end"),
        ("digraph { a [time=4us] }", '1: found "4us", expected an ID; put it in quotes'),
        ('digraph { a [time="-4"] }', 'node a: found time "-4", expected a number of at least 0'),
        ('digraph { a [time="nan"] }', 'node a: found time "nan", expected a number of at least 0'),
        ('digraph { a [time="1e99"] }', "node a: found time 1e+102, expected less than 2^62"),
        ("digraph {\na -> b [size=x] }", '2: found size "x", expected a number of at least 0'),
        ("digraph { a -> b -> a }", 'found a cycle "a" -> "b" -> "a"'),
        ("digraph " + "{" * 300, "1: found subgraphs nested too deeply, expected at most 200"),
        ("digraph { a ! b }", '1: found "!", expected a word of DOT'),
    ],
)
def test_what_is_no_graph_of_ops_is_refused_where_it_stands(
    tmp_path: Path, text: str, message: str
) -> None:
    file = tmp_path / "graph.dot"
    file.write_text(text)
    assert refusal(file).startswith(message)


def test_more_edges_than_the_text_can_mean_are_refused(tmp_path: Path) -> None:
    names = " ".join(f"n{number}" for number in range(1000))
    file = tmp_path / "graph.dot"
    file.write_text(f"digraph {{ {{{names}}} -> {{m {names}}} }}")  # a million edges in 13 kB
    assert refusal(file).startswith("1: found more edges than fit ")

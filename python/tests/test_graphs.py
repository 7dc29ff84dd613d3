"""Graphs and machines from Python."""

import json
from pathlib import Path

import pytest
from small_step import TEXT, built

import pardnn
import pardnn._core


def test_calls_and_text_build_the_same_graph() -> None:
    graph = built()
    assert graph.text() == TEXT
    assert graph.hash == pardnn.Graph.parse(TEXT).hash
    # Least key first among what is ready: w and x; mm needs both.
    assert graph.op_keys == ["w", "x", "mm", "relu", "loss", "gw", "step"]
    assert graph.var_keys == ["w1"]


def test_every_field_of_an_op_reaches_the_text() -> None:
    graph = pardnn.Graph(kinds=("gpu", "cpu"), about={"costs": "measured here"})
    graph.group("g", on=("gpu",), avoid=("d3", "d4"))
    graph.var("v", None, group="g", name="the kernel", on=("d1",))
    graph.op("a", "T", (5, pardnn.NOT_ALLOWED), (), (None, 8, "8*"), flops=7, moved=9, at=3)
    graph.op("b", "T", [None, 4], ("a:1", "^a"), ("=0/4", "8~0"), avoid=("d2",), at=5)
    assert graph.text() == (
        "pdg 1\n"
        "about costs=measured%20here\n"
        "kind gpu cpu\n"
        "group g on=gpu not=d3,d4\n"
        "var v ? @g on=d1 name=the%20kernel\n"
        "op a T 5,- > ? 8 8* flops=7 moved=9 at=3\n"
        "op b T ?,4 < a:1 ^a > =0/4 8~0 not=d2 at=5\n"
    )


def test_a_graph_can_be_written_and_read(tmp_path: Path) -> None:
    for name in ("graph.pdg", "graph.pdg.gz"):
        built().write(str(tmp_path / name))
        assert pardnn.Graph.read(str(tmp_path / name)).text() == TEXT
    assert (tmp_path / "graph.pdg").read_text() == TEXT
    assert (tmp_path / "graph.pdg.gz").read_bytes()[:2] == b"\x1f\x8b"


def test_any_text_becomes_a_key() -> None:
    key = pardnn.escape_key("model/a b:0,^=é")
    assert key == "model/a%20b%3A0%2C^%3Dé"
    graph = pardnn.Graph()
    graph.op(key, "T", 1, (), (4,))
    graph.op("z", "T", 1, (key,))
    assert graph.op_keys == [key, "z"]


def test_a_graph_that_was_used_is_complete() -> None:
    graph = built()
    assert len(graph.op_keys) == 7
    with pytest.raises(pardnn.Error, match="this graph was used, and is complete"):
        graph.op("late", "T", 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a", "T", 1, ("none",)), "none"),
        (("a", "T", 1, ("a",)), "a"),
        (("a", "T", -7), "-7"),
        (("a", "T", (1, 2)), "2 costs"),
        (("a", "T", 1, (), ("=0",)), "=0"),
        (("a", "T", 1, (), (-4,)), "-4"),
        (("a:b", "T", 1), "a:b"),
    ],
)
def test_mistakes_are_named_when_the_graph_is_used(
    arguments: tuple[object, ...], message: str
) -> None:
    graph = pardnn.Graph()
    graph.op(*arguments)  # type: ignore[arg-type]
    with pytest.raises(pardnn.Error, match=r"^graph:3:\d+: found .*, expected ") as caught:
        graph.text()
    assert message in str(caught.value)


@pytest.mark.parametrize("text", ["a b", "", "a\nop b T 1", "a\tb"])
def test_a_field_cannot_break_out_of_its_record(text: str) -> None:
    graph = pardnn.Graph()
    with pytest.raises(pardnn.Error, match="escape_key helps"):
        graph.op(text, "T", 1)
    with pytest.raises(pardnn.Error, match="escape_key helps"):
        graph.op("a", "T", 1, (), (text,))
    with pytest.raises(pardnn.Error, match="escape_key helps"):
        graph.var("v", 1, group=text)


def test_an_error_is_a_value_error() -> None:
    assert issubclass(pardnn.Error, ValueError)
    assert (pardnn.Error.__module__, pardnn.Error.__qualname__) == ("pardnn", "Error")
    with pytest.raises(ValueError, match=r"^graph:1:1: found .*, expected "):
        pardnn.Graph.parse("something else")
    with pytest.raises(pardnn.Error, match="none.pdg"):
        pardnn.Graph.read("none.pdg")


def test_a_machine_is_stated_or_read(tmp_path: Path) -> None:
    stated = pardnn.Machine.uniform(devices=3, memory=[10, 20, 30], kind="cpu", reserve=5)
    assert stated.device_names == ["d0", "d1", "d2"]
    assert stated.memory == [10, 20, 30]
    assert stated.addresses == ["", "", ""]
    text = stated.text()
    assert pardnn.Machine.parse(text).text() == text
    (tmp_path / "m.json").write_text(text.replace('"d1"', '"other"'))
    assert pardnn.Machine.read(str(tmp_path / "m.json")).device_names == ["d0", "other", "d2"]
    assert json.loads(text)["devices"][2] == {
        "name": "d2",
        "kind": "cpu",
        "memory": 30,
        "reserve": 5,
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"devices": 2, "memory": [1]}, "memory: found 1 limits, expected 2"),
        ({"devices": 0, "memory": 1}, "expected at least one"),
        ({"devices": 129, "memory": 1}, "129"),
        ({"devices": 1, "memory": -1}, "-1"),
        ({"devices": 2, "memory": 1, "bandwidth": 0}, "bandwidth|rate"),
        ({"devices": 1, "memory": 1, "granularity": 0}, "granularity"),
    ],
)
def test_a_machine_that_cannot_be_is_refused(options: dict[str, int], message: str) -> None:
    with pytest.raises(pardnn.Error, match=message):
        pardnn.Machine.uniform(**options)  # type: ignore[arg-type]

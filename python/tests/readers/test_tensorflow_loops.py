"""Loops of TensorFlow: frames of v1 control flow, While with functions, trips, what is saved."""

from __future__ import annotations

from pathlib import Path

import pytest
from given import refusal
from tf_files import const, function, library, lines, node, placed_with, read, variable

F, N = "DT_FLOAT", "DT_INT32"
X = node("x", "Placeholder", dtype=F, shape=[4, 8])  # 128 bytes


def enter(name: str, source: str, frame: str, dtype: str = F) -> str:
    return node(name, "Enter", source, T=dtype, frame_name=f's: "{frame}"')


#  zero ─ e0 ─> m0 ─> less(limit) ─> cond ─> s0 ─> add(one) ─> n0 ─> m0      i = 0; while i < limit:
#     x ─ e1 ─> m1 ───────────────────────> s1 ─> mul ──────> n1 ─> m1          x = x * x; i += 1
def loop(limit: str = "") -> tuple[str, ...]:
    return (
        const("zero", 0),
        X,
        enter("e0", "zero", "loop", N),
        enter("e1", "x", "loop"),
        node("m0", "Merge", "e0", "n0", T=N),
        node("m1", "Merge", "e1", "n1", T=F),
        limit or const("limit", 7, wait="m0"),
        node("less", "Less", "m0", "limit", T=N),
        node("cond", "LoopCond", "less"),
        node("s0", "Switch", "m0", "cond", T=N),
        node("s1", "Switch", "m1", "cond", T=F),
        const("one", 1, wait="s0"),
        node("add", "Add", "s0:1", "one", T=N),
        node("mul", "Mul", "s1:1", "s1:1", T=F),
        node("n0", "NextIteration", "add", T=N),
        node("n1", "NextIteration", "mul", T=F),
        node("out", "Exit", "s1", T=F),
        node("end", "Neg", "out", T=F),
    )


# What `mul` gives is pushed in every trip; the gradient's loop pops it.
GRADIENT = (
    node("stack", "StackV2", "zero", elem_type=F),
    enter("es", "stack", "loop", "DT_RESOURCE"),
    node("push", "StackPushV2", "es", "mul", T=F),
    enter("ge", "x", "gradients/loop"),
    enter("ges", "stack", "gradients/loop", "DT_RESOURCE"),
    node("gm", "Merge", "ge", "gn", T=F),
    node("never", "Less", "gm", "gm", T=F),
    node("gc", "LoopCond", "never"),
    node("gs", "Switch", "gm", "gc", T=F),
    node("pop", "StackPopV2", "ges", elem_type=F),
    node("gmul", "Mul", "gs:1", "pop", T=F),
    node("gn", "NextIteration", "gmul", T=F),
    node("gout", "Exit", "gs", T=F),
)


def test_a_frame_is_one_op(tmp_path: Path) -> None:
    reading = read(tmp_path, *loop())
    assert lines(reading) == [
        "op x Placeholder > 128 every=1",
        "op zero Const > 4 every=1",
        "op loop While < zero x > 128",
        "op end Neg < loop > 128~0",
    ]
    assert reading.counts["cf"] == 10
    assert not any("trips" in note for note in reading.notes)  # 0, 1, … < 7


def test_what_a_loop_keeps_for_its_gradient_is_its_output_times_trips(tmp_path: Path) -> None:
    found = lines(read(tmp_path, *loop(), *GRADIENT))
    assert "op loop While < zero x stack > 128 896 @g_gradients/loop" in found  # 7 * 128
    assert "op gradients/loop While < x stack loop:1 @g_gradients/loop" in found
    # S09: the stack, a handle, is with both; it is never sent.
    assert "op stack StackV2 < zero > 256 @g_gradients/loop" in found


# S11: saved bytes grow with the trips; unknown trips are said, never 1 in silence.
@pytest.mark.parametrize("trips", [None, 10, 2700])
def test_trips_that_depend_on_data_are_an_input(tmp_path: Path, trips: int | None) -> None:
    limit = enter("limit", "length", "loop", N)
    length = node("length", "Placeholder", dtype=N, shape=[1])
    reading = read(tmp_path, *loop(limit), length, *GRADIENT, trips=trips)
    saved = 128 * (trips or 32)
    assert any(f"> 128 {saved} @" in line for line in lines(reading))
    said = "10 trips, as --trips says" if trips == 10 else "trips"
    assert any(said in note for note in reading.notes)
    assert any("32 trips are assumed" in note for note in reading.notes) == (trips is None)


def test_times_and_flops_of_a_loop_count_every_trip(tmp_path: Path) -> None:
    weights = node("w", "Placeholder", dtype=F, shape=[8, 8])
    nodes = [one for one in loop() if '"mul"' not in one.splitlines()[1]]
    product = node("mul", "MatMul", "s1:1", "ew", T=F)
    text = read(tmp_path, *nodes, weights, enter("ew", "w", "loop"), product).graph.text()
    assert f"flops={7 * 2 * 4 * 8 * 8}" in text


# S10: an inner loop is part of its outer one.
def test_nested_frames_are_one_op(tmp_path: Path) -> None:
    inner = (
        enter("ie", "s1:1", "inner"),
        node("im", "Merge", "ie", "in", T=F),
        node("il", "LoopCond", "itest"),
        node("itest", "Less", "im", "im", T=F),
        node("is", "Switch", "im", "il", T=F),
        node("ineg", "Neg", "is:1", T=F),
        node("in", "NextIteration", "ineg", T=F),
        node("iout", "Exit", "is", T=F),
    )
    nodes = [one for one in loop() if '"mul"' not in one.splitlines()[1]]
    reading = read(tmp_path, *nodes, *inner, node("mul", "Mul", "iout", "iout", T=F))
    assert list(reading.graph.op_keys) == ["x", "zero", "loop", "end"]
    assert any("loop inner runs depends on data" in note for note in reading.notes)


def test_colocation_reaches_into_loops(tmp_path: Path) -> None:
    outside = node("big", "Exp", "w/read", T=F, _class=placed_with("mul"))
    reading = read(
        tmp_path, *loop(), variable("w", [999]), node("w/read", "Identity", "w", T=F), outside
    )
    assert "op loop While < zero x > 128 @g_big" in lines(reading)
    assert "op big Exp < w/read > 3996 @g_big" in lines(reading)


def test_next_iteration_may_be_read_twice(tmp_path: Path) -> None:
    again = node("again", "Merge", "e0", "n0", T=N)
    assert "loop" in read(tmp_path, *loop(), again).graph.op_keys


def test_a_cycle_without_next_iteration_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "graph.pb"
    file.write_text(node("a", "Neg", "b") + node("b", "Neg", "a"))
    assert refusal(file) == (
        "nodes wait for each other (a <- b <- a), and no NextIteration is among them"
    )


# --- While with functions ------------------------------------------------------------------------

TEST = node("less", "Less", "i", "end:output:0")
END = node("end", "Const", dtype=F, value="tensor { dtype: DT_FLOAT tensor_shape {} float_val: 5 }")
COND = function("cond", ["i", "x"], {"r": "less:z:0"}, END, TEST)
STEP = END.replace('"end"', '"one"').replace("5", "1")
BODY = function(
    "body",
    ["i", "x"],
    {"i2": "add:z:0", "x2": "prod:product:0"},
    STEP,
    node("add", "Add", "i", "one:output:0", T=F),
    node("prod", "MatMul", "x", "x", T=F),
)


def test_a_functional_while_is_one_op(tmp_path: Path) -> None:
    start = END.replace('"end"', '"start"').replace("5", "0")
    reading = read(
        tmp_path,
        start,
        node("m", "Placeholder", dtype=F, shape=[8, 8]),
        node(
            "while",
            "While",
            "start",
            "m",
            T=f"list {{ type: {F} type: {F} }}",
            cond='func { name: "cond" }',
            body='func { name: "body" }',
            _output_shapes="list { shape {} shape { dim { size: 8 } dim { size: 8 } } }",
        ),
        library(COND, BODY),
    )
    assert "op while While < start m > 4 256" in lines(reading)
    assert f"flops={5 * 2 * 8 * 8 * 8}" in reading.graph.text()  # five trips
    assert (reading.counts["funcalls"], reading.counts["nfun"]) == (1, 2)

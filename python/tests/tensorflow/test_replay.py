"""Plans as allocators see them: what outputs and copies are given, worked by hand."""

from __future__ import annotations

from typing import Any

import pytest

import pardnn
from pardnn.tensorflow.replay import Replay
from pardnn.tensorflow.step_graph import StepGraph

MIB = 1 << 20


def step_of(graph: pardnn.Graph, duration_ns: dict[str, int], **more: Any) -> StepGraph:
    return StepGraph(graph, {}, {}, frozenset(), frozenset(), duration_ns=duration_ns, **more)


def test_what_is_missing_is_named_by_device() -> None:
    graph = pardnn.Graph.parse("pdg 1\nop a A 10 > 4194304\nop b B 10 < a > 2097152\n")
    machine = pardnn.Machine.uniform(devices=1, memory=10 * MIB, granularity=256)
    plan = pardnn.plan(graph, machine)

    step = step_of(graph, {"a": 10, "b": 10})
    assert Replay(plan, step).missing({"d0": 8 * MIB}) == {}
    # a and b are there at once: 6 MiB.
    assert Replay(plan, step).missing({"d0": 5 * MIB}) == {"d0": MIB}


# a goes from d0 to d1, where r may take over its copy.
SENT = "pdg 1\nop a A 9 > 1048576\nop p P 9 > 1048576\nop r R 9 < a p > 1048576~0\n"


@pytest.mark.parametrize(("others", "mib"), [([], 3), (["p:0"], 2)])
def test_an_output_takes_over_no_copy_but_what_else_it_may(others: list[str], mib: int) -> None:
    graph = pardnn.Graph.parse(SENT)
    plan = pardnn.simulate(
        graph,
        pardnn.Machine.uniform(devices=2, memory=10 * MIB, granularity=256),
        placement={"a": "d0", "p": "d1", "r": "d1"},
    )
    assert plan.peaks["d1"] == 2 * MIB

    step = step_of(
        graph,
        {"a": 9, "p": 9, "r": 9},
        takers={"a:0": [("r", 0)]},
        taken_from={"r:0": ["a:0", *others]},
    )
    assert Replay(plan, step).peaks()["d1"] == mib * MIB


# a's copy may be at d1 from 9 on and is there at 1009 ns. By then p has come and gone before w.
LATE = """pdg 1
op a A 9 > 3145728
op p P 9 > 5242880
op w W 10 < ^p > 1048576
op q Q 10 < p ^w > 8
op r R 9 < a w ^q > 8388608
"""


def test_a_copy_that_comes_later_than_planned_may_be_given_a_larger_chunk() -> None:
    graph = pardnn.Graph.parse(LATE)
    plan = pardnn.simulate(
        graph,
        pardnn.Machine.uniform(devices=2, memory=99 * MIB, bandwidth=3145728 * 10**6),
        placement={"a": "d0", **dict.fromkeys("pqwr", "d1")},
        order={"d0": ["a"], "d1": ["p", "w", "q", "r"]},
    )
    assert plan.peaks["d1"] == 12 * MIB  # w, the copy, r

    step = step_of(graph, {"a": 9, "p": 9, "q": 10, "w": 10, "r": 9})
    # The 3 MiB of a late copy are given all 5 that p has left.
    assert Replay(plan, step).peaks()["d1"] == 14 * MIB


def test_a_read_of_a_small_variable_takes_nothing() -> None:
    graph = pardnn.Graph.parse(
        "pdg 1\nvar v 1048576 @g\nop r R 9 < v > 1048576 @g\nop x X 9 < r > 1048576\n"
    )
    plan = pardnn.plan(graph, pardnn.Machine.uniform(devices=1, memory=10 * MIB))
    assert plan.peaks["d0"] == 3 * MIB  # the read is stated as a copy
    step = step_of(graph, {"r": 9, "x": 9}, shared_reads=frozenset("r"))
    assert Replay(plan, step).peaks() == {"d0": 2 * MIB}


def test_a_batch_is_let_go_when_it_was_read() -> None:
    graph = pardnn.Graph()
    graph.op("batch", "Placeholder", 0, outputs=[4 * MIB], every=True)
    graph.op("a", "A", 9, inputs=["batch"], outputs=[MIB])
    graph.op("b", "B", 9, inputs=["a"], outputs=[4 * MIB])
    plan = pardnn.plan(graph, pardnn.Machine.uniform(devices=1, memory=10 * MIB))
    assert plan.peaks["d0"] == 9 * MIB
    step = step_of(graph, {"a": 9, "b": 9}, input_readers={"batch": ["a"]})
    # b takes the place of the batch beside a.
    assert Replay(plan, step).peaks() == {"d0": 5 * MIB}


def test_an_assigned_variable_gets_the_buffer_of_its_value() -> None:
    # The value is made beside the variable, of which it takes the place: 2 of 4 MiB are in use at
    # any time, and each step finds a hole where the next value fits.
    graph = pardnn.Graph.parse(
        "pdg 1\nvar v 2097152 @g\nop x X 9 > 2097152\nop s AssignVariableOp 9 < !v x > 0 @g\n"
    )
    plan = pardnn.plan(graph, pardnn.Machine.uniform(devices=1, memory=10 * MIB))
    step = step_of(graph, {"x": 9, "s": 9}, assigned={"s": ("v", "x:0")})
    replay = Replay(plan, step)
    assert replay.peaks() == {"d0": 4 * MIB}
    assert replay.missing({"d0": 4 * MIB}) == {}
    assert replay.missing({"d0": 4 * MIB - 256}) == {"d0": 256}

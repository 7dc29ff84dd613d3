"""Gates around transfers: which a plan asks for, and the nodes and edges they become."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

import pardnn
from pardnn.tensorflow import gates
from pardnn.tensorflow.gates import Gate

# a (d0, 100 ns) sends 1 MB to d1 while d1 is busy with p and q; b follows on d0.
STEP = """pdg 1
op a A 100 > 1000000
op b B 5000 < ^a > 8
op p P 40 > 1000000
op q Q 200 < ^p > 8
op r R 10 < a ^q > 8
"""
PLACE = {"a": "d0", "b": "d0", "p": "d1", "q": "d1", "r": "d1"}


def simulated() -> tuple[Any, list[str], dict[str, int]]:
    graph = pardnn.Graph.parse(STEP)
    machine = pardnn.Machine.uniform(devices=2, memory=10**9, bandwidth=10**12)
    order = {"d0": ["a", "b"], "d1": ["p", "q", "r"]}
    plan = pardnn.simulate(graph, machine, placement=PLACE, order=order)
    costs = {"a": 100, "b": 5000, "p": 40, "q": 200, "r": 10}
    return plan, list(graph.op_keys), costs


def test_a_copy_waits_for_the_last_op_its_receiver_has_finished_then() -> None:
    # The copy starts at 100, when d1 has finished p (at 40) and is busy with q; without a gate it
    # could be there beside p's result.
    plan, keys, costs = simulated()
    assert plan.any_timing_peaks["d1"] > plan.peaks["d1"]
    found = gates.of_plan(plan, keys, costs, frozenset(PLACE), 1000)
    assert found == [Gate("a:0", "d1", "p", None)]


def test_small_transfers_and_one_device_need_none() -> None:
    plan, keys, costs = simulated()
    assert gates.of_plan(plan, keys, costs, frozenset(PLACE), 1 << 30) == []
    alone = pardnn.simulate(
        pardnn.Graph.parse(STEP),
        pardnn.Machine.uniform(devices=1, memory=10**9),
        placement=dict.fromkeys(PLACE, "d0"),
    )
    assert gates.of_plan(alone, keys, costs, frozenset(PLACE), 0) == []


def test_a_copy_waits_until_what_its_receiver_sends_away_has_gone() -> None:
    # d1 makes p (until 40) and sends it: 1 us, there at 1040. a is ready at 5000 and comes after
    # that, when d1 has finished nothing but p.
    text = """pdg 1
    op a A 5000 > 1000000
    op p P 40 > 1000000
    op s S 10 < p > 8
    op r R 10 < a > 1000000
    """.replace("    ", "")
    place = {"a": "d0", "s": "d0", "p": "d1", "r": "d1"}
    plan = pardnn.simulate(
        pardnn.Graph.parse(text),
        pardnn.Machine.uniform(devices=2, memory=10**9, bandwidth=10**12),
        placement=place,
        order={"d0": ["a", "s"], "d1": ["p", "r"]},
    )
    costs = {"a": 5000, "p": 40, "s": 10, "r": 10}
    keys = list(pardnn.Graph.parse(text).op_keys)
    found = {g.tensor: g for g in gates.of_plan(plan, keys, costs, frozenset(place), 1000)}
    assert found["a:0"] == Gate("a:0", "d1", "p", None, (("p:0", "d0"),))
    nodes = [node("a", "X"), node("p", "Y"), node("s", "X", "p"), node("r", "Y", "a")]
    placed = [
        Gate("a:0", "Y", "p", None, (("p:0", "X"),)),
        Gate("p:0", "X", None, None),
    ]
    made = {n.name: n for n in gates.insert(nodes, placed)}
    assert list(made["pardnn_gate/0"].input) == ["a", "^p", "^pardnn_arrived/1"]


def test_an_op_that_may_never_run_waits_but_nothing_waits_for_it() -> None:
    plan, keys, costs = simulated()
    assert gates.of_plan(plan, keys, costs, frozenset(PLACE), 1000, conditional={"p"}) == []
    # a is gone from d0 at 1100; b, which starts at 2100, must not start before that.
    text = """pdg 1
    op a A 100 > 1000000
    op e E 2000 < ^a > 8
    op b B 10 < ^e > 1000000
    op r R 10 < a > 8
    op s S 10 < ^r > 8
    """.replace("    ", "")
    place = {"a": "d0", "e": "d0", "b": "d0", "r": "d1", "s": "d1"}
    plan = pardnn.simulate(
        pardnn.Graph.parse(text),
        pardnn.Machine.uniform(devices=2, memory=10**9, bandwidth=10**12),
        placement=place,
        order={"d0": ["a", "e", "b"], "d1": ["r", "s"]},
    )
    keys, large = list(pardnn.Graph.parse(text).op_keys), frozenset("abrs")
    costs = {"a": 100, "e": 2000, "b": 10, "r": 10, "s": 10}
    expected = [Gate("a:0", "d1", None, "b")]
    assert gates.of_plan(plan, keys, costs, large, 1000) == expected
    assert gates.of_plan(plan, keys, costs, large, 1000, conditional={"b"}) == expected
    takers = {"a:0": [("r", 0)]}
    hold = gates.Hold("a:0", "d1", "r", "s")
    assert gates.holds_of_plan(plan, takers, large, {"s"}) == [hold]
    assert gates.holds_of_plan(plan, takers, large, {"r", "s"}) == []


def test_what_takes_over_a_buffer_is_not_read_by_a_send() -> None:
    # Nothing else asks for a gate: d0 does nothing after a, and d1 nothing before r.
    text = "pdg 1\nop a A 100 > 1000000\nop r R 10 < a > 8\n"
    plan = pardnn.simulate(
        pardnn.Graph.parse(text),
        pardnn.Machine.uniform(devices=2, memory=10**9, bandwidth=10**12),
        placement={"a": "d0", "r": "d1"},
    )
    costs = {"a": 100, "r": 10}
    assert gates.of_plan(plan, ["a", "r"], costs, frozenset("ar"), 1000) == []
    found = gates.of_plan(plan, ["a", "r"], costs, frozenset("ar"), 1000, {"a:0"})
    assert [gate.tensor for gate in found] == ["a:0"]


def test_a_hold_reads_a_copy_until_its_reader_is_done() -> None:
    plan, _, _ = simulated()
    # r reads the copy of a on d1 and could take it over, but nothing comes after r there.
    assert gates.holds_of_plan(plan, {"a:0": [("r", 0)]}, frozenset(PLACE)) == []
    nodes = [node("a", "X"), node("r", "Y", "a"), node("next", "Y")]
    made = {n.name: n for n in gates.insert(nodes, [], [gates.Hold("a:0", "Y", "r", "next")])}
    assert list(made["pardnn_hold/0"].input) == ["a", "^r"]
    assert made["pardnn_hold/0"].device == "Y"
    assert list(made["next"].input) == ["^pardnn_hold/0"]


def node(name: str, device: str, *edges: str) -> Any:
    made = tf.compat.v1.NodeDef(name=name, op="Relu", device=device, input=edges)
    made.attr["T"].type = tf.float32.as_datatype_enum
    return made


def test_readers_of_the_destination_read_what_has_arrived() -> None:
    nodes = [
        node("a", "X"),
        node("here", "X", "a"),
        node("busy", "Y"),
        node("there", "Y", "a"),
        node("next", "X"),
    ]
    found = {n.name: n for n in gates.insert(nodes, [Gate("a:0", "Y", "busy", "next")])}
    assert list(found["pardnn_gate/0"].input) == ["a", "^busy"]
    assert found["pardnn_gate/0"].device == "X"
    assert list(found["pardnn_arrived/0"].input) == ["pardnn_gate/0"]
    assert found["pardnn_arrived/0"].device == "Y"
    assert list(found["there"].input) == ["pardnn_arrived/0"]
    assert list(found["here"].input) == ["a"]
    assert list(found["next"].input) == ["^pardnn_arrived/0"]

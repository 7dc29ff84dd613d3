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


def test_small_transfers_and_peaks_that_no_timing_changes_need_none() -> None:
    plan, keys, costs = simulated()
    assert gates.of_plan(plan, keys, costs, frozenset(PLACE), 1 << 30) == []
    alone = pardnn.simulate(
        pardnn.Graph.parse(STEP),
        pardnn.Machine.uniform(devices=1, memory=10**9),
        placement=dict.fromkeys(PLACE, "d0"),
    )
    assert gates.of_plan(alone, keys, costs, frozenset(PLACE), 0) == []


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

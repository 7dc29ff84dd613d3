"""What a look ahead saw, as a graph to plan, and the plan as ranks use it."""

from __future__ import annotations

import types

import pardnn
from pardnn.torch.script.overheads import predicted_ns
from pardnn.torch.script.record import Memory, OpSeen, Seen
from pardnn.torch.script.step_graph import StepGraph
from pardnn.torch.script.tables import Tables

MIB = 1 << 20
FIRST, SECOND = ("m0.0", "addmm", 0), ("m0.1", "addmm", 0)
GRADIENT = ("backward", SECOND, "mm", 0)


def two_layers() -> Seen:
    """One step of two layers, as it is seen: weights 0 and 1, activations 2 and 3, gradients 4, 5.

         weight0        weight1
            |              |
    (x) -> first --2--> second --3--> back1 --> grad5 -> update1
                  \\____________________|
                                    back0 --> grad4 -> update0
    """
    units = [("parameter", 0), ("parameter", 1), FIRST, SECOND]
    memories = [
        Memory(unit=0, nbytes=8 * MIB, born=0, parameter=0),
        Memory(unit=1, nbytes=8 * MIB, born=0, parameter=1),
        Memory(unit=2, nbytes=1 * MIB, born=0, gone=3),
        Memory(unit=3, nbytes=1 * MIB, born=1, gone=4),
        Memory(unit=2, nbytes=8 * MIB, born=3, gone=6),
        Memory(unit=3, nbytes=8 * MIB, born=2, gone=6),
    ]
    ops = [
        OpSeen("addmm", 2, "f", FIRST, 0, reads=(0,), makes=((2, 0),), shared=((0, MIB),)),
        OpSeen("addmm", 3, "f", SECOND, 0, reads=(1, 2), makes=((3, 0),)),
        OpSeen("mm", 3, "b", GRADIENT, 1, reads=(2, 3), makes=((5, 0),)),
        OpSeen("mm", 2, "b", None, 1, reads=(3,), makes=((4, 0),)),
        OpSeen("add_", 1, "u", None, 2, reads=(1, 5), writes=(1,)),
        OpSeen("add_", 0, "u", None, 2, reads=(0, 4), writes=(0,)),
    ]
    costs_ns = [2_000_000, 3_000_000, 500_000]
    return Seen(ops, memories, units, costs_ns, begin=0, end=6, whole=True, parameters=2)


def plan_of(step: StepGraph, memory: int) -> pardnn.Plan:
    machine = pardnn.Machine.uniform(devices=2, memory=memory, kind="cpu")
    return pardnn.plan(step.graph, machine, sequence="given")


def tables_of(step: StepGraph, second: set[str]) -> Tables:
    """Tables of a plan that has these ops on the second device and all else on the first."""
    keys = [*step.variable_sizes(), *step.graph.op_keys]
    plan = types.SimpleNamespace(device_of={key: "d1" if key in second else "d0" for key in keys})
    return step.tables(plan, {"d0": 0, "d1": 1})


def test_one_device_takes_the_sum_of_all_costs() -> None:
    step = StepGraph(two_layers())
    machine = pardnn.Machine.uniform(devices=1, memory=100 * MIB, kind="cpu")
    plan = pardnn.plan(step.graph, machine, sequence="given")
    # Two products of 2 ms, two of 3 ms, two updates of 0.5 ms, and reads that take next to nothing.
    assert plan.step_ns // 1000 == 11_000
    assert pardnn.check(step.graph, plan) == []


def test_the_peak_is_all_weights_and_gradients_and_what_is_kept_for_backward() -> None:
    step = StepGraph(two_layers())
    machine = pardnn.Machine.uniform(devices=1, memory=100 * MIB, kind="cpu")
    plan = pardnn.plan(step.graph, machine, sequence="given")
    # While grad4 is made: weights 16, the batch 1, activation 3, both gradients 16.
    assert plan.peaks["d0"] == 34 * MIB


def test_a_plan_for_two_small_ranks_is_turned_into_tables() -> None:
    step = StepGraph(two_layers())
    plan = plan_of(step, memory=20 * MIB)
    assert plan.fits
    tables = step.tables(plan, {"d0": 0, "d1": 1})
    assert set(tables.parameters) == {0, 1}
    assert tables.parameters[0] != tables.parameters[1]
    assert tables.ops[FIRST] != tables.ops[SECOND]
    # The first activation is read twice by the second layer's rank: forward and backward.
    assert tables.readers[FIRST] == {0: {tables.ops[SECOND]: 2}}
    assert tables.at_once[FIRST] == {0: {tables.ops[SECOND]}}


def test_a_gradient_is_let_go_where_its_update_was_the_last_to_read_it() -> None:
    seen = two_layers()
    seen.ops[4].unit = 0  # the second weight is updated with the first
    seen.memories[1].unit = 0
    step = StepGraph(seen)
    tables = tables_of(step, {"op1", "op2"})
    assert tables.readers[GRADIENT] == {0: {0: 1}}
    assert tables.at_once[GRADIENT] == {0: {0}}


def test_a_gradient_that_is_clipped_first_is_not_sent_as_it_was_made() -> None:
    seen = two_layers()
    seen.ops[4].unit = 0
    seen.memories[1].unit = 0
    clip = OpSeen("mul_", 3, "u", None, 2, reads=(5,), writes=(5,))
    seen.ops.insert(4, clip)
    seen.end = 7
    for memory in seen.memories[4:]:
        memory.gone = 7
    tables = tables_of(StepGraph(seen), {"op1", "op2", "op4"})
    assert tables.readers[GRADIENT] == {0: {0: 1}}
    assert GRADIENT not in tables.at_once


def test_an_op_of_the_script_has_its_name_in_the_plan() -> None:
    text = StepGraph(two_layers()).graph.text()
    assert "name=m0.0.addmm/0" in text
    assert "var var0 8388608 @u0 name=parameter%200" in text


def test_a_step_over_ranks_takes_what_each_looks_at_and_new_memory() -> None:
    """A plan of 6 ms; 4 of 6 ops are looked at, for 0.1 ms."""
    seen = two_layers()
    seen.costs_ns = [2_000_000, 500_000, 500_000]
    seen.overheads = (100_000, 50_000)
    where = {0: 0, 1: 1, 2: 0, 3: 1}
    free = predicted_ns(6_000_000, seen, where, (None, None), cores=2)
    assert free == 6_000_000 + 4 * 100_000
    # Rank 0 makes activation and gradient of 1 and 8 MiB, each of them new memory.
    tight = predicted_ns(6_000_000, seen, where, (100 * MIB, 100 * MIB), cores=2)
    assert tight == free + 9 * 50_000


def test_ranks_that_share_a_core_take_turns() -> None:
    seen = two_layers()
    seen.costs_ns = [2_000_000, 500_000, 500_000]
    seen.overheads = (100_000, 0)
    one_core = predicted_ns(1_000_000, seen, dict.fromkeys(range(4), 0), (None, None), cores=1)
    assert one_core == 2 * 2_000_000 + 4 * 500_000 + 2 * 4 * 100_000

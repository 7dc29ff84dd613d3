"""What the adapter asks the planner for: room in the allocator, and limits kept with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import pardnn
from pardnn.launch import RunOptions
from pardnn.tensorflow import planning
from pardnn.tensorflow.planning import CorePlanner

MIB = 1 << 20


def planner(machine: pardnn.Machine, **options: Any) -> CorePlanner:
    chosen = RunOptions(
        devices=len(machine.device_names),
        memory=tuple(machine.memory),
        script=Path("train.py"),
        **options,
    )
    nobody: Any = None
    return CorePlanner(chosen, nobody, machine)


def roomiest(machine: pardnn.Machine, graph: pardnn.Graph, **options: Any) -> Any:
    """The plan it would use if an allocator had no gaps."""
    nothing = dict.fromkeys(machine.device_names, 0)
    plans = planner(machine, **options)._plans(graph, nothing, planning._MARGINS_PER_MILLE, seed=0)
    return planning._roomiest(plans)


def two_devices(bandwidth: int) -> pardnn.Machine:
    return pardnn.Machine.uniform(devices=2, memory=100 * MIB, kind="cpu", bandwidth=bandwidth)


# b reads what a makes; together they hold 40 + 50 MIB, apart 50 each.
STEP = """pdg 1
var v 41943040 @v
op a A 1000 < v > 10485760 @v
op b B 1000 < a > 41943040
"""


def test_a_plan_keeps_its_distance_from_the_limits_where_that_costs_nothing() -> None:
    graph = pardnn.Graph.parse(STEP.replace(" 1000 ", " 1000000000 "))
    plan = roomiest(two_devices(10**12), graph)
    assert plan.fits
    assert max(plan.peaks.values()) <= 75 * MIB


def test_a_distance_that_makes_the_step_longer_is_not_kept() -> None:
    # Sending 10 MiB takes 10 s at 1 MiB/s, the step 2 us: both ops stay on one device.
    plan = roomiest(two_devices(MIB), pardnn.Graph.parse(STEP))
    assert plan.fits
    assert max(plan.peaks.values()) == 90 * MIB
    assert plan.step_ns == 2000


def test_the_margin_that_was_asked_for_is_the_least() -> None:
    graph = pardnn.Graph.parse(STEP)
    assert roomiest(two_devices(MIB), graph, margin=100).fits
    assert max(roomiest(two_devices(MIB), graph, margin=100).peaks.values()) == 90 * MIB
    assert max(roomiest(two_devices(MIB), graph, margin=101).peaks.values()) == 50 * MIB


@pytest.mark.parametrize(("stated", "used"), [(1, 256), (100, 256), (256, 256), (512, 512)])
def test_buffers_are_rounded_at_least_as_the_allocator_does(stated: int, used: int) -> None:
    machine = pardnn.Machine.uniform(devices=1, memory=MIB, kind="cpu", granularity=stated)
    planned_for = planner(machine)._machine
    assert json.loads(planned_for.text())["granularity"] == used

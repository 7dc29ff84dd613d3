"""A step with conditionals computes the same however it is placed, whichever branch is taken."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import pardnn
from pardnn.tensorflow.costs import CostTable
from pardnn.tensorflow.loops import regions_of
from pardnn.tensorflow.place import base_graph, place
from pardnn.tensorflow.step_graph import StepGraph, step_placement
from pardnn.tensorflow.tracing import capture_function
from pardnn.tensorflow.translate import translate

SIDE = 256  # a matrix of SIDE x SIDE float32 is 256 KiB: large enough for its order to be enforced
# Dead results travel by the same rules between two devices and within one.
CPU = "/job:localhost/replica:0/task:0/device:CPU:0"


class Model:
    """Two weights; a conditional between them, another that updates one, and updates of both."""

    def __init__(self) -> None:
        self.first = tf.Variable(tf.fill([SIDE, SIDE], 0.01))
        self.second = tf.Variable(tf.fill([SIDE, SIDE], -0.02))
        self.skipped = tf.Variable(tf.zeros([SIDE, SIDE]))
        self.variables = [self.first, self.second, self.skipped]

    def step(self, x: Any) -> Any:
        y = x @ self.first
        total = tf.reduce_sum(y)
        z = tf.cond(total > 0.0, lambda: tf.exp(y) @ self.second, lambda: y - 1.0)
        tf.cond(
            total > 0.0,
            lambda: self.skipped.assign_add(z * 2.0).op,
            lambda: self.skipped.assign_sub(y).op,
        )
        # These run whichever branch was taken, and must not be skipped with the other.
        self.first.assign_sub(z * 0.001)
        self.second.assign_add(y * 0.001)
        return tf.reduce_sum(z)


def random_plan(step: StepGraph, seed: int) -> Any:
    """A plan that puts each group, and each op without one, on either of two devices."""
    chooser = random.Random(seed)
    home: dict[str, str] = {}
    placement = {}
    for line in step.graph.text().splitlines():
        words = line.split()
        if words[0] not in ("op", "var") or "every" in words:
            continue
        group = next((word for word in words if word.startswith("@")), words[1])
        placement[words[1]] = home.setdefault(group, chooser.choice(["d0", "d1"]))
    machine = pardnn.Machine.uniform(devices=2, memory=1 << 40, kind="cpu", granularity=256)
    return pardnn.simulate(step.graph, machine, placement=placement)


@pytest.mark.parametrize("seed", range(8))
def test_no_enforced_order_skips_what_runs_in_either_case(seed: int) -> None:
    ordinary, placed = Model(), Model()
    capture = capture_function(placed.step, tf.TensorSpec([None, SIDE]), variables=placed.variables)
    graph = base_graph(capture, [[SIDE, SIDE]])
    step = translate(graph, capture, CostTable(regions_of(graph)), granularity=256)
    plan = random_plan(step, seed)
    found = step_placement(step, plan, {"d0": CPU, "d1": CPU})
    assert found.gates
    run = place(capture, [[SIDE, SIDE]], found)

    for sign in (1.0, -1.0, 1.0):
        batch = tf.fill([SIDE, SIDE], sign)
        expected = tf.function(ordinary.step)(batch)
        (result,) = run([batch])
        np.testing.assert_array_equal(result, expected)
        for ours, theirs in zip(placed.variables, ordinary.variables, strict=True):
            np.testing.assert_array_equal(ours.numpy(), theirs.numpy())

"""With --respect-devices a script's device of some number is the worker of that number."""

from __future__ import annotations

import pytest
import tensorflow as tf

import pardnn
from pardnn.errors import UsageError
from pardnn.tensorflow import scopes
from pardnn.tensorflow.costs import CostTable
from pardnn.tensorflow.loops import regions_of
from pardnn.tensorflow.place import base_graph
from pardnn.tensorflow.tracing import capture_function
from pardnn.tensorflow.translate import translate

NAMES = ["d0", "d1", "d2"]


def halves(x: tf.Tensor) -> tf.Tensor:
    with tf.device("/GPU:2"):
        y = tf.exp(x, name="far")
    with tf.device("/device:CPU:1"):
        y = tf.sin(y, name="near")
    with tf.device("/CPU:0"):
        return tf.cos(y, name="free") + 1.0


def test_numbered_devices_are_orders_and_the_first_cpu_is_none() -> None:
    capture = capture_function(halves, tf.TensorSpec([512, 512]))
    graph = base_graph(capture, [[512, 512]])
    orders = scopes.orders_of(graph, NAMES)
    assert orders == {"far": "d2", "near": "d1"}
    costs = CostTable(regions_of(graph))
    step = translate(graph, capture, costs, builder=scopes.builder(orders))
    machine = pardnn.Machine.uniform(devices=3, memory=[1 << 30] * 3, kind="cpu")
    device_of = pardnn.plan(step.graph, machine).device_of
    assert (device_of["far"], device_of["near"]) == ("d2", "d1")


def test_a_number_that_no_worker_has_is_one_sentence() -> None:
    graph = base_graph(capture_function(halves, tf.TensorSpec([4])), [[4]])
    with pytest.raises(UsageError, match="wants far on /device:GPU:2, and this run has 2 devices"):
        scopes.orders_of(graph, NAMES[:2])

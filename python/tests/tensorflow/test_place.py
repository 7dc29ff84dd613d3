"""A step placed at random over three devices computes the ordinary run's numbers, to the bit."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from pardnn.tensorflow.place import StepPlacement, base_graph, place
from pardnn.tensorflow.tracing import capture_function

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def trained() -> Any:
    """What placed_models.py found: model -> "ordinary" and "placed" -> losses, weights, devices."""
    program = [sys.executable, str(HERE / "placed_models.py")]
    done = subprocess.run(program, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize("model", ["dense", "convolution", "recurrent", "attention"])
def test_losses_and_weights_are_those_of_the_ordinary_run(trained: Any, model: str) -> None:
    ordinary, placed = trained[model]["ordinary"], trained[model]["placed"]
    assert len(ordinary["losses"]) == 4
    assert placed["losses"] == ordinary["losses"]
    assert placed["weights"] == ordinary["weights"]


def test_the_runtime_puts_products_on_all_devices(trained: Any) -> None:
    assert [d[-5:] for d in trained["attention"]["placed"]["devices"]] == [
        "CPU:0",
        "CPU:1",
        "CPU:2",
    ]


def small_capture() -> tuple[Any, Any]:
    weight = tf.Variable(tf.fill([2, 2], 3.0))

    def step(x: Any) -> Any:
        scaled = tf.matmul(x, weight) * 2.0
        weight.assign_add(scaled)
        return tf.reduce_sum(scaled)

    return capture_function(step, tf.TensorSpec([None, 2]), variables=[weight]), weight


def test_nodes_without_a_device_are_copied_to_every_device_that_reads_them() -> None:
    from pardnn.tensorflow.place import _placed_nodes

    capture, _ = small_capture()
    (constant,) = [
        n.name
        for n in capture.graph_def.node
        if n.op == "Const" and not n.attr["value"].tensor.tensor_shape.dim
    ]
    readers = [n.name for n in capture.graph_def.node if constant in n.input]
    everything = [n.name for n in capture.graph_def.node if n.op not in ("Placeholder", "Const")]
    devices = {name: "/device:A" for name in everything} | {readers[0]: "/device:B"}
    nodes = {n.name: n for n in _placed_nodes(capture, StepPlacement(devices))}
    assert nodes[constant].device == "/device:B"
    assert constant in nodes[readers[0]].input


def test_control_edges_enforce_an_order() -> None:
    from pardnn.tensorflow.place import _placed_nodes

    capture, _ = small_capture()
    by_kind = {n.op: n.name for n in capture.graph_def.node}
    edge = (by_kind["Sum"], by_kind["AssignAddVariableOp"])
    placement = StepPlacement({n.name: "/device:A" for n in capture.graph_def.node}, [edge])
    nodes = {n.name: n for n in _placed_nodes(capture, placement)}
    assert f"^{edge[0]}" in nodes[edge[1]].input


def test_a_function_uses_the_handles_of_the_moment_it_was_placed() -> None:
    capture, weight = small_capture()
    graph = base_graph(capture, [(2, 2)])
    placement = StepPlacement(
        {op.name: "/device:CPU:0" for op in graph.get_operations() if op.type != "Placeholder"}
    )
    run = place(capture, [(2, 2)], placement)
    assert float(run([tf.eye(2)])[0]) == 4 * 3.0 * 2.0
    assert weight.numpy().tolist() == [[9.0, 9.0], [9.0, 9.0]]


def test_the_number_of_shapes_must_be_that_of_inputs() -> None:
    capture, _ = small_capture()
    with pytest.raises(ValueError, match="2 shapes for 1 inputs"):
        base_graph(capture, [(2, 2), (2, 2)])

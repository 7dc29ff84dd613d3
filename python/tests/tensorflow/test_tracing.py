"""What a capture keeps: data about a function, no storage of variables, and nothing that ran."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from pardnn.errors import Refusal
from pardnn.tensorflow import compat
from pardnn.tensorflow.place import StepPlacement, base_graph, place
from pardnn.tensorflow.tracing import capture_function


def step_of(weight: Any, table: Any) -> Any:
    def step(x: Any) -> dict[str, Any]:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.matmul(x + table, weight)))
        (gradient,) = tape.gradient(loss, [weight])
        weight.assign_sub(0.1 * gradient)
        return {"loss": loss, "nothing": None}

    return step


SPEC = tf.TensorSpec([None, 3])


def test_capturing_runs_nothing_and_binds_variables_by_identity() -> None:
    weight = tf.Variable(tf.ones([3, 2]))
    capture = capture_function(step_of(weight, np.ones(3, np.float32)), SPEC, variables=[weight])
    assert weight.numpy().tolist() == [[1.0, 1.0]] * 3
    assert [c.variable is weight for c in capture.captured] == [True]
    assert [(i.dtype, i.shape.as_list()) for i in capture.inputs] == [(tf.float32, [None, 3])]
    assert [n.op for n in capture.graph_def.node if n.name in capture.side_effects] == [
        "AssignSubVariableOp"
    ]


def test_small_captured_tensors_become_constants_and_large_ones_stay_inputs() -> None:
    weight = tf.Variable(tf.ones([3, 2]))
    small, large = tf.constant([1.0, 2.0, 3.0]), tf.zeros([30000, 3])
    capture = capture_function(
        lambda x: tf.reduce_sum(step_of(weight, small)(x)["loss"] + large), SPEC, variables=[weight]
    )
    kept = [c.tensor.shape.as_list() for c in capture.captured if c.variable is None]
    assert kept == [[30000, 3]]


def test_results_are_packed_as_they_were_returned() -> None:
    weight = tf.Variable(tf.ones([3, 2]))
    capture = capture_function(step_of(weight, 0.0), SPEC, variables=[weight])
    assert capture.pack(["the loss"]) == {"loss": "the loss", "nothing": None}


def test_a_capture_keeps_no_handle_alive() -> None:
    weight = tf.Variable(tf.ones([3, 2]))
    capture = capture_function(step_of(weight, 0.0), SPEC, variables=[weight])
    variable = weakref.ref(weight)
    capture.captured.clear()
    del weight
    gc.collect()
    assert variable() is None


def test_shapes_are_static_after_rebuilding_for_a_batch() -> None:
    weight = tf.Variable(tf.ones([3, 2]))
    capture = capture_function(step_of(weight, 0.0), SPEC, variables=[weight])
    for batch in (4, 7):
        graph = base_graph(capture, [(batch, 3)])
        products = [op for op in graph.get_operations() if op.type == "MatMul"]
        assert products[0].outputs[0].shape.as_list() == [batch, 2]
        names = {op.name for op in graph.get_operations() if op.type != "Placeholder"}
        assert names == {n.name for n in capture.graph_def.node if n.op != "Placeholder"}


def test_a_loop_stays_one_op_and_a_conditional_does_not() -> None:
    weight = tf.Variable(tf.ones([3, 2]))

    def step(x: Any) -> Any:
        y = tf.while_loop(
            lambda y: tf.reduce_sum(y) < 9.0, lambda y: (y + 1.0,), (tf.matmul(x, weight),)
        )[0]
        return tf.cond(
            tf.reduce_sum(y) > 1.0, lambda: weight.assign_add(weight), lambda: weight.read_value()
        )

    kinds = [n.op for n in capture_function(step, SPEC, variables=[weight]).graph_def.node]
    assert sum(kind in ("While", "StatelessWhile") for kind in kinds) == 1
    assert not {"If", "StatelessIf", "Enter", "NextIteration"} & set(kinds)
    assert "Merge" in kinds


def test_users_of_a_table_stay_with_the_caller() -> None:
    weight = tf.Variable(tf.ones([3]))
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([0, 2], tf.int64)), -1
    )
    capture = capture_function(
        lambda x: tf.gather(weight, table.lookup(x)),
        tf.TensorSpec([None], tf.string),
        variables=[weight],
    )
    kinds = {n.op for n in capture.graph_def.node if n.name in capture.host}
    assert kinds == {"LookupTableFindV2"}


def test_what_calls_python_or_writes_stays_with_the_caller_in_loops_too() -> None:
    weight = tf.Variable(tf.ones([3]))

    def step(x: tf.Tensor) -> tf.Tensor:
        tf.print("x is", x)
        total = tf.while_loop(
            lambda i, _: i < 2,
            lambda i, t: (i + 1, t + tf.numpy_function(np.sin, [t], tf.float32) * weight),
            (0, x),
            shape_invariants=(tf.TensorShape([]), tf.TensorShape(None)),
        )[1]
        return tf.numpy_function(np.cos, [total], tf.float32)

    capture = capture_function(step, tf.TensorSpec([3]), variables=[weight])
    kinds = {n.op for n in capture.graph_def.node if n.name in capture.host}
    assert kinds == {"PrintV2", "PyFunc"}
    inner = [n for f in capture.graph_def.library.function for n in f.node_def]
    assert {n.op: n.device for n in inner if n.device} == {"PyFunc": compat.local_device()}


def test_a_loop_over_a_dataset_cannot_be_placed_with_its_variables() -> None:
    weight = tf.Variable(tf.ones([3]))

    @tf.function
    def epoch(data: tf.data.Dataset) -> None:
        for batch in data:
            weight.assign_sub(batch)

    data = tf.data.Dataset.from_tensors(tf.ones([3]))
    with pytest.raises(Refusal, match="iterate over the dataset outside of the @tf.function"):
        capture_function(epoch.get_concrete_function(data), variables=[weight])


def test_what_waits_for_no_input_can_be_run_alone() -> None:
    count, weight = tf.Variable(0), tf.Variable(1.0)

    def step(x: tf.Tensor) -> None:
        before = count.read_value()
        count.assign_add(2)
        weight.assign_add(tf.cast(before, tf.float32) * x)

    capture = capture_function(step, tf.TensorSpec([]), variables=[count, weight])
    part = capture.without_inputs()
    assert part is not None
    assert [c.variable is count for c in part.captured] == [True]
    place(part, [], StepPlacement({}))([])
    assert (int(count), float(weight)) == (2, 1.0)
    only = capture_function(weight.assign_add, tf.TensorSpec([]), variables=[weight])
    assert only.without_inputs() is None


def test_equal_functions_have_equal_fingerprints_and_others_do_not() -> None:
    def fingerprint(rate: float) -> str:
        weight = tf.Variable(tf.ones([3, 2]))
        step = lambda x: weight.assign_sub(rate * tf.matmul(x, weight)[:3])  # noqa: E731
        return capture_function(step, SPEC, variables=[weight]).fingerprint()

    assert fingerprint(0.5) == fingerprint(0.5) != fingerprint(0.25)

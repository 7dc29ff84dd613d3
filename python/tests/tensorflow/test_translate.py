"""What a captured step is stated as, on steps of a few ops with hand-worked bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import tensorflow as tf

import pardnn
from pardnn.tensorflow.costs import CostTable
from pardnn.tensorflow.loops import regions_of
from pardnn.tensorflow.place import base_graph, place
from pardnn.tensorflow.step_graph import StepGraph, step_placement
from pardnn.tensorflow.tracing import Capture, capture_function
from pardnn.tensorflow.translate import translate

CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
SIDE = 256  # a matrix of SIDE x SIDE float32 is 256 KiB: large
MATRIX = SIDE * SIDE * 4


def stated(
    step: Callable[..., Any], spec: Any, variables: list[Any], shapes: list[Any]
) -> tuple[StepGraph, Capture]:
    capture = capture_function(step, spec, variables=variables)
    graph = base_graph(capture, shapes)
    return translate(graph, capture, CostTable(regions_of(graph)), granularity=256), capture


def lines(step: StepGraph, kind: str) -> list[str]:
    """The graph file's lines of the ops of one type."""
    found = [line.split() for line in step.graph.text().splitlines() if line.startswith("op ")]
    return [" ".join(words) for words in found if words[2] == kind]


def plan_on_one(step: StepGraph) -> Any:
    machine = pardnn.Machine.uniform(devices=1, memory=1 << 34, kind="cpu", granularity=256)
    return pardnn.plan(step.graph, machine, algorithm="one-device")


def matrix(value: float = 0.5) -> tf.Variable:
    return tf.Variable(tf.fill([SIDE, SIDE], value))


def test_a_large_variable_is_read_in_place_and_updated_after_its_readers() -> None:
    weight = matrix()

    def step(x: Any) -> Any:
        value = weight.read_value()
        product = tf.matmul(x, value)  # nothing makes the update wait for this
        weight.assign_sub(value * 0.5)
        return tf.reduce_sum(product)

    found, _ = stated(step, tf.TensorSpec([None, SIDE]), [weight], [[4, SIDE]])
    (read,) = lines(found, "ReadVariableOp")
    assert " > =0 @pardnn_cap_0" in read
    (update,) = lines(found, "AssignSubVariableOp")
    assert "!pardnn_cap_0" in update
    (product,) = lines(found, "MatMul")
    assert (product.split()[1], update.split()[1]) in found.added_edges
    assert f"var pardnn_cap_0 {MATRIX} @pardnn_cap_0" in found.graph.text()


def test_a_small_variable_is_read_as_a_copy_and_its_readers_need_no_edges() -> None:
    bias = tf.Variable(tf.zeros([SIDE]))

    def step(x: Any) -> Any:
        value = bias.read_value()
        bias.assign_add(value)
        return tf.reduce_sum(x + value)

    found, _ = stated(step, tf.TensorSpec([None, SIDE]), [bias], [[4, SIDE]])
    (read,) = lines(found, "ReadVariableOp")
    assert f" > {SIDE * 4} @" in read
    assert found.added_edges == []


def test_an_elementwise_result_takes_over_the_input_nobody_else_reads() -> None:
    def step(x: Any) -> Any:
        y = tf.square(x)  # x is a batch input: never taken over
        z = tf.exp(y)  # y has one reader: taken over
        return tf.reduce_sum(z * y)  # of z and y, z has one reader

    found, _ = stated(step, tf.TensorSpec([SIDE, SIDE]), [], [[SIDE, SIDE]])
    assert lines(found, "Square")[0].endswith(f" > {MATRIX} ph=f")
    assert lines(found, "Mul")[0].endswith(f" > {MATRIX}~0 ph=f")


def test_what_static_shapes_tell_is_no_op_but_a_value() -> None:
    def step(x: Any) -> Any:
        return tf.reshape(x, [tf.shape(x)[0] * 2, -1]) + 1.0

    found, _ = stated(step, tf.TensorSpec([None, SIDE]), [], [[6, SIDE]])
    assert lines(found, "Shape") == []
    assert [12, -1] in [value.tolist() for value in found.values.values()]


def test_a_chain_of_scalars_is_repeated_and_its_readers_read_the_variable() -> None:
    rate, weight = tf.Variable(0.1), matrix()

    def step(x: Any) -> Any:
        factor = tf.exp(rate * 2.0)
        weight.assign_sub(x * factor)
        return tf.reduce_sum(x)

    found, capture = stated(step, tf.TensorSpec([SIDE, SIDE]), [rate, weight], [[SIDE, SIDE]])
    chain = {n.name for n in capture.graph_def.node if n.op == "Exp"}
    assert chain <= found.clone
    (reader,) = [line for line in lines(found, "Mul") if str(MATRIX) in line]
    (read,) = lines(found, "ReadVariableOp")
    assert read.split()[1] in reader.split()


def test_a_loop_is_one_op_that_groups_its_variables_and_holds_what_it_saves() -> None:
    weight = matrix(0.01)

    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            y = x
            for _ in tf.range(5):
                y = tf.tanh(tf.matmul(y, weight))
            loss = tf.reduce_sum(y)
        weight.assign_sub(tape.gradient(loss, weight))
        return loss

    found, _ = stated(step, tf.TensorSpec([None, SIDE]), [weight], [[SIDE, SIDE]])
    forward, backward = sorted(
        (line for kind in ("While", "StatelessWhile") for line in lines(found, kind)),
        key=lambda line: "gradient_tape" in line,
    )
    assert " @pardnn_cap_0 " in forward and " @pardnn_cap_0 " in backward
    # The gradient needs what every trip started from and what tanh gave, five matrices each; a
    # list has a box of 256 bytes. The weight, saved too, is the variable itself.
    assert forward.split().count(str(5 * MATRIX + 256)) == 2
    assert plan_on_one(found).fits


def test_a_partly_updated_variable_is_copied_by_readers_of_other_functions_too() -> None:
    table = matrix()
    rows = tf.IndexedSlices(tf.ones([1, SIDE]), tf.constant([3]))

    def train(x: Any) -> Any:
        table.scatter_sub(rows)
        return tf.reduce_sum(x)

    def test(x: Any) -> Any:
        return tf.reduce_sum(tf.matmul(x, table))

    spec = tf.TensorSpec([SIDE, SIDE])
    stated(train, spec, [table], [[SIDE, SIDE]])
    found, _ = stated(test, spec, [table], [[SIDE, SIDE]])
    assert f" > {MATRIX} @" in lines(found, "ReadVariableOp")[0]


def test_pins_keep_variables_where_they_are() -> None:
    weight = matrix()
    capture = capture_function(
        lambda x: tf.reduce_sum(tf.matmul(x, weight)),
        tf.TensorSpec([None, SIDE]),
        variables=[weight],
    )
    graph = base_graph(capture, [[4, SIDE]])
    table = CostTable(regions_of(graph))
    found = translate(graph, capture, table, pins={weight.device: "d1"})
    assert "group pardnn_cap_0 on=d1" in found.graph.text()
    machine = pardnn.Machine.uniform(devices=2, memory=1 << 30, kind="cpu")
    assert pardnn.plan(found.graph, machine).device_of["pardnn_cap_0"] == "d1"


@pytest.mark.parametrize("steps", [3])
def test_a_stated_planned_and_placed_step_computes_what_the_function_does(steps: int) -> None:
    def made() -> tuple[list[Any], Callable[[Any], Any]]:
        weight, moment, rate = matrix(0.01), matrix(0.0), tf.Variable(0.1)

        def step(x: Any) -> Any:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(tf.nn.relu(tf.matmul(x, weight)) - 1.0))
            grad = tape.gradient(loss, weight)
            moment.assign_add((grad - moment) * 0.1)
            weight.assign_sub(moment * rate / tf.sqrt(rate + 1.0))
            return loss

        return [weight, moment, rate], step

    x = tf.random.stateless_uniform([32, SIDE], [1, 2])
    variables, ordinary = made()
    expected = [float(tf.function(ordinary)(x)) for _ in range(steps)]

    variables, step = made()
    found, capture = stated(step, tf.TensorSpec([None, SIDE]), variables, [[32, SIDE]])
    plan = plan_on_one(found)
    assert pardnn.check(found.graph, plan) == []
    call = place(capture, [[32, SIDE]], step_placement(found, plan, {"d0": CPU}))
    assert [float(call([x])[0]) for _ in range(steps)] == pytest.approx(expected, rel=1e-6)

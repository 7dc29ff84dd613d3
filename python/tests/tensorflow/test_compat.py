"""The private parts of TensorFlow and Keras that the adapter stands on are still as they were.

A failure here says in one sentence what changed; everything else may then fail for that reason.
"""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import keras
import pytest
import tensorflow as tf

from pardnn.tensorflow import compat, compat_hooks

# (module, what is used of it); a dotted name is an attribute of a class.
USED = [
    ("tensorflow.python.grappler.tf_optimizer", "OptimizeGraph"),
    ("tensorflow.python.framework.importer", "import_graph_def"),
    ("tensorflow.python.framework.func_graph", "FuncGraph.capture"),
    ("tensorflow.python.framework.func_graph", "dismantle_func_graph"),
    ("tensorflow.python.eager.context", "context"),
    ("tensorflow.python.eager.context", "Context.update_server_def"),
    ("tensorflow.python.eager.context", "Context.enable_run_metadata"),
    ("tensorflow.python.eager.polymorphic_function.atomic_function", "from_func_graph"),
    ("tensorflow.python.eager.polymorphic_function.atomic_function", "AtomicFunction.call_flat"),
    ("tensorflow.python.eager.record", "could_possibly_record"),
    ("tensorflow.python.ops.gradients_util", "PossibleTapeGradientTypes"),
    ("tensorflow.python.ops.resource_variable_ops", "ResourceVariable"),
    ("keras.src.backend.tensorflow.trainer", "reduce_per_replica"),
    ("keras.src.backend.tensorflow.trainer", "concat"),
]
SIGNATURES = [
    (
        "tensorflow.python.eager.polymorphic_function.concrete_function",
        "ConcreteFunction._call_flat",
        ["self", "tensor_inputs", "captured_inputs"],
    ),
    *(
        ("keras.src.backend.tensorflow.trainer", f"TensorFlowTrainer.{name}", ["self", "force"])
        for name in ("make_train_function", "make_test_function", "make_predict_function")
    ),
]


def found(module: str, name: str) -> Any:
    value: Any = importlib.import_module(module)
    for part in name.split("."):
        value = getattr(value, part, None)
    return value


@pytest.mark.parametrize(("module", "name"), USED)
def test_what_is_used_is_still_there(module: str, name: str) -> None:
    assert found(module, name) is not None, f"{module} has no {name} any more"


@pytest.mark.parametrize(("module", "name", "parameters"), SIGNATURES)
def test_what_is_replaced_still_takes_the_same(
    module: str, name: str, parameters: list[str]
) -> None:
    taken = list(inspect.signature(found(module, name)).parameters)
    assert taken == parameters, f"{module}.{name} takes {taken} now"


def test_a_captured_handle_is_the_variables_own() -> None:
    variable = tf.Variable(1.0)
    function = tf.function(lambda: variable + 1.0).get_concrete_function()
    captured = [tensor for tensor, _ in compat.captures_of(function)]
    assert captured[0] is compat.handle_of(variable), "a captured handle is another object now"


def test_a_handles_exchange_leaves_keras_the_same_variable() -> None:
    variable, other = tf.Variable(1.0), tf.Variable(2.0)
    before = variable._unique_id
    variable._handle = other._handle
    assert variable.numpy() == 2.0, "a variable does not read through _handle any more"
    assert variable._unique_id == before, "_unique_id follows the handle now"


def test_the_inliner_inlines_calls_and_leaves_what_is_not_to_be_lowered() -> None:
    inner = tf.function(lambda x: x * 2.0)

    def outer(x: Any) -> Any:
        return tf.while_loop(lambda y: y < 9.0, lambda y: (inner(y),), (inner(x),))[0]

    concrete = tf.function(outer).get_concrete_function(tf.TensorSpec([]))
    graph_def = concrete.graph.as_graph_def()
    for node in graph_def.node:
        if "While" in node.op:
            node.attr["_lower_using_switch_merge"].b = False
    keep = [t.name for t in (*concrete.inputs, *concrete.outputs)]
    kinds = [node.op for node in compat.optimize_functions(graph_def, keep).node]
    assert not any("PartitionedCall" in kind for kind in kinds), "calls are not inlined any more"
    assert any("While" in kind for kind in kinds), "loops are lowered though they were not to be"


def test_a_graph_of_ours_runs_with_what_it_captured() -> None:
    variable = tf.Variable(3.0)
    graph = compat.new_func_graph("pardnn_test")
    with graph.as_default():
        given = tf.compat.v1.placeholder(tf.float32, [], name="pardnn_in_0")
        graph.inputs.append(given)
        handle = compat.capture_into(graph, compat.handle_of(variable), "pardnn_cap_0")
        read = tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)
        graph.outputs.append(given * read)
    assert [float(t) for t in compat.callable_from_graph(graph)([tf.constant(2.0)])] == [6.0]


def test_a_tape_outside_is_noticed() -> None:
    variable = tf.Variable(1.0)
    assert not compat.gradient_may_be_recorded([variable.handle])
    with tf.GradientTape() as tape:
        tape.watch(variable)
        assert compat.gradient_may_be_recorded([variable.handle]), "an outer tape is not seen"


def test_the_hooks_are_called_and_taken_away_again() -> None:
    calls = []

    def step(model: Any) -> Any:
        return lambda iterator: calls.append(next(iter(iterator))) or {"loss": tf.constant(0.0)}

    undo = compat_hooks.replace_trainer_functions(train=step, test=step, predict=step)
    try:
        model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        model.train_on_batch(tf.zeros([2, 1]), tf.zeros([2, 1]))
    finally:
        undo()
    assert len(calls) == 1, "train_on_batch does not call the train_function that was made"
    assert model.train_function is None
    model.train_on_batch(tf.zeros([2, 1]), tf.zeros([2, 1]))
    assert len(calls) == 1


def test_a_script_that_makes_a_strategy_is_stopped() -> None:
    made = []
    undo = compat_hooks.refuse_strategies(made.append)
    try:
        tf.distribute.MirroredStrategy()
    finally:
        undo()
    assert made == ["MirroredStrategy"]


def test_the_optimizers_variables_are_made_as_a_step_would_make_them() -> None:
    def built(early: bool) -> list[str]:
        keras.backend.clear_session()
        model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, name="last")])
        model.compile(keras.optimizers.Adam(), "mse")
        if early:
            compat_hooks.keras_build_optimizer(model)
        model.train_on_batch(tf.zeros([2, 2]), tf.zeros([2, 1]))
        return [variable.path for variable in model.optimizer.variables]

    assert built(early=True) == built(early=False)

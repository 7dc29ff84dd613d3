"""Cases for features.py: steps with Python, branches and loops inside, and state that is copied."""

from __future__ import annotations

import contextlib
import copy
import pathlib
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from feature_cases import case, classifier, exactly, numbers
from keras import layers


@case
def words_looked_up_in_a_table_inside_the_step() -> Any:
    words = tf.constant([["red"], ["blue"], ["red"], ["green"]])
    model = keras.Sequential(
        [
            keras.Input((1,), dtype="string"),
            layers.StringLookup(vocabulary=["red", "green"]),
            layers.Embedding(4, 3),
            layers.Flatten(),
            layers.Dense(1),
        ]
    )
    model.compile("adam", "mse")
    y = tf.constant([[1.0], [2.0], [3.0], [4.0]])
    data = tf.data.Dataset.from_tensor_slices((words, y)).batch(2)
    return model.fit(data, epochs=2, verbose=0).history


@case
def python_functions_inside_the_step() -> Any:
    seen: list[float] = []

    class Halved(layers.Layer):
        def call(self, x: Any) -> Any:
            half = tf.numpy_function(lambda a: np.full_like(a, 0.5), [x], tf.float32)
            squared = tf.py_function(tf.square, [x], tf.float32)
            half.set_shape(x.shape)
            squared.set_shape(x.shape)
            return half * x + squared

        def compute_output_shape(self, shape: Any) -> Any:
            return shape

    model = keras.Sequential([keras.Input((6,)), layers.Dense(8), Halved(), layers.Dense(1)])
    optimizer = keras.optimizers.SGD(0.01)

    @tf.function
    def step(x: Any, number: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x)))
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables, strict=True))
        if number % 2 == 0:
            tf.py_function(lambda value: seen.append(float(value)), [loss], [])
        tf.print("printed by the step:", loss, output_stream=sys.stdout)
        return loss

    x, _ = numbers(8)
    losses = [float(step(tf.constant(x), tf.constant(n))) for n in range(4)]
    return losses, seen


@case
def a_loop_inside_a_function_that_takes_batches() -> Any:
    data = tf.data.Dataset.from_tensor_slices(np.arange(12, dtype="f")).batch(4, True)
    weight = tf.Variable(tf.ones([4]))
    table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, 0.0)

    @tf.function
    def epoch(batches: Any, number: Any) -> Any:
        loss = 0.0
        for _ in tf.range(3):
            batch = next(batches)
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.square(weight * batch))
            weight.assign_sub(0.001 * tape.gradient(loss, weight))
        table.insert([number], [loss])
        return loss, table.lookup([number])

    results = [epoch(iter(data), tf.constant(n, tf.int64)) for n in range(2)]
    return [(float(a), float(b[0])) for a, b in results], weight.numpy().tolist()


@case
def branches_that_yield_what_is_known_before() -> Any:
    def losses(branch: Callable[..., Any]) -> list[float]:
        weight, count = tf.Variable(tf.ones([40])), tf.Variable(0)

        @tf.function
        def step(x: Any) -> Any:
            count.assign_add(1)
            weight.assign_sub(0.1 * branch(weight, count, x) * weight * x)
            return tf.reduce_sum(weight)

        return [float(step(tf.range(40.0) / 40.0)) for _ in range(4)]

    def shaped(weight: Any, count: Any, x: Any) -> Any:
        rows = tf.maximum(tf.size(x), 3)  # known, and used on both sides
        return tf.cond(
            rows < 2,
            lambda: tf.reduce_sum(tf.zeros([rows, 2])),
            lambda: tf.reduce_sum(tf.ones([rows, 2])) * 0.01,
        )

    return [
        losses(lambda w, n, x: tf.cond(n % 2 == 0, lambda: 1.0, lambda: 2.0)),
        losses(
            lambda w, n, x: tf.cond(
                n > 1, lambda: tf.cond(n > 2, lambda: 1.0, lambda: 3.0), lambda: 2.0
            )
        ),
        losses(shaped),
        losses(
            lambda w, n, x: tf.switch_case(n % 3, [lambda: 1.0, lambda: w[0] * 3.0, lambda: 0.5])
        ),
    ]


@case
def checkpoints_backups_and_arrays_of_weights() -> Any:
    x, y = numbers(16)
    kept = keras.callbacks.ModelCheckpoint

    class Interrupted(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            if epoch == 2:
                raise InterruptedError

    with tempfile.TemporaryDirectory() as folder:
        weights, whole = f"{folder}/{{epoch}}.weights.h5", f"{folder}/whole.keras"
        callbacks = [
            kept(weights, save_weights_only=True),
            kept(whole, "loss", save_best_only=True),
            keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.5),
            keras.callbacks.CSVLogger(f"{folder}/log.csv"),
            keras.callbacks.TerminateOnNaN(),
        ]
        model = classifier()
        with contextlib.suppress(InterruptedError):
            backup = keras.callbacks.BackupAndRestore(f"{folder}/backup")
            model.fit(x, y, 8, 4, verbose=0, callbacks=[*callbacks, backup, Interrupted()])
        log = pathlib.Path(f"{folder}/log.csv").read_text()
        model = classifier()
        again = model.fit(x, y, 8, 4, verbose=0, callbacks=[backup], shuffle=False)
        arrays = model.get_weights()
        model.load_weights(weights.format(epoch=1))
        first = exactly(model)
        model.set_weights(arrays)
        best = keras.models.load_model(whole)
        more = best.fit(x, y, 8, verbose=0, shuffle=False)
    return log, again.history, first, exactly(model), more.history, exactly(best)


@case
def copies_of_models_and_variables() -> Any:
    x, y = numbers(16)
    model = classifier()
    model.fit(x, y, 8, verbose=0, shuffle=False)
    copied, cloned = copy.deepcopy(model), keras.models.clone_model(model)
    cloned.set_weights(model.get_weights())
    histories = [copied.fit(x, y, 8, verbose=0, shuffle=False).history]
    copied.layers[0].trainable = False
    copied.compile("sgd", "sparse_categorical_crossentropy")
    histories.append(copied.fit(x, y, 8, verbose=0, shuffle=False).history)
    first = tf.Variable([1.0, 2.0])
    second = copy.deepcopy(first)
    first.assign([5.0, 6.0])
    lines: list[str] = []
    model.summary(print_fn=lambda line, **_: lines.append(line))
    return histories, exactly(copied), exactly(cloned), second.numpy().tolist(), len(lines)

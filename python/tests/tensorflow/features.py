"""A script: what Keras users do, one small case after the other; prints one line of exact numbers
for each.

Run plainly and over workers by test_run.py. Arguments are names of cases; none means all.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import features_inside  # noqa: F401  its cases are run too
import keras
import numpy as np
import tensorflow as tf
from feature_cases import CASES, case, classifier, exactly, numbers
from keras import layers


@case
def fit_with_validation_and_a_smaller_last_batch() -> Any:
    x, y = numbers(22)
    model = classifier()
    history = model.fit(x, y, 8, 2, validation_split=0.3, verbose=0, shuffle=False)
    return (
        history.history,
        model.evaluate(x, y, 8, verbose=0),
        model.predict(x, 8, verbose=0).tolist(),
    )


@case
def sample_and_class_weights() -> Any:
    x, y = numbers(16)
    first, second = classifier(), classifier()
    one = first.fit(x, y, 8, sample_weight=np.linspace(0, 1, 16), verbose=0, shuffle=False)
    two = second.fit(x, y, 8, class_weight={0: 1.0, 1: 2.0, 2: 0.5}, verbose=0, shuffle=False)
    return one.history, two.history


@case
def several_fits_and_a_recompile() -> Any:
    x, y = numbers(16)
    model = classifier()
    first = model.fit(x, y, 8, verbose=0, shuffle=False)
    second = model.fit(x, y, 4, verbose=0, shuffle=False)
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9), "sparse_categorical_crossentropy")
    third = model.fit(x, y, 8, verbose=0, shuffle=False)
    return first.history, second.history, third.history, exactly(model)


@case
def three_steps_per_execution() -> Any:
    x, y = numbers(32)
    model = classifier(steps_per_execution=3)
    history = model.fit(x, y, 4, 2, verbose=0, shuffle=False)
    return (
        history.history,
        model.evaluate(x, y, 4, verbose=0),
        model.predict(x, 4, verbose=0).tolist(),
    )


@case
def on_batch_methods_with_changing_sizes() -> Any:
    x, y = numbers(16)
    model = classifier()
    results = [model.train_on_batch(x[:n], y[:n]) for n in (8, 5, 3)]
    results.append(model.test_on_batch(x[:4], y[:4]))
    return np.asarray(results).tolist(), model.predict_on_batch(x[:2]).tolist()


@case
def several_inputs_and_outputs() -> Any:
    left, right = keras.Input((6,), name="left"), keras.Input((6,), name="right")
    shared = layers.Dense(8, "tanh")
    joined = layers.Concatenate()([shared(left), shared(right)])
    outputs = {
        "kind": layers.Dense(3, name="kind")(joined),
        "size": layers.Dense(1, name="size")(joined),
    }
    model = keras.Model({"left": left, "right": right}, outputs)
    cross = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", {"kind": cross, "size": "mse"}, loss_weights={"kind": 1.0, "size": 0.3})
    x, y = numbers(12)
    targets = {"kind": y, "size": x[:, :1]}
    history = model.fit({"left": x, "right": x[::-1]}, targets, 5, 2, verbose=0, shuffle=False)
    return history.history, exactly(model)


@case
def callbacks_that_change_rate_and_weights() -> Any:
    x, y = numbers(16)
    model = classifier()
    slower = keras.callbacks.ReduceLROnPlateau("loss", 0.5, patience=0, min_delta=10.0)
    best = keras.callbacks.EarlyStopping(
        "loss", patience=1, min_delta=10.0, restore_best_weights=True
    )
    history = model.fit(x, y, 8, 4, verbose=0, shuffle=False, callbacks=[slower, best])
    return history.history, exactly(model), float(model.optimizer.learning_rate)


@case
def a_train_step_with_two_optimizers() -> Any:
    class Duel(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.maker = keras.Sequential([keras.Input((2,)), layers.Dense(6)])
            self.judge = keras.Sequential(
                [keras.Input((6,)), layers.Dense(4, "relu"), layers.Dense(1)]
            )
            self.noise = keras.random.SeedGenerator(3)

        def compile(self, first: Any, second: Any) -> None:
            super().compile()
            self.first, self.second = first, second

        def train_step(self, data: Any) -> Any:
            (real, _) = data
            size = tf.shape(real)[0]
            seeds = keras.random.normal((size, 2), seed=self.noise)
            with tf.GradientTape() as tape:
                gap = tf.reduce_mean(self.judge(self.maker(seeds))) - tf.reduce_mean(
                    self.judge(real)
                )
            grads = tape.gradient(gap, self.judge.trainable_variables)
            self.first.apply_gradients(zip(grads, self.judge.trainable_variables, strict=True))
            with tf.GradientTape() as tape:
                made = -tf.reduce_mean(self.judge(self.maker(seeds)))
            grads = tape.gradient(made, self.maker.trainable_variables)
            self.second.apply_gradients(zip(grads, self.maker.trainable_variables, strict=True))
            return {"gap": gap, "made": made}

    x, y = numbers(16)
    model = Duel()
    model.compile(keras.optimizers.Adam(0.01), keras.optimizers.RMSprop(0.01))
    history = model.fit(x, y, 8, 3, verbose=0, shuffle=False)
    return history.history, exactly(model.maker), exactly(model.judge)


@case
def a_loop_around_a_tf_function() -> Any:
    model, optimizer = classifier(), keras.optimizers.Adam(0.01)
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    mean = keras.metrics.Mean()

    @tf.function
    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables, strict=True))
        mean.update_state(loss)
        return loss

    x, y = numbers(20)
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(8)
    losses = [float(step(a, b)) for _ in range(2) for a, b in data]
    return losses, float(mean.result()), exactly(model)


@case
def raw_variables_given_as_arguments() -> Any:
    weight, bias = tf.Variable(tf.ones([6, 3])), tf.Variable(tf.zeros([3]))

    @tf.function
    def step(w: Any, x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + bias))
        for variable, grad in zip((w, bias), tape.gradient(loss, (w, bias)), strict=True):
            variable.assign_sub(0.1 * grad)
        return loss, {"largest": tf.reduce_max(w)}

    x, _ = numbers(8)
    results = [step(weight, tf.constant(x)) for _ in range(3)]
    return [
        (float(loss), float(rest["largest"])) for loss, rest in results
    ], weight.numpy().tolist()


@case
def an_eager_loop() -> Any:
    model, optimizer = classifier(), keras.optimizers.SGD(0.1)
    x, y = numbers(8)
    losses = []
    for _ in range(2):
        with tf.GradientTape() as tape:
            loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)(
                y, model(x, training=False)
            )
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables, strict=True))
        losses.append(float(loss))
    return losses, exactly(model)


@case
def a_tape_around_a_tf_function() -> Any:
    weight = tf.Variable([[1.0, 2.0]])
    product = tf.function(lambda x: tf.matmul(x, weight, transpose_b=True))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(product(tf.constant([[3.0, 4.0]])))
    return float(loss), tape.gradient(loss, weight).numpy().tolist()


@case
def compiled_and_eager_steps_become_placed_ones() -> Any:
    x, y = numbers(16)
    model = classifier(run_eagerly=True, optimizer="sgd")
    return model.fit(x, y, 8, verbose=0, shuffle=False).history


@case
def a_subclassed_model_that_builds_itself_in_fit() -> Any:
    class Net(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = layers.Dense(8, "relu"), layers.Dense(1)

        def call(self, x: Any) -> Any:
            return self.last(self.first(x))

    x, y = numbers(16)
    model = Net()
    model.compile("adam", "mse")
    history = model.fit(x, y.astype("f"), 8, 2, verbose=0, shuffle=False)
    return history.history, exactly(model)


@case
def a_schedule_with_clipping_and_averaged_weights() -> Any:
    rate = keras.optimizers.schedules.CosineDecay(0.1, 10)
    sgd = keras.optimizers.SGD(
        rate, momentum=0.9, global_clipnorm=0.5, use_ema=True, ema_overwrite_frequency=2
    )
    x, y = numbers(16)
    model = classifier(optimizer=sgd)
    history = model.fit(x, y, 4, 2, verbose=0, shuffle=False)
    return history.history, exactly(model)


@case
def half_precision_with_loss_scaling() -> Any:
    keras.mixed_precision.set_global_policy("mixed_float16")
    try:
        x, y = numbers(16)
        model = classifier()
        return model.fit(x, y, 8, 2, verbose=0, shuffle=False).history, exactly(model)
    finally:
        keras.mixed_precision.set_global_policy("float32")


@case
def datasets_that_do_not_say_how_long_they_are() -> Any:
    x, y = numbers(20)

    def batches() -> Any:
        yield from ((x[:8], y[:8]), (x[8:16], y[8:16]), (x[16:], y[16:]))

    class Numbered(keras.utils.PyDataset):
        def __len__(self) -> int:
            return 2

        def __getitem__(self, number: int) -> Any:
            return x[8 * number : 8 * number + 8], y[8 * number : 8 * number + 8]

    spec = (tf.TensorSpec((None, 6)), tf.TensorSpec((None,), tf.int64))
    data = tf.data.Dataset.from_generator(batches, output_signature=spec)
    results = []
    for steps in (1, 2):
        model = classifier(steps_per_execution=steps)
        results.append(model.fit(data, epochs=3, validation_data=data, verbose=0).history)
        results.append(model.fit(Numbered(), epochs=2, verbose=0, shuffle=False).history)
        endless = ((x[:8], y[:8]) for _ in range(9))
        results.append(model.fit(endless, steps_per_epoch=2, epochs=2, verbose=0).history)
        results.append((model.evaluate(data, verbose=0), int(model.optimizer.iterations)))
        results.append(model.predict(data, verbose=0).tolist())
    return results


def main(names: list[str]) -> None:
    for name, function in CASES.items():
        if not names or name in names:
            keras.utils.set_random_seed(5)
            keras.backend.clear_session()
            try:
                result = function()
            except Exception as error:  # noqa: BLE001  one case must not hide the others
                result = f"{type(error).__name__}: {error}"
            print(json.dumps([name, result], default=float), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

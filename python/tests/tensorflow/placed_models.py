"""A program: trains small Keras models plainly and placed over three logical devices, and prints
both as JSON.

Run by test_place.py in a process of its own, because logical devices must be set before anything
else.
"""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace
from typing import Any

import keras
import numpy as np
import placing
import tensorflow as tf
from keras import layers

from pardnn.tensorflow import compat, compat_hooks
from pardnn.tensorflow.place import place
from pardnn.tensorflow.tracing import capture_function

CROSS_ENTROPY = {"from_logits": True}


def dense() -> Any:
    model = keras.Sequential(
        [keras.Input((20,)), layers.Dense(64, "relu"), layers.Dense(64, "relu"), layers.Dense(5)]
    )
    return compiled(model, keras.optimizers.Adam(1e-2, clipnorm=1.0))


def convolution() -> Any:
    block = [layers.BatchNormalization(), layers.ReLU(), layers.MaxPooling2D()]
    model = keras.Sequential(
        [
            keras.Input((12, 12, 3)),
            layers.Conv2D(8, 3, padding="same"),
            *block,
            layers.Conv2D(16, 3),
            layers.GlobalAveragePooling2D(),
            layers.Dropout(0.3),
            layers.Dense(5),
        ]
    )
    # The moving average overwrites the weights every second step: a conditional over all variables.
    return compiled(
        model,
        keras.optimizers.SGD(1e-2, momentum=0.9, use_ema=True, ema_overwrite_frequency=2),
    )


def recurrent() -> Any:
    model = keras.Sequential(
        [
            keras.Input((10,)),
            layers.Embedding(30, 8, mask_zero=True),
            layers.LSTM(16, return_sequences=True, recurrent_dropout=0.1),
            layers.GRU(8),
            layers.Dense(5),
        ]
    )
    return compiled(model, "adam")


def attention() -> Any:
    tokens = keras.Input((10,))
    x = layers.Embedding(30, 16)(tokens)
    for _ in range(1):
        x = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 8, dropout=0.1)(x, x))
        y = layers.Dropout(0.1)(layers.Dense(16)(layers.Dense(32, "gelu")(x)))
        x = layers.LayerNormalization()(x + y)
    result = layers.Dense(5)(layers.GlobalAveragePooling1D()(x))
    return compiled(keras.Model(tokens, result), keras.optimizers.AdamW(1e-3))


def compiled(model: Any, optimizer: Any) -> Any:
    loss = keras.losses.SparseCategoricalCrossentropy(**CROSS_ENTROPY)
    model.compile(optimizer, loss, metrics=["accuracy"])
    return model


MODELS = {
    "dense": dense,
    "convolution": convolution,
    "recurrent": recurrent,
    "attention": attention,
}


def batches(kind: str) -> Any:
    """Three batches of eight and one of four."""
    random = np.random.RandomState(0)
    shape = {"dense": (28, 20), "convolution": (28, 12, 12, 3)}.get(kind, (28, 10))
    x = (
        random.rand(*shape).astype("f")
        if kind in ("dense", "convolution")
        else random.randint(0, 30, shape)
    )
    return tf.data.Dataset.from_tensor_slices((x, random.randint(0, 5, (28,)))).batch(8)


def ordinary(kind: str) -> dict[str, Any]:
    keras.utils.set_random_seed(1)
    model, losses = MODELS[kind](), []

    class Record(keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            losses.append({k: float(v) for k, v in logs.items()})

    model.fit(batches(kind), epochs=1, verbose=0, callbacks=[Record()])
    return {"losses": losses, "weights": digest(model)}


def placed(kind: str, devices: list[str], seed: int) -> dict[str, Any]:
    keras.utils.set_random_seed(1)
    with placing.variables_on(devices, seed) as live:
        model, data = MODELS[kind](), batches(kind)
        model._symbolic_build(data_batch=next(iter(data)))
        step = compat_hooks.keras_step_function(model, "train")
        capture = capture_function(step, data.element_spec, variables=live)
    functions: dict[Any, Any] = {}
    losses, used = [], set()
    for batch in data:
        shapes = placing.static(batch)
        if str(shapes) not in functions:
            functions[str(shapes)] = placed_function(capture, shapes, devices, seed)
        flat, run, results = tf.nest.flatten(batch), functions[str(shapes)], []
        for partition in compat.partitions_of(
            lambda run=run, flat=flat, results=results: results.extend(run(flat))
        ):
            used.update(n.device for n in partition.node if "MatMul" in n.op)
        losses.append({k: float(v) for k, v in capture.pack(results).items()})
    model.optimizer.finalize_variable_values(model.trainable_variables)
    return {"losses": losses, "weights": digest(model), "devices": sorted(used)}


def placed_function(capture: Any, shapes: Any, devices: list[str], seed: int) -> Any:
    request = SimpleNamespace(fixed={})
    placement, moves = placing.planned(capture, shapes, devices, request, seed)
    for variable, device in moves:
        if variable.device != device:
            placing.move(variable, device)
    return place(capture, shapes, placement)


def digest(model: Any) -> list[str]:
    """All weights and optimizer state, exactly."""
    return [v.numpy().tobytes().hex() for v in (*model.weights, *model.optimizer.variables)]


def main() -> None:
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 3)
    tf.config.set_soft_device_placement(False)
    compat.turn_off_grappler()
    devices = [d.name for d in tf.config.list_logical_devices("CPU")]
    devices = [
        f"/job:localhost/replica:0/task:0{d}" if d.startswith("/device") else d for d in devices
    ]
    result = {}
    for kind in MODELS:
        result[kind] = {"ordinary": ordinary(kind), "placed": placed(kind, devices, seed=3)}
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    main()

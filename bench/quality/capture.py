"""Captures the training steps of two examples as the files of bench/quality/graphs.

usage: build/venv-tensorflow/bin/python bench/quality/capture.py

Costs are measured on the machine that this runs on, so files made again differ in their times.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pardnn

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "examples"))
BATCH = 16


def transformer() -> tuple[Any, Any]:
    import keras

    example = importlib.import_module("transformer_dropout")
    model = example.make_model(vocabulary=256, length=64, width=256, heads=4, layers=4, dropout=0.1)
    tokens = example.make_sequences(BATCH, 65, 256, seed=1)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.Adam(1e-3), loss=loss)
    return model, (tokens[:, :-1], tokens[:, 1:])


def convnet() -> tuple[Any, Any]:
    import keras

    example = importlib.import_module("convnet_batchnorm")
    model = example.make_model(filters=16, blocks=3)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True), loss=loss)
    return model, example.make_images(BATCH, seed=1)


def main() -> None:
    from pardnn.tensorflow import api

    machine = pardnn.Machine.uniform(devices=1, memory=2**40, kind="cpu")
    examples = {"keras-transformer": transformer, "keras-convnet": convnet}
    for name, make in examples.items():
        captured = api.capture(*make())
        found = api.plan(captured, machine, algorithm="one-device", margin=0)
        file = HERE / "graphs" / f"{name}.pdg.gz"
        found.graph.write(str(file))
        print(f"{file.name}: {len(found.graph.op_keys)} ops, {file.stat().st_size} bytes")


if __name__ == "__main__":
    main()

"""What features.py and features_inside.py share: the list of their cases, data and a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import layers

CASES: dict[str, Callable[[], Any]] = {}


def case(function: Callable[[], Any]) -> Callable[[], Any]:
    CASES[function.__name__] = function
    return function


def numbers(count: int, width: int = 6) -> tuple[Any, Any]:
    random = np.random.RandomState(7)
    return random.rand(count, width).astype("f"), random.randint(0, 3, (count,))


def classifier(**options: Any) -> Any:
    model = keras.Sequential(
        [keras.Input((6,)), layers.Dense(16, "relu"), layers.Dropout(0.2), layers.Dense(3)]
    )
    options.setdefault("optimizer", keras.optimizers.Adam(0.01))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(loss=loss, metrics=["accuracy"], **options)
    return model


def exactly(model: Any) -> list[str]:
    return [
        f"{float(np.sum(v.numpy() * np.arange(1, v.numpy().size + 1).reshape(v.shape)))!r}"
        for v in model.weights
    ]

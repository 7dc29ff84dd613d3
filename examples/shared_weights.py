"""Shared weights twice over: one encoder for both of two inputs, one block applied many times."""

import argparse
import json

import keras
import numpy as np

FEATURES, KINDS = 48, 12


class PrintLosses(keras.callbacks.Callback):
    """Prints one JSON line after every training step: means over the epoch so far."""

    def __init__(self) -> None:
        super().__init__()
        self.step = 0

    def on_train_batch_end(self, batch, logs=None):
        self.step += 1
        print(json.dumps({"step": self.step, **logs}), flush=True)


def make_pairs(samples: int, seed: int) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
    """Pairs of noisy points; the label says whether both belong to the same kind."""
    centres = np.random.default_rng(0).normal(size=(KINDS, FEATURES))
    rng = np.random.default_rng(seed)
    same = rng.integers(0, 2, samples)
    left = rng.integers(0, KINDS, samples)
    right = np.where(same == 1, left, (left + rng.integers(1, KINDS, samples)) % KINDS)
    noise = rng.normal(0, 0.4, (2, samples, FEATURES))
    points = (centres[np.stack([left, right])] + noise).astype("float32")
    return (points[0], points[1]), same.astype("float32")[:, None]


def make_encoder(width: int, repeats: int) -> keras.Model:
    """Widens a point, then refines it several times through one and the same block."""
    inputs = keras.Input((FEATURES,))
    x = keras.layers.Dense(width)(inputs)
    norm = keras.layers.LayerNormalization()
    inner = keras.layers.Dense(width, activation="silu")
    outer = keras.layers.Dense(width)
    for _ in range(repeats):
        x = keras.layers.add([x, outer(inner(norm(x)))])
    return keras.Model(inputs, keras.layers.UnitNormalization()(x), name="encoder")


def make_model(width: int, repeats: int) -> keras.Model:
    encoder = make_encoder(width, repeats)
    left, right = keras.Input((FEATURES,)), keras.Input((FEATURES,))
    likeness = keras.layers.Dot(axes=1)([encoder(left), encoder(right)])
    return keras.Model([left, right], keras.layers.Dense(1, kernel_initializer="ones")(likeness))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20, help="training steps per epoch")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--width", type=int, default=512, help="units of the encoder")
    parser.add_argument("--repeats", type=int, default=4, help="uses of the shared block")
    args = parser.parse_args()

    keras.utils.set_random_seed(8)
    (left, right), same = make_pairs(args.steps * args.batch, seed=1)
    model = make_model(args.width, args.repeats)
    rate = keras.optimizers.schedules.ExponentialDecay(3e-4, decay_steps=args.steps, decay_rate=0.7)
    model.compile(
        optimizer=keras.optimizers.RMSprop(rate, momentum=0.5, clipvalue=0.5),
        loss=keras.losses.BinaryCrossentropy(from_logits=True),
        metrics=[keras.metrics.BinaryAccuracy(threshold=0.0, name="accuracy")],
    )
    model.fit(
        [left, right],
        same,
        batch_size=args.batch,
        epochs=args.epochs,
        callbacks=[PrintLosses()],
        verbose=0,
    )
    (left, right), _ = make_pairs(4, seed=2)
    scores = model.predict([left, right], verbose=0)[:, 0]
    print(json.dumps({"scores": scores.tolist()}))


if __name__ == "__main__":
    main()

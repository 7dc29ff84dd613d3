"""A stack of LSTM layers that learns to continue sequences of numbers."""

import argparse
import json

import keras
import numpy as np
import tensorflow as tf


class PrintLosses(keras.callbacks.Callback):
    """Prints one JSON line after every training step: means over the epoch so far."""

    def __init__(self) -> None:
        super().__init__()
        self.step = 0

    def on_train_batch_end(self, batch, logs=None):
        self.step += 1
        print(json.dumps({"step": self.step, **logs}), flush=True)


def make_sequences(samples: int, length: int, vocabulary: int, seed: int) -> np.ndarray:
    """Progressions modulo the vocabulary: every sequence has its own start and stride."""
    rng = np.random.default_rng(seed)
    start = rng.integers(0, vocabulary, (samples, 1))
    stride = rng.integers(1, 4, (samples, 1))
    return ((start + stride * np.arange(length)) % vocabulary).astype("int32")


def make_dataset(sequences: np.ndarray, batch: int) -> tf.data.Dataset:
    """Endless batches of (all but the last number, all but the first number)."""
    dataset = tf.data.Dataset.from_tensor_slices((sequences[:, :-1], sequences[:, 1:]))
    return dataset.shuffle(len(sequences), seed=3).batch(batch, drop_remainder=True).repeat()


def make_model(vocabulary: int, units: int, layers: int) -> keras.Model:
    return keras.Sequential(
        [keras.layers.Embedding(vocabulary, units)]
        + [keras.layers.LSTM(units, return_sequences=True) for _ in range(layers)]
        + [keras.layers.Dense(vocabulary)]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20, help="training steps per epoch")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--length", type=int, default=24, help="numbers the model reads")
    parser.add_argument("--vocabulary", type=int, default=100)
    parser.add_argument("--units", type=int, default=128, help="width of a layer")
    parser.add_argument("--layers", type=int, default=3, help="LSTM layers")
    args = parser.parse_args()

    keras.utils.set_random_seed(3)
    sequences = make_sequences(20 * args.batch, args.length + 1, args.vocabulary, seed=1)
    model = make_model(args.vocabulary, args.units, args.layers)
    model.compile(
        optimizer=keras.optimizers.Adam(5e-3, clipnorm=1.0),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    model.fit(
        make_dataset(sequences, args.batch),
        epochs=args.epochs,
        steps_per_epoch=args.steps,
        callbacks=[PrintLosses()],
        verbose=0,
    )
    unseen = make_sequences(8, args.length + 1, args.vocabulary, seed=2)
    logits = model.predict(unseen[:, :-1], batch_size=8, verbose=0)
    right = int((logits[:, -1].argmax(axis=-1) == unseen[:, -1]).sum())
    print(json.dumps({"continued_right": right, "of": len(unseen)}))


if __name__ == "__main__":
    main()

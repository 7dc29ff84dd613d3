"""A causal transformer with dropout, trained by Adam with a warm-up; every size is an option."""

import argparse
import json

import keras
import numpy as np


class PrintLosses(keras.callbacks.Callback):
    """Prints one JSON line after every training step: means over the epoch so far."""

    def __init__(self) -> None:
        super().__init__()
        self.step = 0

    def on_train_batch_end(self, batch, logs=None):
        self.step += 1
        print(json.dumps({"step": self.step, **logs}), flush=True)


class TokenAndPosition(keras.layers.Layer):
    """Adds a learned vector per position to a learned vector per token."""

    def __init__(self, vocabulary: int, length: int, width: int) -> None:
        super().__init__()
        self.length = length
        self.tokens = keras.layers.Embedding(vocabulary, width)
        self.positions = keras.layers.Embedding(length, width)

    def call(self, x):
        return self.tokens(x) + self.positions(keras.ops.arange(self.length))


def make_sequences(samples: int, length: int, vocabulary: int, seed: int) -> np.ndarray:
    """Sequences in which each token follows from the one before it and from its place."""
    rng = np.random.default_rng(seed)
    sequences = np.empty((samples, length), dtype="int32")
    sequences[:, 0] = rng.integers(0, vocabulary, samples)
    for place in range(1, length):
        sequences[:, place] = (5 * sequences[:, place - 1] + 3 + place % 2) % vocabulary
    return sequences


def transformer_block(x, width: int, heads: int, dropout: float):
    attended = keras.layers.LayerNormalization()(x)
    attended = keras.layers.MultiHeadAttention(heads, width // heads, dropout=dropout)(
        attended, attended, use_causal_mask=True
    )
    x = keras.layers.add([x, keras.layers.Dropout(dropout)(attended)])
    hidden = keras.layers.LayerNormalization()(x)
    hidden = keras.layers.Dense(4 * width, activation="gelu")(hidden)
    hidden = keras.layers.Dense(width)(hidden)
    return keras.layers.add([x, keras.layers.Dropout(dropout)(hidden)])


def make_model(vocabulary: int, length: int, width: int, heads: int, layers: int, dropout: float):
    inputs = keras.Input((length,), dtype="int32")
    x = TokenAndPosition(vocabulary, length, width)(inputs)
    x = keras.layers.Dropout(dropout)(x)
    for _ in range(layers):
        x = transformer_block(x, width, heads, dropout)
    x = keras.layers.LayerNormalization()(x)
    return keras.Model(inputs, keras.layers.Dense(vocabulary)(x))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=15, help="training steps per epoch")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=64, help="tokens of a sequence")
    parser.add_argument("--vocabulary", type=int, default=256)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--dropout", type=float, default=0.1)
    args = parser.parse_args()

    keras.utils.set_random_seed(4)
    sequences = make_sequences(args.steps * args.batch, args.length + 1, args.vocabulary, seed=1)
    model = make_model(
        args.vocabulary, args.length, args.width, args.heads, args.layers, args.dropout
    )
    rate = keras.optimizers.schedules.CosineDecay(
        initial_learning_rate=1e-4,
        warmup_target=1e-3,
        warmup_steps=5,
        decay_steps=args.steps * args.epochs,
    )
    model.compile(
        optimizer=keras.optimizers.Adam(rate),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    model.fit(
        sequences[:, :-1],
        sequences[:, 1:],
        batch_size=args.batch,
        epochs=args.epochs,
        callbacks=[PrintLosses()],
        verbose=0,
    )


if __name__ == "__main__":
    main()

"""Mixed precision: layers compute in 16 bits, weights stay in 32, and the loss is scaled."""

import argparse
import json

import keras
import numpy as np

FEATURES, CLASSES = 128, 6


class PrintLosses(keras.callbacks.Callback):
    """Prints one JSON line after every training step: means over the epoch so far."""

    def __init__(self) -> None:
        super().__init__()
        self.step = 0

    def on_train_batch_end(self, batch, logs=None):
        self.step += 1
        print(json.dumps({"step": self.step, **logs}), flush=True)


def make_signals(samples: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Noisy waves; the label is how many periods a wave has."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, CLASSES, samples).astype("int32")
    time = np.linspace(0, 2 * np.pi, FEATURES, endpoint=False)
    phase = rng.uniform(0, 2 * np.pi, (samples, 1))
    waves = np.sin((labels[:, None] + 1) * time + phase)
    return (waves + rng.normal(0, 0.3, waves.shape)).astype("float32"), labels


def make_model(width: int, layers: int) -> keras.Model:
    inputs = keras.Input((FEATURES,))
    x = inputs
    for _ in range(layers):
        x = keras.layers.Dense(width)(x)
        x = keras.layers.LayerNormalization()(x)
        x = keras.layers.ReLU()(x)
    # The softmax is computed in 32 bits: 16 are too few for its sums.
    outputs = keras.layers.Dense(CLASSES, activation="softmax", dtype="float32")(x)
    return keras.Model(inputs, outputs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=10, help="training steps per epoch")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--width", type=int, default=512, help="units of a hidden layer")
    parser.add_argument("--layers", type=int, default=4, help="hidden layers")
    parser.add_argument(
        "--policy", default="mixed_float16", choices=["mixed_float16", "mixed_bfloat16"]
    )
    args = parser.parse_args()

    keras.utils.set_random_seed(10)
    keras.mixed_precision.set_dtype_policy(args.policy)
    signals, labels = make_signals(args.steps * args.batch, seed=1)
    model = make_model(args.width, args.layers)
    # compile() wraps the optimizer in loss scaling under mixed_float16.
    model.compile(
        optimizer=keras.optimizers.Adam(1e-3),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    model.fit(
        signals,
        labels,
        batch_size=args.batch,
        epochs=args.epochs,
        callbacks=[PrintLosses()],
        verbose=0,
    )
    unseen = make_signals(2 * args.batch, seed=2)
    loss, accuracy = model.evaluate(*unseen, batch_size=args.batch, verbose=0)
    print(json.dumps({"test_loss": loss, "test_accuracy": accuracy}))


if __name__ == "__main__":
    main()

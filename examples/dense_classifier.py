"""A dense classifier on arrays: class weights, a plateau schedule, checkpoints of the weights."""

import argparse
import json
import pathlib
import tempfile

import keras
import numpy as np

FEATURES, CLASSES = 64, 10


class PrintLosses(keras.callbacks.Callback):
    """Prints one JSON line after every training step: means over the epoch so far."""

    def __init__(self) -> None:
        super().__init__()
        self.step = 0

    def on_train_batch_end(self, batch, logs=None):
        self.step += 1
        print(json.dumps({"step": self.step, **logs}), flush=True)


def make_data(samples: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Points and their labels: which of ten fixed directions a point lies closest to."""
    directions = np.random.default_rng(0).normal(size=(FEATURES, CLASSES))
    points = np.random.default_rng(seed).normal(size=(samples, FEATURES)).astype("float32")
    return points, (points @ directions).argmax(axis=1).astype("int32")


def make_model(width: int, layers: int) -> keras.Model:
    model = keras.Sequential([keras.Input((FEATURES,))])
    for _ in range(layers):
        model.add(keras.layers.Dense(width, activation="relu"))
    model.add(keras.layers.Dense(CLASSES))
    return model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20, help="training steps per epoch")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--width", type=int, default=1024, help="units of a hidden layer")
    parser.add_argument("--layers", type=int, default=4, help="hidden layers")
    args = parser.parse_args()

    keras.utils.set_random_seed(1)
    train = make_data(args.steps * args.batch, seed=1)
    validation = make_data(2 * args.batch, seed=2)

    model = make_model(args.width, args.layers)
    model.compile(
        optimizer=keras.optimizers.Adam(1e-3),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    with tempfile.TemporaryDirectory() as folder:
        best = str(pathlib.Path(folder, "best.weights.h5"))
        model.fit(
            *train,
            batch_size=args.batch,
            epochs=args.epochs,
            validation_data=validation,
            class_weight={label: 1.5 if label < 2 else 1.0 for label in range(CLASSES)},
            callbacks=[
                PrintLosses(),
                keras.callbacks.ReduceLROnPlateau(monitor="val_loss", patience=1, factor=0.5),
                keras.callbacks.ModelCheckpoint(
                    best, monitor="val_loss", save_best_only=True, save_weights_only=True
                ),
            ],
            verbose=0,
        )
        model.load_weights(best)
    loss, accuracy = model.evaluate(*validation, batch_size=args.batch, verbose=0)
    print(json.dumps({"validation_loss": loss, "validation_accuracy": accuracy}))


if __name__ == "__main__":
    main()

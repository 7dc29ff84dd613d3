"""A recommender as a subclassed model: four large embedding tables, sparse gradients, Adagrad."""

import argparse
import json

import keras
import numpy as np

FIELDS = ("user", "film", "director", "shop")


class PrintLosses(keras.callbacks.Callback):
    """Prints one JSON line after every training step: means over the epoch so far."""

    def __init__(self) -> None:
        super().__init__()
        self.step = 0

    def on_train_batch_end(self, batch, logs=None):
        self.step += 1
        print(json.dumps({"step": self.step, **logs}), flush=True)


def make_ratings(samples: int, rows: int, seed: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Random visits and a rating that follows from hidden tastes; low ids are the popular ones."""
    tastes = np.random.default_rng(0).normal(size=(len(FIELDS), rows, 2))
    rng = np.random.default_rng(seed)
    popularity = rng.random((len(FIELDS), samples)) ** 4
    ids = (popularity * rows).astype("int32")
    user, film, director, shop = (tastes[field, ids[field]] for field in range(len(FIELDS)))
    rating = 3 + (user * film).sum(axis=1) + 0.5 * director[:, 0] + 0.5 * shop[:, 1]
    return dict(zip(FIELDS, ids)), rating.astype("float32")


class Recommender(keras.Model):
    """Looks four ids up and rates their combination by a product and a small dense network."""

    def __init__(self, rows: int, width: int, decay: float) -> None:
        super().__init__()
        self.decay = decay
        self.tables = {
            field: keras.layers.Embedding(rows, width, embeddings_initializer="normal")
            for field in FIELDS
        }
        self.hidden = keras.layers.Dense(64, activation="relu")
        self.rating = keras.layers.Dense(1)

    def call(self, inputs):
        found = {field: self.tables[field](inputs[field]) for field in FIELDS}
        # Only the vectors that were looked up are pulled towards zero, not the whole tables.
        for vectors in found.values():
            self.add_loss(self.decay * keras.ops.mean(keras.ops.square(vectors)))
        product = keras.ops.sum(found["user"] * found["film"], axis=1, keepdims=True)
        hidden = self.hidden(keras.ops.concatenate(list(found.values()), axis=1))
        return product + self.rating(hidden)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20, help="training steps per epoch")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--rows", type=int, default=100_000, help="rows of each embedding table")
    parser.add_argument("--width", type=int, default=32, help="numbers in a row of a table")
    args = parser.parse_args()

    keras.utils.set_random_seed(5)
    visits, ratings = make_ratings(args.steps * args.batch, args.rows, seed=1)
    model = Recommender(args.rows, args.width, decay=1e-3)
    model.compile(
        optimizer=keras.optimizers.Adagrad(0.1),
        loss="mse",
        metrics=[keras.metrics.RootMeanSquaredError(name="rmse")],
    )
    model.fit(
        visits,
        ratings,
        batch_size=args.batch,
        epochs=args.epochs,
        validation_split=0.1,
        callbacks=[PrintLosses()],
        verbose=0,
    )
    unseen, _ = make_ratings(4, args.rows, seed=2)
    predicted = model.predict(unseen, verbose=0)[:, 0]
    print(json.dumps({"predicted_ratings": predicted.tolist()}))


if __name__ == "__main__":
    main()

"""A functional model with three inputs and two outputs, a loss for each, and sample weights."""

import argparse
import json

import keras
import numpy as np

DEPARTMENTS, NUMBERS, WORDS_PER_TEXT = 4, 8, 12


class PrintLosses(keras.callbacks.Callback):
    """Prints one JSON line after every training step: means over the epoch so far."""

    def __init__(self) -> None:
        super().__init__()
        self.step = 0

    def on_train_batch_end(self, batch, logs=None):
        self.step += 1
        print(json.dumps({"step": self.step, **logs}), flush=True)


def make_tickets(samples: int, vocabulary: int, seed: int):
    """Tickets: a title, a body and some numbers; their department and the hours they take."""
    rng = np.random.default_rng(seed)
    department = rng.integers(0, DEPARTMENTS, samples).astype("int32")
    # A department's words leave its number as the remainder; one word in four is anyone's.
    words = rng.integers(0, vocabulary // DEPARTMENTS, (samples, 2 * WORDS_PER_TEXT)) * DEPARTMENTS
    words += department[:, None]
    anyone = rng.random(words.shape) < 0.25
    words[anyone] = rng.integers(0, vocabulary, anyone.sum())
    numbers = rng.normal(size=(samples, NUMBERS)).astype("float32")
    hours = np.abs(numbers[:, 0] + 0.5 * numbers[:, 1]) + 0.5 * department
    inputs = {
        "title": words[:, :WORDS_PER_TEXT].astype("int32"),
        "body": words[:, WORDS_PER_TEXT:].astype("int32"),
        "numbers": numbers,
    }
    return inputs, {"department": department, "hours": hours.astype("float32")[:, None]}


def make_sample_weights(targets: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Tickets that take long count twice for the hours; every ticket counts once otherwise."""
    hours = targets["hours"][:, 0]
    return {"department": np.ones_like(hours), "hours": np.where(hours > 2, 2.0, 1.0)}


def make_model(vocabulary: int, width: int) -> keras.Model:
    title = keras.Input((WORDS_PER_TEXT,), dtype="int32", name="title")
    body = keras.Input((WORDS_PER_TEXT,), dtype="int32", name="body")
    numbers = keras.Input((NUMBERS,), name="numbers")
    features = [keras.layers.Dense(width, activation="relu")(numbers)]
    for text in (title, body):
        words = keras.layers.Embedding(vocabulary, width)(text)
        words = keras.layers.Conv1D(width, 3, activation="relu")(words)
        features.append(keras.layers.GlobalMaxPooling1D()(words))
    x = keras.layers.concatenate(features)
    x = keras.layers.Dense(2 * width, activation="relu")(x)
    x = keras.layers.Dropout(0.2)(x)
    department = keras.layers.Dense(DEPARTMENTS, activation="softmax", name="department")(x)
    hours = keras.layers.Dense(1, name="hours")(x)
    return keras.Model(
        {"title": title, "body": body, "numbers": numbers},
        {"department": department, "hours": hours},
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20, help="training steps per epoch")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--vocabulary", type=int, default=8000)
    parser.add_argument("--width", type=int, default=128, help="width of the hidden layers")
    args = parser.parse_args()

    keras.utils.set_random_seed(7)
    inputs, targets = make_tickets(args.steps * args.batch, args.vocabulary, seed=1)
    unseen, truth = make_tickets(args.batch + args.batch // 2, args.vocabulary, seed=2)
    model = make_model(args.vocabulary, args.width)
    model.compile(
        optimizer=keras.optimizers.AdamW(1e-3, weight_decay=1e-4, global_clipnorm=5.0),
        loss={"department": "sparse_categorical_crossentropy", "hours": "huber"},
        loss_weights={"department": 1.0, "hours": 0.5},
        metrics={"department": ["accuracy"], "hours": ["mae"]},
    )
    model.fit(
        inputs,
        targets,
        sample_weight=make_sample_weights(targets),
        batch_size=args.batch,
        epochs=args.epochs,
        validation_data=(unseen, truth, make_sample_weights(truth)),
        callbacks=[PrintLosses()],
        verbose=0,
    )
    results = model.evaluate(unseen, truth, batch_size=args.batch, verbose=0, return_dict=True)
    print(json.dumps({f"test_{name}": value for name, value in results.items()}))


if __name__ == "__main__":
    main()

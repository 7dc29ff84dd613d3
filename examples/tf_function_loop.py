"""A training loop of one's own: @tf.function steps with a GradientTape, and no call of fit."""

import argparse
import json

import keras
import numpy as np
import tensorflow as tf

FEATURES = 32


def make_curves(samples: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Points and the value of a fixed smooth function at each of them."""
    directions = np.random.default_rng(0).normal(size=(FEATURES, 3)) / np.sqrt(FEATURES)
    points = np.random.default_rng(seed).normal(size=(samples, FEATURES)).astype("float32")
    along = points @ directions
    values = np.sin(2 * along[:, 0]) + along[:, 1] * along[:, 2]
    return points, values.astype("float32")[:, None]


def make_model(width: int, layers: int) -> keras.Model:
    inputs = keras.Input((FEATURES,))
    x = keras.layers.Dense(width)(inputs)
    for _ in range(layers):
        hidden = keras.layers.Dense(width, activation="gelu")(keras.layers.LayerNormalization()(x))
        x = keras.layers.add([x, keras.layers.Dropout(0.1)(hidden)])
    x = keras.layers.LayerNormalization()(x)
    return keras.Model(inputs, keras.layers.Dense(1)(x))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20, help="training steps per epoch")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--width", type=int, default=512, help="units of a hidden layer")
    parser.add_argument("--layers", type=int, default=4, help="hidden layers")
    args = parser.parse_args()

    keras.utils.set_random_seed(9)
    samples = args.steps * args.batch - args.batch // 2  # the last batch of an epoch is half full
    train = tf.data.Dataset.from_tensor_slices(make_curves(samples, seed=1))
    train = train.shuffle(samples, seed=9).batch(args.batch)
    test = tf.data.Dataset.from_tensor_slices(make_curves(2 * args.batch, seed=2)).batch(args.batch)

    model = make_model(args.width, args.layers)
    optimizer = keras.optimizers.Adam(3e-4)
    loss_fn = keras.losses.MeanSquaredError()
    test_loss = keras.metrics.Mean()
    largest_norm = tf.Variable(0.0, trainable=False)

    @tf.function
    def train_step(x, y):
        with tf.GradientTape() as tape:
            loss = loss_fn(y, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        gradients, norm = tf.clip_by_global_norm(gradients, 1.0)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        largest_norm.assign(tf.maximum(largest_norm, norm))
        return loss

    @tf.function
    def test_step(x, y):
        test_loss.update_state(loss_fn(y, model(x, training=False)))

    step = 0
    for epoch in range(args.epochs):
        for x, y in train:
            loss = train_step(x, y)
            step += 1
            print(json.dumps({"step": step, "loss": float(loss)}), flush=True)
        test_loss.reset_state()
        for x, y in test:
            test_step(x, y)
        print(json.dumps({"epoch": epoch + 1, "test_loss": float(test_loss.result())}), flush=True)
    print(json.dumps({"largest_gradient_norm": float(largest_norm)}))


if __name__ == "__main__":
    main()

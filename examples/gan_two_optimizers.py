"""A generative adversarial network: a train_step of its own with two models and two optimizers."""

import argparse
import json

import keras
import numpy as np
import tensorflow as tf

SIDE, LATENT = 16, 32


class PrintLosses(keras.callbacks.Callback):
    """Prints one JSON line after every training step: means over the epoch so far."""

    def __init__(self) -> None:
        super().__init__()
        self.step = 0

    def on_train_batch_end(self, batch, logs=None):
        self.step += 1
        print(json.dumps({"step": self.step, **logs}), flush=True)


def make_discs(samples: int, seed: int) -> np.ndarray:
    """Pictures of one soft disc each, at a random place and of a random size."""
    rng = np.random.default_rng(seed)
    centre = rng.uniform(4, SIDE - 4, (samples, 2, 1, 1))
    radius = rng.uniform(2, 4, (samples, 1, 1))
    rows, columns = np.mgrid[0:SIDE, 0:SIDE]
    distance = np.hypot(rows - centre[:, 0], columns - centre[:, 1])
    return np.tanh(radius - distance)[..., None].astype("float32")


def make_discriminator(width: int) -> keras.Model:
    return keras.Sequential(
        [
            keras.Input((SIDE, SIDE, 1)),
            keras.layers.Conv2D(width // 8, 4, strides=2, padding="same"),
            keras.layers.LeakyReLU(0.2),
            keras.layers.Flatten(),
            keras.layers.Dense(width),
            keras.layers.LeakyReLU(0.2),
            keras.layers.Dropout(0.3),
            keras.layers.Dense(1),
        ],
        name="discriminator",
    )


def make_generator(width: int) -> keras.Model:
    return keras.Sequential(
        [
            keras.Input((LATENT,)),
            keras.layers.Dense(width),
            keras.layers.BatchNormalization(),
            keras.layers.ReLU(),
            keras.layers.Dense(4 * 4 * width // 4),
            keras.layers.ReLU(),
            keras.layers.Reshape((4, 4, width // 4)),
            keras.layers.Conv2DTranspose(width // 8, 4, strides=2, padding="same"),
            keras.layers.ReLU(),
            keras.layers.Conv2DTranspose(1, 4, strides=2, padding="same", activation="tanh"),
        ],
        name="generator",
    )


class Gan(keras.Model):
    """Trains the discriminator on real and made pictures, then the generator to deceive it."""

    def __init__(self, discriminator: keras.Model, generator: keras.Model) -> None:
        super().__init__()
        self.discriminator = discriminator
        self.generator = generator
        self.seed_generator = keras.random.SeedGenerator(7)
        self.d_loss = keras.metrics.Mean(name="d_loss")
        self.g_loss = keras.metrics.Mean(name="loss")

    def compile(self, d_optimizer, g_optimizer, loss_fn) -> None:
        super().compile()
        self.d_optimizer = d_optimizer
        self.g_optimizer = g_optimizer
        self.loss_fn = loss_fn

    @property
    def metrics(self):
        return [self.d_loss, self.g_loss]

    def call(self, noise):
        return self.generator(noise)

    def train_step(self, real):
        batch = tf.shape(real)[0]
        noise = keras.random.normal((batch, LATENT), seed=self.seed_generator)
        with tf.GradientTape() as tape:
            made = self.generator(noise, training=True)
            verdict = self.discriminator(tf.concat([made, real], axis=0), training=True)
            truth = tf.concat([tf.zeros((batch, 1)), tf.ones((batch, 1))], axis=0)
            d_loss = self.loss_fn(truth, verdict)
        weights = self.discriminator.trainable_weights
        self.d_optimizer.apply_gradients(zip(tape.gradient(d_loss, weights), weights))

        noise = keras.random.normal((batch, LATENT), seed=self.seed_generator)
        with tf.GradientTape() as tape:
            verdict = self.discriminator(self.generator(noise, training=True), training=True)
            g_loss = self.loss_fn(tf.ones((batch, 1)), verdict)
        weights = self.generator.trainable_weights
        self.g_optimizer.apply_gradients(zip(tape.gradient(g_loss, weights), weights))

        self.d_loss.update_state(d_loss)
        self.g_loss.update_state(g_loss)
        return {"d_loss": self.d_loss.result(), "loss": self.g_loss.result()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20, help="training steps per epoch")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--width", type=int, default=256, help="units of the dense layers")
    args = parser.parse_args()

    keras.utils.set_random_seed(6)
    discs = make_discs(args.steps * args.batch - args.batch // 4, seed=1)
    gan = Gan(make_discriminator(args.width), make_generator(args.width))
    gan.compile(
        d_optimizer=keras.optimizers.Adam(3e-4, beta_1=0.5),
        g_optimizer=keras.optimizers.RMSprop(3e-4),
        loss_fn=keras.losses.BinaryCrossentropy(from_logits=True),
    )
    gan.fit(
        tf.data.Dataset.from_tensor_slices(discs).batch(args.batch),
        epochs=args.epochs,
        callbacks=[PrintLosses()],
        verbose=0,
    )
    made = gan.predict(np.random.default_rng(2).normal(size=(4, LATENT)), verbose=0)
    print(json.dumps({"brightness": made.mean(axis=(1, 2, 3)).tolist()}))


if __name__ == "__main__":
    main()

"""A residual convolutional net with batch normalisation, whose activations outweigh its weights."""

import argparse
import json

import keras
import numpy as np
import tensorflow as tf

SIDE, CLASSES = 32, 8


class PrintLosses(keras.callbacks.Callback):
    """Prints one JSON line after every training step: means over the epoch so far."""

    def __init__(self) -> None:
        super().__init__()
        self.step = 0

    def on_train_batch_end(self, batch, logs=None):
        self.step += 1
        print(json.dumps({"step": self.step, **logs}), flush=True)


def make_images(samples: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Noisy pictures of stripes; the label is the direction the stripes run in."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, CLASSES, samples).astype("int32")
    angles = labels * (np.pi / CLASSES)
    phases = rng.uniform(0, 2 * np.pi, samples)
    rows, columns = np.mgrid[0:SIDE, 0:SIDE]
    along = (
        np.cos(angles)[:, None, None] * columns[None] + np.sin(angles)[:, None, None] * rows[None]
    )
    stripes = np.sin(along * 0.8 + phases[:, None, None])
    images = stripes[..., None] + rng.normal(0, 0.3, (samples, SIDE, SIDE, 3))
    return images.astype("float32"), labels


def make_dataset(samples: int, batch: int, seed: int) -> tf.data.Dataset:
    """Batches in an order that is shuffled anew every epoch; the last batch may be smaller."""
    dataset = tf.data.Dataset.from_tensor_slices(make_images(samples, seed))
    return dataset.shuffle(samples, seed=seed).batch(batch).prefetch(1)


def residual_block(x, filters: int, stride: int):
    shortcut = x
    x = keras.layers.Conv2D(filters, 3, strides=stride, padding="same", use_bias=False)(x)
    x = keras.layers.BatchNormalization(momentum=0.8)(x)
    x = keras.layers.ReLU()(x)
    x = keras.layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
    x = keras.layers.BatchNormalization(momentum=0.8)(x)
    if shortcut.shape != x.shape:
        shortcut = keras.layers.Conv2D(filters, 1, strides=stride, use_bias=False)(shortcut)
        shortcut = keras.layers.BatchNormalization(momentum=0.8)(shortcut)
    return keras.layers.ReLU()(keras.layers.add([x, shortcut]))


def make_model(filters: int, blocks: int) -> keras.Model:
    inputs = keras.Input((SIDE, SIDE, 3))
    x = keras.layers.Conv2D(filters, 3, padding="same", use_bias=False)(inputs)
    x = keras.layers.BatchNormalization(momentum=0.8)(x)
    x = keras.layers.ReLU()(x)
    for stage in range(3):
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            x = residual_block(x, filters << stage, stride)
    x = keras.layers.GlobalAveragePooling2D()(x)
    return keras.Model(inputs, keras.layers.Dense(CLASSES)(x))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=8, help="training steps per epoch")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--filters", type=int, default=16, help="channels of the first stage")
    parser.add_argument("--blocks", type=int, default=2, help="residual blocks per stage")
    args = parser.parse_args()

    keras.utils.set_random_seed(2)
    samples = args.steps * args.batch - args.batch // 2  # the last batch of an epoch is half full
    model = make_model(args.filters, args.blocks)
    rate = keras.optimizers.schedules.CosineDecay(0.1, decay_steps=args.steps * args.epochs)
    model.compile(
        optimizer=keras.optimizers.SGD(rate, momentum=0.9, nesterov=True),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    model.fit(
        make_dataset(samples, args.batch, seed=1),
        epochs=args.epochs,
        callbacks=[PrintLosses()],
        verbose=0,
    )
    results = model.evaluate(
        make_dataset(2 * args.batch, args.batch, seed=2), verbose=0, return_dict=True
    )
    print(json.dumps({f"test_{name}": value for name, value in results.items()}))


if __name__ == "__main__":
    main()

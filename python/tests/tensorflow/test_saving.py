"""Saving and loading: ordinary Keras files, in blocks, with neither chief nor worker growing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from stories import story

from pardnn.tensorflow.saving import BLOCK_BYTES, blocks

MIB = 1 << 20

_MODEL = """
import os, sys
import numpy as np
folder, where = os.environ["STORY_FOLDER"], os.environ.get("STORY_WHERE")
def build(width=700):
    import keras
    keras.utils.set_random_seed(3)
    model = keras.Sequential(
        [keras.Input((width,))]
        + [keras.layers.Dense(width, activation="relu") for _ in range(4)]
        + [keras.layers.BatchNormalization(), keras.layers.Dense(3, dtype="bfloat16")]
    )
    model.compile(keras.optimizers.Adam(1e-3), loss="mse")
    model.optimizer.build(model.trainable_variables)
    return model
def digest(model):
    import hashlib
    values = b"".join(np.asarray(v.numpy()).tobytes() for v in model.variables)
    return hashlib.sha256(values).hexdigest()
"""


def test_blocks_cover_an_array_once_in_memory_order_and_stay_small() -> None:
    for shape, item_bytes in [
        ((5000, 5000), 4),  # 20 kB a row: 419 rows a block
        ((3, 10**7), 2),  # a row of 20 MB is cut itself
        ((2, 3, 4 * 10**6), 4),
        ((9 * 10**6,), 1),
        ((1, 1, 1), 8),
    ]:
        strides = np.cumprod([1, *shape[:0:-1]])[::-1]
        end = 0
        for block in blocks(shape, item_bytes):
            size = np.prod([s.stop - s.start for s in block])
            assert size * item_bytes <= BLOCK_BYTES
            begin = sum(s.start * stride for s, stride in zip(block, strides, strict=True))
            assert int(begin) == end
            end += int(size)
        assert end == np.prod(shape)


def test_files_are_keras_own_and_go_both_ways(tmp_path: Path, monkeypatch) -> None:
    # Blocks of 256 KiB: a kernel of 700 x 700 floats has 1.9 MiB and is cut into 8.
    monkeypatch.setenv("STORY_FOLDER", str(tmp_path))
    ours = story(
        _MODEL
        + """
with Cluster.start(2, 128 << 20) as cluster:
    from pardnn.tensorflow import saving, variables
    import keras
    variables.install(cluster)
    saving.install()
    saving.BLOCK_BYTES = 1 << 18
    model = build()
    for v in model.optimizer.variables:
        v.assign(v + 1)
    model.save_weights(f"{folder}/ours.weights.h5")
    model.save(f"{folder}/ours.keras")
    print(digest(model))
    model.load_weights(f"{folder}/ours.weights.h5")
    again = keras.models.load_model(f"{folder}/ours.keras")
    print(digest(model), digest(again))
    print({v.value.device[:11] for v in again.variables})
    part = build(500)
    try:
        part.load_weights(f"{folder}/ours.weights.h5")
    except ValueError as error:
        print("could not be loaded" in str(error) or "must match" in str(error))
"""
    ).split()
    assert ours[0] == ours[1] == ours[2]
    assert ours[3:] == ["{'/job:worker'}", "True"]
    plain = story(
        _MODEL
        + """
import keras
model = keras.models.load_model(f"{folder}/ours.keras")
print(digest(model))
model.load_weights(f"{folder}/ours.weights.h5")
print(digest(model))
model.save(f"{folder}/plain.keras")
"""
    ).split()
    assert plain == [ours[0], ours[0]]
    back = story(
        _MODEL
        + """
with Cluster.start(2, 128 << 20) as cluster:
    from pardnn.tensorflow import saving, variables
    import keras
    variables.install(cluster)
    saving.install()
    saving.BLOCK_BYTES = 1 << 18
    print(digest(keras.models.load_model(f"{folder}/plain.keras")))
"""
    ).split()
    assert back == [ours[0]]


def test_neither_chief_nor_worker_grows_while_saving_and_loading(
    tmp_path: Path, monkeypatch
) -> None:
    # 4 kernels of 4096 x 4096 floats = 64 MiB each; with Adam's two slots 12 * 64 = 768 MiB of
    # state over two workers: 384 MiB each. A second copy of one would make 448 MiB.
    monkeypatch.setenv("STORY_FOLDER", str(tmp_path))
    out = story(
        _MODEL
        + """
with Cluster.start(2, None) as cluster:
    from pardnn.tensorflow import saving, variables
    from pardnn.tensorflow.worker import resident_memory
    import keras
    variables.install(cluster)
    saving.install()
    bare = resident_memory(os.getpid())["current"]
    model = build(4096)
    model.save_weights(f"{folder}/a.weights.h5")
    model.load_weights(f"{folder}/a.weights.h5")
    model.save(f"{folder}/a.keras")
    print(resident_memory(os.getpid())["peak"] - bare >> 20)
    print(*(cluster.memory(i)["peak"] >> 20 for i in range(2)))
    print(os.path.getsize(f"{folder}/a.keras") >> 20)
"""
    ).split()
    growth, *peaks, file_size = map(int, out)
    assert growth < 150, "the model's state is 768 MiB"
    assert all(384 <= peak <= 384 + 40 for peak in peaks)
    assert file_size >= 768

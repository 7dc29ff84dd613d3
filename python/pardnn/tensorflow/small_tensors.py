"""Gives small tensors places of their own in a worker's allocator.

TensorFlow's allocator hands out a free chunk whole unless it is at least twice what is asked for.
A scalar that is put at the start of a free 256 KiB chunk therefore makes the next 128 KiB tensor
occupy all the rest of it, and thousands of scalars come and go in a step. A few thousand free
chunks of their sizes, with tiny tensors between them that never go away, give the scalars places of
their own that never merge into larger ones.
"""

from __future__ import annotations

from typing import Any

# Free chunks to make: bytes of each, and how many. With what keeps them apart they fill the region
# of 2 MiB that the allocator opens first, which so offers no place to a single larger tensor.
PLACES = ((256, 2200), (512, 300), (1024, 150), (4096, 40), (16384, 20))
FIRST_REGION_BYTES = 2 << 20
_WALL_BYTES = 256
_walls: list[Any] = []


def keep_apart() -> None:
    """Makes the places; once for a process, when its allocator has its regions."""
    import tensorflow as tf

    sizes = [size for bytes_, count in PLACES for size in [_WALL_BYTES, bytes_] * count]
    # What is split must not be in that region itself, so it has one part more and is too large.
    sizes.append(FIRST_REGION_BYTES)
    columns = [
        size // 8 for size in sizes
    ]  # two rows of float32: of one row, parts would be shared
    whole = tf.raw_ops.Empty(shape=[2, sum(columns)], dtype=tf.float32, init=False)
    parts = tf.raw_ops.SplitV(value=whole, size_splits=columns, axis=1, num_split=len(columns))
    _walls.extend(parts[:-1:2])


def wall_bytes() -> int:
    """Bytes the allocator counts as in use for what keeps the places apart."""
    return len(_walls) * _WALL_BYTES

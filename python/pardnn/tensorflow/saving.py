"""Models are saved and loaded in pieces, so that the chief never holds more than one.

Keras saves tensor by tensor, but pulls each through the chief as a whole, and puts .keras archives
together in memory. Here a large variable goes from its worker into the file, and from the file to
its worker, in blocks. The files are Keras's own: plain Keras loads them, and its files load here.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from pardnn.tensorflow import compat_state
from pardnn.tensorflow.variables import bytes_of

BLOCK_BYTES = 8 << 20

_undo: list[Callable[[], None]] = []


def install() -> None:
    """From now on Keras saves and loads large variables of workers in blocks."""
    uninstall()
    _undo.extend(
        [
            compat_state.store_through(_put, _get),
            compat_state.save_through_disk(),
            compat_state.save_optimizers_as_variables(),
            compat_state.assign_through(_assign),
        ]
    )


def uninstall() -> None:
    """Undoes ``install``."""
    while _undo:
        _undo.pop()()


class Stored(np.memmap):
    """A large array of an HDF5 file: an ordinary array to whoever looks into it, mapped from the
    file; ``dataset`` reads it in pieces without mapping a page."""

    dataset: Any

    def __array_finalize__(self, origin: Any) -> None:
        super().__array_finalize__(origin)
        self.dataset = None  # a view or a result is not the array in the file any more


def _cut_axis(shape: Sequence[int], item_bytes: int) -> tuple[int, int]:
    """The axis along which an array is cut into blocks, and the bytes of one index of it."""
    axis, row_bytes = len(shape) - 1, item_bytes
    while axis > 0 and row_bytes * shape[axis] <= BLOCK_BYTES:
        row_bytes *= shape[axis]
        axis -= 1
    return axis, row_bytes


def blocks(shape: Sequence[int], item_bytes: int) -> Iterator[tuple[slice, ...]]:
    """Slices that cut an array of ``shape`` into blocks of at most BLOCK_BYTES, in memory order.

    Every axis before the one that is cut is taken one index at a time, every axis after it whole.
    """
    axis, row_bytes = _cut_axis(shape, item_bytes)
    step = max(1, BLOCK_BYTES // row_bytes)
    whole = tuple(slice(0, size) for size in shape[axis + 1 :])
    for outer in itertools.product(*(range(size) for size in shape[:axis])):
        ones = tuple(slice(index, index + 1) for index in outer)
        for begin in range(0, shape[axis], step):
            yield (*ones, slice(begin, min(begin + step, shape[axis])), *whole)


def _worth_cutting(value: Any) -> tf.Variable | None:
    """The tf.Variable behind ``value`` if it is on a worker and larger than a block."""
    if isinstance(value, keras.Variable):
        value = value.value
    if not isinstance(value, tf.Variable) or "/job:worker" not in value.device:
        return None
    return value if len(value.shape) > 0 and bytes_of(value) > BLOCK_BYTES else None


def _put(group: Any, key: str, value: Any) -> bool:
    """Writes a large variable into an h5py group, block by block."""
    variable = _worth_cutting(value)
    if variable is None:
        return False
    dtype = variable.dtype.as_numpy_dtype
    dataset = group.create_dataset(key, shape=tuple(variable.shape), dtype=dtype)
    if variable.dtype == tf.bfloat16:
        dataset.attrs["dtype"] = "bfloat16"  # the mark Keras puts on them
    with tf.device(variable.device):
        held = variable.read_value()  # the variable's own buffer, not a copy
        for block in blocks(variable.shape, variable.dtype.size):
            part = tf.slice(held, [s.start for s in block], [s.stop - s.start for s in block])
            dataset[block] = part.numpy()
    return True


def _get(dataset: Any, key: str) -> Stored | None:
    """The array behind an h5py dataset without reading it; None when it is small, or not stored
    in one piece."""
    size = math.prod(dataset.shape) * dataset.dtype.itemsize
    offset = dataset.id.get_offset()
    if size <= BLOCK_BYTES or offset is None or dataset.file.driver != "sec2":
        return None
    dtype = dataset.dtype
    if dataset.attrs.get("dtype") == "bfloat16":
        dtype = tf.bfloat16.as_numpy_dtype
    stored = Stored(dataset.file.filename, dtype, "c", offset, tuple(dataset.shape))
    stored.dataset = dataset
    return stored


def _assign(variable: Any, value: Any) -> bool:
    """Assigns a large array of a file to a worker's variable, block by block."""
    target = _worth_cutting(variable)
    if target is None or not isinstance(value, Stored) or value.dataset is None:
        return False
    if tuple(value.shape) != tuple(target.shape) or not tf.executing_eagerly():
        return False  # Keras says what is wrong, or traces it
    with tf.device(target.device):
        _fill(target, value)
    return True


def _fill(target: tf.Variable, value: Stored) -> None:
    """Reads ``value`` from its file into ``target``, block by block.

    The old value is let go first, so that the worker never holds two. The new one is written in
    place before the variable has it: a variable that is written in pieces itself would from then
    on be copied whenever it is read.
    """
    shape, item_bytes = tuple(target.shape), target.dtype.size
    axis, _ = _cut_axis(shape, item_bytes)
    row = shape[axis + 1 :]
    tf.raw_ops.AssignVariableOp(resource=target.handle, value=tf.zeros([0], target.dtype))
    filled = tf.raw_ops.Empty(
        shape=[math.prod(shape[: axis + 1]), *row], dtype=target.dtype, init=True
    )
    try:
        begin = 0
        for block in blocks(shape, item_bytes):
            part = value.dataset[block]
            if part.dtype != value.dtype:
                part = part.view(value.dtype)  # bfloat16 is stored as two bytes of no kind
            part = part.astype(target.dtype.as_numpy_dtype, copy=False).reshape(-1, *row)
            where = tf.range(begin, begin + len(part))
            filled = tf.raw_ops.InplaceUpdate(x=filled, i=where, v=tf.convert_to_tensor(part))
            begin += len(part)
            # Operations on workers are queued: wait, or all blocks would be under way at once.
            int(tf.reduce_max(where))
    finally:
        tf.raw_ops.AssignVariableOp(resource=target.handle, value=tf.reshape(filled, shape))

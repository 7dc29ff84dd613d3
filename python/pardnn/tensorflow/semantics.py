"""What each TensorFlow CPU kernel does to memory: which buffers it shares, takes over or makes.

The tables state what the kernels of TensorFlow 2.21 (oneDNN on) were measured to do; the test runs
every entry in a real function and compares bytes. An op that is in no table gets fresh buffers,
which is right for most and never too little.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import tensorflow as tf

from pardnn.tensorflow import compat
from pardnn.tensorflow.kernels import ALIAS as ALIAS
from pardnn.tensorflow.kernels import TAKES_OVER as TAKES_OVER
from pardnn.tensorflow.statics import Statics

# Slices share a buffer only where Eigen may assume this alignment.
_ALIGNMENT_BYTES = 64

LOOPS = frozenset({"While", "StatelessWhile"})

_REDUCTIONS = frozenset({"Sum", "Mean", "Max", "Min", "Prod", "All", "Any", "EuclideanNorm"})

# Ops on a variable that only look at it. Everything else that takes one counts as an update.
_LOOKS = frozenset(
    {"VariableShape", "VarIsInitializedOp", "ResourceGather", "ResourceGatherNd"}
    | {"DisableCopyOnRead"}
)
# After one of these a variable is copied by whoever reads it, and by every update of the whole.
_SPARSE_UPDATES = ("ResourceScatter", "ResourceSparseApply", "ResourceStridedSliceAssign")


class Touch(Enum):
    """What an op does with a variable it takes as a resource."""

    READ = "read"
    LOOK = "look"
    UPDATE = "update"


@dataclass(frozen=True)
class Source:
    """Where an output's bytes live: in the buffer of input `alias`, or in its own.

    An output with its own buffer may take over that of one of the inputs in `takes`, tried in this
    order, when nothing else needs it.
    """

    alias: int | None = None
    takes: tuple[int, ...] = ()


FRESH = Source()


def sources(op: tf.Operation, statics: Statics) -> list[Source]:
    """One `Source` for each output of `op`, from its type, static shapes and constant inputs."""
    count = len(op.outputs)
    if op.type in ALIAS:
        return [Source(alias=n) for n in range(count)]
    if op.type in compat.SPLITS:
        return [Source(alias=0)] * count
    if op.type in compat.JOINS:
        # One branch has run; the other holds nothing.
        return [Source(takes=tuple(range(len(op.inputs)))), *[FRESH] * (count - 1)]
    shares = _SHARES_WHEN.get(op.type)
    if shares is not None and shares(op, statics):
        return [Source(alias=_DATA_INPUT.get(op.type, 0))] * count
    takes = TAKES_OVER.get(op.type, {})
    return [
        Source(
            takes=tuple(i for i in _candidates(op, takes.get(n, ())) if _fits(op, i, n, statics))
        )
        for n in range(count)
    ]


def _candidates(op: tf.Operation, inputs: tuple[int, ...]) -> Sequence[int]:
    return range(len(op.inputs)) if op.type == "AddN" else inputs


def _fits(op: tf.Operation, index: int, number: int, statics: Statics) -> bool:
    if index >= len(op.inputs):
        return False
    source, output = op.inputs[index], op.outputs[number]
    count = statics.shape(output).num_elements()
    return bool(
        source.dtype == output.dtype
        and count is not None
        and count == statics.shape(source).num_elements()
    )


def touch(kind: str) -> Touch:
    """What an op of this type does with the variables it takes (function calls apart)."""
    if kind == "ReadVariableOp":
        return Touch.READ
    return Touch.LOOK if kind in _LOOKS else Touch.UPDATE


def makes_copy_on_read(kind: str) -> bool:
    """Whether an op of this type puts its variable into the mode in which every read is a copy."""
    return kind.startswith(_SPARSE_UPDATES)


def _item_bytes(tensor: tf.Tensor) -> int:
    return int(tensor.dtype.size)


def _rows_aligned(tensor: tf.Tensor, statics: Statics) -> bool:
    """Whether rows of `tensor` start at aligned addresses, so that some may be shared."""
    shape = statics.shape(tensor)
    if not shape.is_fully_defined() or shape.rank == 0 or shape[0] == 0:
        return False
    return (shape.num_elements() // shape[0]) * _item_bytes(tensor) % _ALIGNMENT_BYTES == 0


def _block_aligned(tensor: tf.Tensor, start: int, stop: int, statics: Statics) -> bool:
    if statics.shape(tensor).rank == 1:
        item = _item_bytes(tensor)
        return start * item % _ALIGNMENT_BYTES == 0 and stop * item % _ALIGNMENT_BYTES == 0
    return _rows_aligned(tensor, statics)


def _slice_shares(op: tf.Operation, statics: Statics) -> bool:
    shape = statics.shape(op.inputs[0])
    begin, size = statics.value(op.inputs[1]), statics.value(op.inputs[2])
    if begin is None or size is None or not shape.is_fully_defined() or not shape.rank:
        return False
    dims = shape.as_list()
    whole = [b == 0 and s in (-1, d) for b, s, d in zip(begin, size, dims, strict=True)]
    if all(whole):
        return True
    rows = int(size[0]) if size[0] >= 0 else dims[0] - int(begin[0])
    return all(whole[1:]) and _block_aligned(op.inputs[0], int(begin[0]), rows, statics)


def _strided_slice_shares(op: tf.Operation, statics: Statics) -> bool:
    found = [statics.value(t) for t in op.inputs[1:4]]
    shape = statics.shape(op.inputs[0])
    if any(v is None for v in found) or not shape.is_fully_defined() or not shape.rank:
        return False
    ranges = _dense_ranges(op, shape.as_list(), found)
    if ranges is None:
        return False
    whole = [(r.start, r.stop, r.step) == (0, d, 1) for r, d in zip(ranges, shape, strict=True)]
    if all(whole):
        return True
    first = ranges[0]
    return (
        all(whole[1:])
        and first.step == 1
        and _block_aligned(op.inputs[0], first.start, first.stop, statics)
    )


def _dense_ranges(op: tf.Operation, dims: list[int], spec: Sequence[Any]) -> list[range] | None:
    """What a StridedSlice takes of each dimension of its input; None where that is not plain."""
    mask = {
        name: int(op.get_attr(f"{name}_mask"))
        for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
    }
    begin, end, strides = (np.atleast_1d(v) for v in spec)
    given = [n for n in range(len(begin)) if not mask["new_axis"] >> n & 1]
    explicit = sum(not mask["ellipsis"] >> n & 1 for n in given)
    result: list[range] = []
    for n in given:
        if mask["ellipsis"] >> n & 1:
            result += [range(d) for d in dims[len(result) : len(dims) - explicit + len(result)]]
            continue
        if len(result) >= len(dims):
            return None
        size, stride = dims[len(result)], int(strides[n])
        if mask["shrink_axis"] >> n & 1:
            at = int(begin[n]) % size if size else 0
            result.append(range(at, at + 1))
            continue
        start = None if mask["begin"] >> n & 1 else int(begin[n])
        stop = None if mask["end"] >> n & 1 else int(end[n])
        result.append(range(*slice(start, stop, stride).indices(size)))
    return [*result, *[range(d) for d in dims[len(result) :]]]


def _split_shares(op: tf.Operation, statics: Statics) -> bool:
    if len(op.outputs) == 1:
        return True
    axis = statics.value(op.inputs[0 if op.type == "Split" else 2])
    data = op.inputs[_DATA_INPUT.get(op.type, 0)]
    rank = statics.shape(data).rank
    if axis is None or rank is None:
        return False
    return int(axis) % rank == 0 and _rows_aligned(data, statics)


def _unpack_shares(op: tf.Operation, statics: Statics) -> bool:
    rank = statics.shape(op.inputs[0]).rank
    if not rank or int(op.get_attr("axis")) % rank:
        return False
    return _rows_aligned(op.inputs[0], statics)


def _same_shape(op: tf.Operation, statics: Statics) -> bool:
    source, output = statics.shape(op.inputs[0]), statics.shape(op.outputs[0])
    return bool(source.is_fully_defined() and source == output)


def _transpose_shares(op: tf.Operation, statics: Statics) -> bool:
    """Nothing is moved when all dimensions but those of size one keep their order."""
    order, shape = statics.value(op.inputs[1]), statics.shape(op.inputs[0])
    if order is None or not shape.is_fully_defined():
        return False
    kept = [int(axis) for axis in order if shape[int(axis)] != 1]
    return kept == sorted(kept)


def _reduction_shares(op: tf.Operation, statics: Statics) -> bool:
    axes, shape = statics.value(op.inputs[1]), statics.shape(op.inputs[0])
    if axes is None or not shape.is_fully_defined():
        return False
    return all(shape[int(axis)] == 1 for axis in np.atleast_1d(axes))


def _cast_shares(op: tf.Operation, statics: Statics) -> bool:
    return bool(op.inputs[0].dtype == op.outputs[0].dtype)


def _packs_one(op: tf.Operation, statics: Statics) -> bool:
    return len(op.inputs) == 1


_DATA_INPUT = {"Split": 1}
_SHARES_WHEN: dict[str, Callable[[tf.Operation, Statics], bool]] = {
    "Slice": _slice_shares,
    "StridedSlice": _strided_slice_shares,
    "Split": _split_shares,
    "SplitV": _split_shares,
    "Unpack": _unpack_shares,
    "Pack": _packs_one,
    "BroadcastTo": _same_shape,
    "Tile": _same_shape,
    "Pad": _same_shape,
    "PadV2": _same_shape,
    "MirrorPad": _same_shape,
    "Transpose": _transpose_shares,
    "Cast": _cast_shares,
    **dict.fromkeys(_REDUCTIONS, _reduction_shares),
}

"""Values of small tensors that follow from constants and shapes: axes, indices, counters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pardnn.readers.tensorflow import shape_rules, types
from pardnn.readers.tensorflow.known import Known, Shape, Value
from pardnn.readers.tensorflow.nodes import Node

_MOST_ELEMENTS = 1024
_PASSES = frozenset({"Identity", "StopGradient", "Snapshot", "Enter", "PreventGradient"})
_ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "Add": np.add,
    "AddV2": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "FloorDiv": np.floor_divide,
    "FloorMod": np.mod,
    "Maximum": np.maximum,
    "Minimum": np.minimum,
    "Neg": np.negative,
}
_REDUCTIONS: dict[str, Callable[..., Any]] = {
    "Prod": np.prod,
    "Sum": np.sum,
    "Max": np.max,
    "Min": np.min,
}


def values(node: Node, known: Known) -> Sequence[Value | None]:
    """Values of a node's outputs where they follow from small constants; empty where not."""
    if node.op in _OF_SHAPES:
        return _OF_SHAPES[node.op]([known.shape(tensor) for tensor in node.inputs])
    if node.op not in _FOLDS and node.op not in _ELEMENTWISE and node.op not in _REDUCTIONS:
        return ()
    given = [known.value(tensor) for tensor in node.inputs]
    if not given or any(value is None for value in given):
        return ()
    known_values = [value for value in given if value is not None]
    try:
        with np.errstate(all="ignore"):
            return _fold(node, known_values)
    except (ValueError, IndexError, TypeError, OverflowError, ZeroDivisionError):
        return ()  # what the op itself would refuse has no value


def _fold(node: Node, given: list[Value]) -> Sequence[Value | None]:
    if node.op in _ELEMENTWISE:
        return [np.asarray(_ELEMENTWISE[node.op](*given))]
    if node.op in _REDUCTIONS:
        axes = tuple(int(axis) for axis in given[1].reshape(-1))
        result = _REDUCTIONS[node.op](given[0], axis=axes, keepdims=node.flag("keep_dims"))
        return [np.asarray(result, given[0].dtype)]
    return _FOLDS[node.op](node, given)


def _numbers(shape: Shape) -> Value | None:
    if shape is None or any(size is None for size in shape):
        return None
    return np.array(shape, np.int64)


def _shapes(given: list[Shape]) -> Sequence[Value | None]:
    return [_numbers(shape) for shape in given]


def _size(given: list[Shape]) -> Sequence[Value | None]:
    numbers = _numbers(given[0]) if given else None
    return [None if numbers is None else np.array(numbers.prod())]


def _rank(given: list[Shape]) -> Sequence[Value | None]:
    return [None if not given or given[0] is None else np.array(len(given[0]))]


_OF_SHAPES: dict[str, Callable[[list[Shape]], Sequence[Value | None]]] = {
    "Shape": _shapes,
    "ShapeN": _shapes,
    "Size": _size,
    "Rank": _rank,
}


def _reduced(node: Node, given: list[Value]) -> Sequence[Value | None]:
    """Axes along which each operand of a broadcast was stretched."""
    left, right = ([int(size) for size in value] for value in given)
    rank = max(len(left), len(right))
    whole = shape_rules.broadcast(tuple(left), tuple(right)) or ()
    result = []
    for own in (left, right):
        padded = [1] * (rank - len(own)) + own
        axes = [n for n in range(rank) if n < rank - len(own) or padded[n] != whole[n]]
        result.append(np.array(axes, np.int64))
    return result


def _stitched(node: Node, given: list[Value]) -> Sequence[Value | None]:
    half = len(given) // 2
    where = np.concatenate([value.reshape(-1) for value in given[:half]])
    data = np.concatenate([value.reshape(-1) for value in given[half:]])
    if where.size != data.size or where.size == 0 or where.max() >= _MOST_ELEMENTS:
        return ()
    result = np.zeros(int(where.max()) + 1, data.dtype)
    result[where] = data
    return [result]


def _strided(node: Node, given: list[Value]) -> Sequence[Value | None]:
    parts = list(shape_rules.strided(node, given[0].shape, given[1:4]))
    return [given[0][tuple(np.newaxis if part is None else part for part in parts)]]


def _sliced(node: Node, given: list[Value]) -> Sequence[Value | None]:
    starts, sizes = given[1].reshape(-1), given[2].reshape(-1)
    parts = [
        slice(int(b), None if s < 0 else int(b + s)) for b, s in zip(starts, sizes, strict=True)
    ]
    return [given[0][tuple(parts)]]


def _ranged(node: Node, given: list[Value]) -> Sequence[Value | None]:
    start, limit, step = (value.reshape(-1)[0] for value in given)
    if not step or abs((limit - start) / step) > _MOST_ELEMENTS:
        return ()
    return [np.arange(start, limit, step)]


def _filled(node: Node, given: list[Value]) -> Sequence[Value | None]:
    shape = [int(size) for size in given[0].reshape(-1)]
    if np.prod(np.array(shape, float)) > _MOST_ELEMENTS:
        return ()
    return [np.full(shape, given[1].reshape(-1)[0])]


def _cast(node: Node, given: list[Value]) -> Sequence[Value | None]:
    whole = node.dtype("DstT") in (types.INT32, types.INT64)
    return [given[0].astype(np.int64 if whole else np.float64)]


_FOLDS: dict[str, Callable[[Node, list[Value]], Sequence[Value | None]]] = {
    **dict.fromkeys(_PASSES, lambda node, given: [given[0]]),
    "BroadcastGradientArgs": _reduced,
    "Cast": _cast,
    "Concat": lambda node, given: [np.concatenate(given[1:], axis=int(given[0]))],
    "ConcatV2": lambda node, given: [np.concatenate(given[:-1], axis=int(given[-1]))],
    "DynamicStitch": _stitched,
    "ExpandDims": lambda node, given: [np.expand_dims(given[0], int(given[1].reshape(-1)[0]))],
    "Fill": _filled,
    "Gather": lambda node, given: [given[0][given[1]]],
    "GatherV2": lambda node, given: [np.take(given[0], given[1], axis=int(given[2]))],
    "InvertPermutation": lambda node, given: [np.argsort(given[0])],
    "Pack": lambda node, given: [np.stack(given, axis=node.integer("axis"))],
    "Range": _ranged,
    "RealDiv": lambda node, given: [given[0] / given[1]],
    "Reshape": lambda node, given: [given[0].reshape([int(size) for size in given[1]])],
    "Slice": _sliced,
    "Squeeze": lambda node, given: [np.squeeze(given[0])],
    "StridedSlice": _strided,
}

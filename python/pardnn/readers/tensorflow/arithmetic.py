"""Floating point operations of the op types whose time they decide."""

from __future__ import annotations

import math

from pardnn.readers.tensorflow.known import Shape
from pardnn.readers.tensorflow.nodes import Node
from pardnn.readers.tensorflow.shapes import Shapes

_MATMULS = frozenset({"MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"})
# Number of the input that is as large as what a forward convolution gives, and of the kernel.
_CONVOLUTIONS = {"Conv2DBackpropInput": (2, 1), "Conv2DBackpropFilter": (2, None)}


def flops_of(node: Node, shapes: Shapes) -> int | None:
    """Of a matrix product or convolution, two for each multiplication and addition; else None."""
    if node.op in _MATMULS and len(node.inputs) == 2:
        left = shapes.shape(node.inputs[0])
        out = shapes.elements((node.name, 0))
        if left is None or len(left) < 2 or out is None:
            return None
        inner = left[-2 if node.flag("transpose_a") or node.flag("adj_x") else -1]
        return None if inner is None else 2 * out * inner
    if node.op == "Conv2D" and len(node.inputs) == 2:
        return _windows(shapes.elements((node.name, 0)), shapes.shape(node.inputs[1]))
    if node.op in _CONVOLUTIONS and len(node.inputs) == 3:
        given, kernel = _CONVOLUTIONS[node.op]
        shape = shapes.shape((node.name, 0) if kernel is None else node.inputs[kernel])
        return _windows(shapes.elements(node.inputs[given]), shape)
    return None


def _windows(places: int | None, kernel: Shape) -> int | None:
    """What a convolution does at each of its results, for a kernel of (height, width, in, out)."""
    if places is None or kernel is None or len(kernel) != 4 or None in kernel:
        return None
    return 2 * places * math.prod(size for size in kernel[:3] if size is not None)

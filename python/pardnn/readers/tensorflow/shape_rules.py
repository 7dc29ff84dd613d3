"""Shapes that the usual op types give, from those they take: one rule for each sort of op."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from pardnn.readers.tensorflow.known import Known, Shape, Value
from pardnn.readers.tensorflow.nodes import Node

Rule = Callable[[Node, Known], Sequence[Shape]]


def of_like(position: int) -> Rule:
    def rule(node: Node, known: Known) -> Sequence[Shape]:
        return [known.shape(node.inputs[position])]

    return rule


def broadcast(*given: Shape) -> Shape:
    """The shape that operands of these shapes are stretched to."""
    if any(shape is None for shape in given):
        return None
    rank = max(len(shape) for shape in given if shape is not None)
    result: list[int | None] = []
    for column in range(rank):
        sizes = {s[column - rank] for s in given if s is not None and len(s) >= rank - column}
        larger = sizes - {1, None}
        if larger:
            result.append(max(size for size in larger if size is not None))
        else:
            result.append(None if None in sizes else 1)
    return tuple(result)


def of_broadcast(node: Node, known: Known) -> Sequence[Shape]:
    return [broadcast(*(known.shape(tensor) for tensor in node.inputs))]


def of_any_known(node: Node, known: Known) -> Sequence[Shape]:
    found = [known.shape(tensor) for tensor in node.inputs]
    return [next((s for s in found if s is not None and None not in s), found[0])]


def of_matmul(node: Node, known: Known) -> Sequence[Shape]:
    left, right = known.shape(node.inputs[0]), known.shape(node.inputs[1])
    if left is None or right is None:
        return [None]
    rows = left[-1] if node.flag("transpose_a") or node.flag("adj_x") else left[-2]
    columns = right[-2] if node.flag("transpose_b") or node.flag("adj_y") else right[-1]
    batch = broadcast(left[:-2], right[:-2]) or ()
    return [(*batch, rows, columns)]


def _layout(node: Node) -> tuple[int, list[int]]:
    """Number of the channels' dimension, and of the spatial ones."""
    form = node.text("data_format") or "NHWC"
    return form.index("C"), [n for n, letter in enumerate(form) if letter in "DHW"]


def _windowed(node: Node, given: Shape, sizes: Sequence[int | None]) -> list[int | None]:
    """`given` with its spatial dimensions as a window of `sizes` leaves them."""
    if given is None:
        raise ValueError("no shape")
    strides = list(node.attr["strides"].list.i)
    dilations = list(node.attr["dilations"].list.i) if "dilations" in node.attr else []
    pads = list(node.attr["explicit_paddings"].list.i) if "explicit_paddings" in node.attr else []
    padding = node.text("padding")
    result = list(given)
    for window, axis in zip(sizes, _layout(node)[1], strict=True):
        size, stride = given[axis], strides[axis]
        if size is None or window is None:
            result[axis] = None
            continue
        reach = (window - 1) * (dilations[axis] if dilations else 1) + 1
        if padding == "EXPLICIT":
            size += pads[2 * axis] + pads[2 * axis + 1]
        result[axis] = -(-size // stride) if padding == "SAME" else -(-(size - reach + 1) // stride)
    return result


def of_convolution(node: Node, known: Known) -> Sequence[Shape]:
    kernel = known.shape(node.inputs[1])
    if kernel is None:
        return [None]
    result = _windowed(node, known.shape(node.inputs[0]), kernel[:-2])
    channels = kernel[-1]
    if node.op == "DepthwiseConv2dNative":
        parts = kernel[-2:]
        channels = None if None in parts else math.prod(p for p in parts if p is not None)
    result[_layout(node)[0]] = channels
    return [tuple(result)]


def of_pool(node: Node, known: Known) -> Sequence[Shape]:
    window = list(node.attr["ksize"].list.i)
    spatial = [window[axis] for axis in _layout(node)[1]]
    return [tuple(_windowed(node, known.shape(node.inputs[0]), spatial))]


def of_sizes_of(position: int) -> Rule:
    def rule(node: Node, known: Known) -> Sequence[Shape]:
        return [_as_shape(known.value(node.inputs[position]))]

    return rule


def _as_shape(value: Value | None) -> Shape:
    return None if value is None else tuple(int(size) for size in value.reshape(-1))


def of_batch_norm(node: Node, known: Known) -> Sequence[Shape]:
    whole = known.shape(node.inputs[0])
    channels = known.shape(node.inputs[1])
    return [whole, channels, channels, channels, channels, (0,)][: 6 if "V3" in node.op else 5]


def of_batch_norm_grad(node: Node, known: Known) -> Sequence[Shape]:
    scale = known.shape(node.inputs[2])
    return [known.shape(node.inputs[1]), scale, scale, (0,), (0,)]


def of_bias_grad(node: Node, known: Known) -> Sequence[Shape]:
    given = known.shape(node.inputs[0])
    if given is None:
        return [None]
    first = node.text("data_format").startswith("NC")
    return [(given[1 if first else -1],)]


def of_cross_entropy(node: Node, known: Known) -> Sequence[Shape]:
    logits = known.shape(node.inputs[0])
    return [None if logits is None else logits[:1], logits]


def of_reduction(node: Node, known: Known) -> Sequence[Shape]:
    given, axes = known.shape(node.inputs[0]), None
    if len(node.inputs) > 1:
        axes = known.value(node.inputs[1])
    if given is None:
        return [None]
    keeps = node.flag("keep_dims")
    if axes is None:
        return [(None,) * len(given) if keeps else None]
    gone = {int(axis) % len(given) for axis in axes.reshape(-1)} if given else set()
    if keeps:
        return [tuple(1 if n in gone else size for n, size in enumerate(given))]
    return [tuple(size for n, size in enumerate(given) if n not in gone)]


def of_arg_max(node: Node, known: Known) -> Sequence[Shape]:
    given, axis = known.shape(node.inputs[0]), known.value(node.inputs[1])
    if given is None or axis is None:
        return [None]
    gone = int(axis) % len(given)
    return [tuple(size for n, size in enumerate(given) if n != gone)]


def of_reshape(node: Node, known: Known) -> Sequence[Shape]:
    target = known.value(node.inputs[1])
    if target is None:
        rank = known.shape(node.inputs[1])
        known_rank = rank is not None and len(rank) == 1 and rank[0] is not None
        return [(None,) * rank[0] if known_rank and rank and rank[0] and rank[0] < 16 else None]
    sizes: list[int | None] = [int(size) for size in target.reshape(-1)]
    if -1 in sizes:
        given = known.shape(node.inputs[0])
        open_at = sizes.index(-1)
        sizes[open_at] = None
        if given is not None and None not in given:
            rest = math.prod(size for size in sizes if size is not None)
            whole = math.prod(size for size in given if size is not None)
            sizes[open_at] = whole // rest if rest else None
    return [tuple(sizes)]


def of_shape_of(node: Node, known: Known) -> Sequence[Shape]:
    found = [known.shape(tensor) for tensor in node.inputs]
    return [None if shape is None else (len(shape),) for shape in found]


def of_scalar(node: Node, known: Known) -> Sequence[Shape]:
    return [()]


def of_pack(node: Node, known: Known) -> Sequence[Shape]:
    given = next(iter(of_any_known(node, known)))
    if given is None:
        return [None]
    axis = node.integer("axis") % (len(given) + 1)
    return [(*given[:axis], len(node.inputs), *given[axis:])]


def of_unpack(node: Node, known: Known) -> Sequence[Shape]:
    given = known.shape(node.inputs[0])
    if given is None:
        return []
    axis = node.integer("axis") % len(given)
    return [(*given[:axis], *given[axis + 1 :])] * min(node.integer("num", 1), 65536)


def of_concat(node: Node, known: Known) -> Sequence[Shape]:
    first = node.op == "Concat"
    parts = [known.shape(t) for t in (node.inputs[1:] if first else node.inputs[:-1])]
    axis = known.value(node.inputs[0 if first else -1])
    if axis is None or any(part is None for part in parts):
        return [None]
    whole = [part for part in parts if part is not None]
    at = int(axis) % len(whole[0])
    sizes = [part[at] for part in whole]
    length = None if None in sizes else sum(size for size in sizes if size is not None)
    joined = [next((p[n] for p in whole if p[n] is not None), None) for n in range(len(whole[0]))]
    joined[at] = length
    return [tuple(joined)]


def of_slice(node: Node, known: Known) -> Sequence[Shape]:
    given = known.shape(node.inputs[0])
    begin, size = known.value(node.inputs[1]), known.value(node.inputs[2])
    if size is None:
        return [None if given is None else (None,) * len(given)]
    found: list[int | None] = [int(one) for one in size.reshape(-1)]
    for axis, one in enumerate(found):
        if one == -1:
            whole = None if given is None else given[axis]
            known_both = whole is not None and begin is not None
            found[axis] = whole - int(begin.reshape(-1)[axis]) if known_both else None  # type: ignore[operator, union-attr]
    return [tuple(found)]


def strided(node: Node, given: tuple[int | None, ...], spec: Sequence[Value]) -> Iterator[Any]:
    """What a StridedSlice takes of each dimension: a slice, an int, or None for a new one."""
    begin, end, strides = ([int(one) for one in value.reshape(-1)] for value in spec)
    masks = {
        name: node.integer(f"{name}_mask")
        for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
    }
    explicit = sum(
        not masks["new_axis"] >> n & 1 and not masks["ellipsis"] >> n & 1 for n in range(len(begin))
    )
    for n in range(len(begin)):
        if masks["ellipsis"] >> n & 1:
            yield from [slice(None)] * (len(given) - explicit)
        elif masks["new_axis"] >> n & 1:
            yield None
        elif masks["shrink_axis"] >> n & 1:
            yield begin[n]
        else:
            yield slice(
                None if masks["begin"] >> n & 1 else begin[n],
                None if masks["end"] >> n & 1 else end[n],
                strides[n],
            )


def of_strided_slice(node: Node, known: Known) -> Sequence[Shape]:
    given = known.shape(node.inputs[0])
    spec = [known.value(tensor) for tensor in node.inputs[1:4]]
    if given is None or any(value is None for value in spec):
        return [None]
    result: list[int | None] = []
    axis = 0
    for part in strided(node, given, [value for value in spec if value is not None]):
        if part is None:
            result.append(1)
            continue
        if isinstance(part, slice):
            size = given[axis]
            whole = part == slice(None) or part == slice(None, None, 1)
            result.append(size if whole or size is None else len(range(*part.indices(size))))
        axis += 1
    return [(*result, *given[axis:])]


def of_split(node: Node, known: Known) -> Sequence[Shape]:
    axis, given = known.value(node.inputs[0]), known.shape(node.inputs[1])
    count = min(node.integer("num_split", 1), 65536)
    if axis is None or given is None:
        return []
    at, size = int(axis) % len(given), given[int(axis) % len(given)]
    part = None if size is None else size // count
    return [(*given[:at], part, *given[at + 1 :])] * count


def of_split_v(node: Node, known: Known) -> Sequence[Shape]:
    given, sizes, axis = (
        known.shape(node.inputs[0]),
        known.value(node.inputs[1]),
        known.value(node.inputs[2]),
    )
    if given is None or sizes is None or axis is None:
        return []
    at = int(axis) % len(given)
    return [(*given[:at], int(size), *given[at + 1 :]) for size in sizes.reshape(-1)]


def of_transpose(node: Node, known: Known) -> Sequence[Shape]:
    given, order = known.shape(node.inputs[0]), known.value(node.inputs[1])
    if given is None or order is None:
        return [None if given is None else (None,) * len(given)]
    return [tuple(given[int(axis)] for axis in order.reshape(-1))]


def of_expand(node: Node, known: Known) -> Sequence[Shape]:
    given, axis = known.shape(node.inputs[0]), known.value(node.inputs[1])
    if given is None or axis is None:
        return [None]
    at = int(axis.reshape(-1)[0]) % (len(given) + 1)
    return [(*given[:at], 1, *given[at:])]


def of_squeeze(node: Node, known: Known) -> Sequence[Shape]:
    given = known.shape(node.inputs[0])
    if given is None:
        return [None]
    gone = list(node.attr["squeeze_dims"].list.i) if "squeeze_dims" in node.attr else []
    if gone:
        axes = {axis % len(given) for axis in gone}
        return [tuple(size for n, size in enumerate(given) if n not in axes)]
    return [None if None in given else tuple(size for size in given if size != 1)]


def of_tile(node: Node, known: Known) -> Sequence[Shape]:
    given, times = known.shape(node.inputs[0]), known.value(node.inputs[1])
    if given is None or times is None:
        return [None if given is None else (None,) * len(given)]
    pairs = zip(given, times.reshape(-1), strict=True)
    return [tuple(None if size is None else size * int(count) for size, count in pairs)]


def of_pad(node: Node, known: Known) -> Sequence[Shape]:
    given, pads = known.shape(node.inputs[0]), known.value(node.inputs[1])
    if given is None or pads is None:
        return [None if given is None else (None,) * len(given)]
    pairs = zip(given, pads.reshape(-1, 2), strict=True)
    return [tuple(None if s is None else s + int(p[0]) + int(p[1]) for s, p in pairs)]


def of_one_hot(node: Node, known: Known) -> Sequence[Shape]:
    given, depth = known.shape(node.inputs[0]), known.value(node.inputs[1])
    if given is None:
        return [None]
    axis = node.integer("axis", -1) % (len(given) + 1)
    return [(*given[:axis], None if depth is None else int(depth), *given[axis:])]


def of_gather(node: Node, known: Known) -> Sequence[Shape]:
    table = known.shape(node.inputs[0])
    if node.op == "ResourceGather":
        table = known.of_variable(node.inputs[0])
    rows = known.shape(node.inputs[1])
    axis = known.value(node.inputs[2]) if len(node.inputs) > 2 else np.array(0)
    if table is None or rows is None or axis is None or node.integer("batch_dims"):
        return [None]
    at = int(axis) % len(table)
    return [(*table[:at], *rows, *table[at + 1 :])]


def of_through_merge(node: Node, known: Known) -> Sequence[Shape]:
    """What enters a loop or leaves a branch: the first input whose shape is known."""
    found = [known.shape(tensor) for tensor in node.inputs]
    return [next((shape for shape in found if shape is not None), None), ()]


def of_through_switch(node: Node, known: Known) -> Sequence[Shape]:
    return [known.shape(node.inputs[0])] * 2


def of_identities(node: Node, known: Known) -> Sequence[Shape]:
    return [known.shape(tensor) for tensor in node.inputs]


def of_reduced(node: Node, known: Known) -> Sequence[Shape]:
    """At most all dimensions."""
    ranks = [shape for tensor in node.inputs if (shape := known.shape(tensor)) is not None]
    return [max(ranks, key=lambda s: s[0] or 0)] * 2 if len(ranks) == 2 else [None, None]


def of_range(node: Node, known: Known) -> Sequence[Shape]:
    values = [known.value(tensor) for tensor in node.inputs]
    if any(value is None for value in values):
        return [(None,)]
    start, limit, step = (float(value) for value in values if value is not None)
    return [(max(0, math.ceil((limit - start) / step)),)]


def of_segments(node: Node, known: Known) -> Sequence[Shape]:
    data, count = known.shape(node.inputs[0]), known.value(node.inputs[2])
    ids = known.shape(node.inputs[1])
    if data is None or ids is None or count is None:
        return [None]
    return [(int(count), *data[len(ids) :])]

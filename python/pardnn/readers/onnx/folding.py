"""Values of small tensors that are known before a step: those that shapes of others depend on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

Array = np.ndarray[Any, np.dtype[Any]]

_MOST_ELEMENTS = 1024
_MOST_BYTES = 8192
_MOST_WORK = 1 << 20  # elements of what broadcasting makes


def fold(model: Any) -> bool:
    """Replaces ops whose inputs are known by constants; whether there were any."""
    known: dict[str, Array] = {}
    for tensor in model.graph.initializer:
        _keep(known, tensor.name, tensor)
    infos = (*model.graph.value_info, *model.graph.input, *model.graph.output)
    shapes = {info.name: shape for info in infos if (shape := _shape(info)) is not None}
    shapes |= {tensor.name: list(tensor.dims) for tensor in model.graph.initializer}
    found = False
    for node in model.graph.node:
        if node.op_type == "BroadcastGradientArgs":
            _count_axes(node, known, shapes, model)
        if len(node.output) != 1:
            continue
        if node.op_type == "Constant":
            for attribute in node.attribute:
                if attribute.HasField("t"):
                    _keep(known, node.output[0], attribute.t)
            continue
        value = _value(node, known, shapes)
        if value is not None and value.size <= _MOST_ELEMENTS:
            known[node.output[0]] = value
            _replace(node, value)
            found = True
    return found


def _count_axes(
    node: Any, known: dict[str, Array], shapes: dict[str, list[int]], model: Any
) -> None:
    """Says over which axes the gradients of two operands of known shapes are summed.

    The outputs become initializers: an op of two outputs cannot be one constant.
    """
    if len(node.input) != 2 or not all(name in known for name in node.input):
        return
    first, second = ([int(dim) for dim in known[name].reshape(-1)] for name in node.input)
    rank = max(len(first), len(second))
    for output, own, other in zip(node.output, (first, second), (second, first), strict=False):
        missing = rank - len(own)
        padded = [1] * (rank - len(other)) + other
        axes = list(range(missing))
        axes += [n + missing for n, dim in enumerate(own) if dim == 1 != padded[n + missing]]
        if output and output not in known and output not in shapes:
            known[output] = np.array(axes, np.int64)
            model.graph.initializer.append(numpy_helper.from_array(known[output], output))
    node.Clear()
    node.op_type = "Constant"


def _keep(known: dict[str, Array], name: str, tensor: Any) -> None:
    if tensor.data_location == 1 or tensor.ByteSize() > _MOST_BYTES or tensor.data_type == 8:
        return
    try:
        value = numpy_helper.to_array(tensor)
    except Exception:  # values were taken out, or do not fit the shape
        return
    if value.size <= _MOST_ELEMENTS:
        known[name] = value


def _shape(info: Any) -> list[int] | None:
    kind = info.type.tensor_type
    if not info.type.HasField("tensor_type") or not kind.HasField("shape"):
        return None
    dims = [dim.dim_value for dim in kind.shape.dim if dim.HasField("dim_value")]
    return dims if len(dims) == len(kind.shape.dim) else None


def _replace(node: Any, value: Array) -> None:
    del node.input[:]
    del node.attribute[:]
    node.op_type, node.domain = "Constant", ""
    node.attribute.append(onnx.helper.make_attribute("value", numpy_helper.from_array(value)))


def _value(node: Any, known: dict[str, Array], shapes: dict[str, list[int]]) -> Array | None:
    attributes = {each.name: each for each in node.attribute}
    if node.op_type in ("Shape", "Size") and node.input and node.input[0] in shapes:
        dims = np.array(shapes[node.input[0]], np.int64)
        if node.op_type == "Size":
            return np.array(np.prod(dims), np.int64)
        start, end = _integer(attributes, "start", 0), _integer(attributes, "end", len(dims))
        return dims[start:end]
    rule = _RULES.get(node.op_type)
    if rule is None or not node.input or not node.input[0]:
        return None
    values = [known.get(name) if name else None for name in node.input]
    if any(value is None for value, name in zip(values, node.input, strict=True) if name):
        return None
    work = 1
    for value in values:
        work *= max(1, 1 if value is None else value.size)
    if work > _MOST_WORK:
        return None
    try:
        with np.errstate(all="ignore"):
            return np.asarray(rule(values, attributes))
    except Exception:  # what is not valid has no value
        return None


def _integer(attributes: dict[str, Any], name: str, default: int) -> int:
    return int(attributes[name].i) if name in attributes else default


def _axes(values: Sequence[Any], attributes: dict[str, Any]) -> tuple[int, ...] | None:
    """Axes of an op: an attribute in old versions, an input in new ones."""
    if len(values) > 1 and values[1] is not None:
        return tuple(int(axis) for axis in values[1].reshape(-1))
    return tuple(attributes["axes"].ints) if "axes" in attributes else None


def _cast(values: Sequence[Any], attributes: dict[str, Any]) -> Array:
    dtype = onnx.helper.tensor_dtype_to_np_dtype(attributes["to"].i)
    return np.asarray(values[0].astype(dtype))


def _unsqueeze(values: Sequence[Any], attributes: dict[str, Any]) -> Array:
    return np.expand_dims(values[0], _axes(values, attributes) or ())


def _reshape(values: Sequence[Any], attributes: dict[str, Any]) -> Array:
    dims = [
        values[0].shape[place]
        if dim == 0 and not _integer(attributes, "allowzero", 0)
        else int(dim)
        for place, dim in enumerate(values[1])
    ]
    return np.asarray(values[0].reshape(dims))


def _slice(values: Sequence[Any], attributes: dict[str, Any]) -> Array:
    value = values[0]
    if "starts" in attributes:
        starts, ends = attributes["starts"].ints, attributes["ends"].ints
        axes = attributes["axes"].ints if "axes" in attributes else range(len(starts))
        steps: Any = [1] * len(starts)
    else:
        starts, ends = values[1], values[2]
        axes = values[3] if len(values) > 3 and values[3] is not None else range(len(starts))
        steps = values[4] if len(values) > 4 and values[4] is not None else [1] * len(starts)
    index = [slice(None)] * value.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        # With a negative step an end far below zero means: through the first element.
        stop = None if step < 0 and end < -value.shape[axis] else int(end)
        index[int(axis)] = slice(int(start), stop, int(step))
    return np.asarray(value[tuple(index)])


def _divide(values: Sequence[Any], attributes: dict[str, Any]) -> Array:
    first, second = values
    if np.issubdtype(first.dtype, np.integer):
        return np.asarray(np.trunc(first / second).astype(first.dtype))
    return np.asarray(first / second)


def _range(values: Sequence[Any], attributes: dict[str, Any]) -> Array:
    start, limit, step = (float(value.reshape(()).item()) for value in values)
    if abs(limit - start) > _MOST_ELEMENTS * abs(step):
        raise ValueError
    return np.arange(start, limit, step).astype(values[0].dtype)


def _constant_of_shape(values: Sequence[Any], attributes: dict[str, Any]) -> Array:
    dims = [int(dim) for dim in values[0]]
    count = 1
    for dim in dims:
        count *= dim
    if count > _MOST_ELEMENTS:
        raise ValueError
    fill = (
        numpy_helper.to_array(attributes["value"].t) if "value" in attributes else np.zeros(1, "f4")
    )
    return np.full(dims, fill.reshape(-1)[0])


def _reduced(function: Callable[..., Any]) -> Callable[[Sequence[Any], dict[str, Any]], Array]:
    def rule(values: Sequence[Any], attributes: dict[str, Any]) -> Array:
        keep = bool(_integer(attributes, "keepdims", 1))
        return np.asarray(function(values[0], axis=_axes(values, attributes), keepdims=keep))

    return rule


def _plain(function: Callable[..., Any]) -> Callable[[Sequence[Any], dict[str, Any]], Array]:
    return lambda values, attributes: np.asarray(function(*values))


def _many(function: Callable[..., Any]) -> Callable[[Sequence[Any], dict[str, Any]], Array]:
    def rule(values: Sequence[Any], attributes: dict[str, Any]) -> Array:
        result = values[0]
        for value in values[1:]:
            result = function(result, value)
        return np.asarray(result)

    return rule


def _concat(values: Sequence[Any], attributes: dict[str, Any]) -> Array:
    return np.concatenate(values, axis=_integer(attributes, "axis", 0))


_BY_NUMPY: dict[str, Callable[..., Any]] = {
    "Abs": np.abs,
    "Add": np.add,
    "And": np.logical_and,
    "Ceil": np.ceil,
    "Equal": np.equal,
    "Floor": np.floor,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "Mul": np.multiply,
    "Neg": np.negative,
    "Not": np.logical_not,
    "Or": np.logical_or,
    "Sqrt": np.sqrt,
    "Sub": np.subtract,
    "Where": np.where,
}
_RULES: dict[str, Callable[[Sequence[Any], dict[str, Any]], Array]] = {
    "Cast": _cast,
    "Concat": _concat,
    "ConstantOfShape": _constant_of_shape,
    "Div": _divide,
    "Gather": lambda v, a: np.asarray(np.take(v[0], v[1], axis=_integer(a, "axis", 0))),
    "Range": _range,
    "Reshape": _reshape,
    "Slice": _slice,
    "Squeeze": lambda v, a: np.squeeze(v[0], _axes(v, a)),
    "Unsqueeze": _unsqueeze,
    "Identity": lambda v, a: v[0],
    "Max": _many(np.maximum),
    "Min": _many(np.minimum),
    "Sum": _many(np.add),
    "ReduceMax": _reduced(np.max),
    "ReduceMin": _reduced(np.min),
    "ReduceProd": _reduced(np.prod),
    "ReduceSum": _reduced(np.sum),
    **{name: _plain(function) for name, function in _BY_NUMPY.items()},
}

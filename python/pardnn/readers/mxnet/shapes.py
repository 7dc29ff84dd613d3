"""Shapes of what MXNet's operators make, and of the parameters that they read.

The layout is batch, channels, then space (NCHW); outputs of another one have no known shape.
A rule gets the tensors that an op reads, None for what is not known, and answers the outputs, and
the shapes of parameters by the number of the input.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

from pardnn.readers.mxnet.symbol import integer, integers, is_set
from pardnn.readers.tensors import Dims, Tensor

Attributes = Mapping[str, str]
Answer = tuple[list[Tensor], dict[int, Dims]]
Rule = Callable[[Attributes, list[Tensor]], Answer]

FLOAT_BITS = 32
# Numbers of MXNet's types of elements: float32, float64, float16, uint8, int32, int8, int64.
BITS = {0: 32, 1: 64, 2: 16, 3: 8, 4: 32, 5: 8, 6: 64}
_SMALL = Tensor(FLOAT_BITS, (1,))  # a minimum or a maximum of quantized values


def infer(op: str, attributes: Attributes, inputs: list[Tensor]) -> Answer | None:
    """Outputs of an op, and shapes of its parameters; None for an op that has no rule."""
    rule = _RULES.get(op)
    return None if rule is None else rule(attributes, inputs)


def _dims(inputs: list[Tensor], number: int = 0) -> Dims | None:
    return inputs[number].dims if len(inputs) > number else None


def _bits(inputs: list[Tensor]) -> int | None:
    return inputs[0].bits if inputs else None


def _like(attributes: Attributes, inputs: list[Tensor]) -> Answer:
    return [inputs[0] if inputs else Tensor()], {}


def _windows(
    size: int | None, kernel: int, stride: int, pad: int, dilate: int, rounds_up: bool
) -> int | None:
    """How often a window fits into one dimension."""
    if size is None or stride < 1:
        return None
    free = size + 2 * pad - (dilate * (kernel - 1) + 1)
    if free < 0:
        return None
    return (free + (stride - 1 if rounds_up else 0)) // stride + 1


def _space(attributes: Attributes, dims: Dims, rounds_up: bool = False) -> Dims | None:
    """Dimensions of space behind a window that slides over them."""
    kernel = integers(attributes.get("kernel")) or ()
    space = dims[2:]
    if len(kernel) != len(space) or attributes.get("layout", "NC")[:2] != "NC":
        return None
    ones, zeros = (1,) * len(kernel), (0,) * len(kernel)
    stride = integers(attributes.get("stride")) or ones
    pad = integers(attributes.get("pad")) or zeros
    dilate = integers(attributes.get("dilate")) or ones
    if not len(stride) == len(pad) == len(dilate) == len(kernel):
        return None
    return tuple(
        _windows(*each, rounds_up) for each in zip(space, kernel, stride, pad, dilate, strict=True)
    )


def _convolution(attributes: Attributes, inputs: list[Tensor]) -> Answer:
    filters, groups = integer(attributes, "num_filter", 0), integer(attributes, "num_group", 1)
    dims = _dims(inputs)
    if dims is None or len(dims) < 3 or filters < 1 or groups < 1:
        return [Tensor(_bits(inputs))], {}
    channels = None if dims[1] is None else dims[1] // groups
    kernel = integers(attributes.get("kernel")) or ()
    space = _space(attributes, dims)
    made = None if space is None else (dims[0], filters, *space)
    return [Tensor(_bits(inputs), made)], {1: (filters, channels, *kernel), 2: (filters,)}


def _deconvolution(attributes: Attributes, inputs: list[Tensor]) -> Answer:
    filters, groups = integer(attributes, "num_filter", 0), integer(attributes, "num_group", 1)
    dims = _dims(inputs)
    kernel = integers(attributes.get("kernel")) or ()
    if dims is None or len(dims) != len(kernel) + 2 or filters < 1 or groups < 1:
        return [Tensor(_bits(inputs))], {}
    stride = integers(attributes.get("stride")) or (1,) * len(kernel)
    pad = integers(attributes.get("pad")) or (0,) * len(kernel)
    adj = integers(attributes.get("adj")) or (0,) * len(kernel)
    if not len(stride) == len(pad) == len(adj) == len(kernel) or "target_shape" in attributes:
        return [Tensor(_bits(inputs))], {}
    space = [
        None if size is None else max(0, (size - 1) * step + width - 2 * edge + more)
        for size, width, step, edge, more in zip(dims[2:], kernel, stride, pad, adj, strict=True)
    ]
    weight = (dims[1], filters // groups, *kernel)
    return [Tensor(_bits(inputs), (dims[0], filters, *space))], {1: weight, 2: (filters,)}


def _fully_connected(attributes: Attributes, inputs: list[Tensor]) -> Answer:
    hidden, dims = integer(attributes, "num_hidden", 0), _dims(inputs)
    if dims is None or not dims or hidden < 1:
        return [Tensor(_bits(inputs))], {}
    is_flat = attributes.get("flatten", "True") in ("True", "true", "1")
    rest = _product(dims[1:]) if is_flat else dims[-1]
    made = (dims[0], hidden) if is_flat else (*dims[:-1], hidden)
    return [Tensor(_bits(inputs), made)], {1: (hidden, rest), 2: (hidden,)}


def _pooling(attributes: Attributes, inputs: list[Tensor]) -> Answer:
    dims = _dims(inputs)
    if dims is None or len(dims) < 3:
        return [Tensor(_bits(inputs))], {}
    if is_set(attributes, "global_pool"):
        return [Tensor(_bits(inputs), (*dims[:2], *(1 for _ in dims[2:])))], {}
    space = _space(attributes, dims, attributes.get("pooling_convention") == "full")
    made = None if space is None else (*dims[:2], *space)
    return [Tensor(_bits(inputs), made)], {}


def _batch_norm(attributes: Attributes, inputs: list[Tensor]) -> Answer:
    dims, axis = _dims(inputs), integer(attributes, "axis", 1)
    if dims is None or not -len(dims) <= axis < len(dims):
        return _like(attributes, inputs)
    channels: Dims = (dims[axis],)
    return [inputs[0]], dict.fromkeys((1, 2, 3, 4), channels)


def _concat(attributes: Attributes, inputs: list[Tensor]) -> Answer:
    dims = _dims(inputs)
    axis = integer(attributes, "dim", integer(attributes, "axis", 1))
    if dims is None or not -len(dims) <= axis < len(dims):
        return [Tensor(_bits(inputs))], {}
    parts = [
        each.dims[axis] if each.dims and len(each.dims) == len(dims) else None for each in inputs
    ]
    known = [part for part in parts if part is not None]
    total = sum(known) if len(known) == len(parts) else None
    made = list(dims)
    made[axis] = total
    return [Tensor(_bits(inputs), tuple(made))], {}


def _flatten(attributes: Attributes, inputs: list[Tensor]) -> Answer:
    dims = _dims(inputs)
    made = None if not dims else (dims[0], _product(dims[1:]))
    return [Tensor(_bits(inputs), made)], {}


def _softmax_output(attributes: Attributes, inputs: list[Tensor]) -> Answer:
    dims = _dims(inputs)
    is_spread = is_set(attributes, "multi_output") or is_set(attributes, "preserve_shape")
    return [inputs[0] if inputs else Tensor()], {} if is_spread or not dims else {1: dims[:1]}


def _broadcast(attributes: Attributes, inputs: list[Tensor]) -> Answer:
    """Ops of two tensors, of which one may be repeated to fit the other."""
    first, second = _dims(inputs), _dims(inputs, 1)
    if first is None or second is None or len(first) != len(second):
        return [Tensor(_bits(inputs))], {}
    pairs = zip(first, second, strict=True)
    made = tuple(b if a == 1 else a if b == 1 or a == b else None for a, b in pairs)
    return [Tensor(_bits(inputs), made)], {}


def _reshape(attributes: Attributes, inputs: list[Tensor]) -> Answer:
    wanted = integers(attributes.get("shape") or attributes.get("target_shape"))
    if wanted is None or not inputs or any(dim < -1 for dim in wanted):
        return [Tensor(_bits(inputs))], {}
    dims = inputs[0].dims
    made: list[int | None] = [
        dim if dim > 0 else dims[place] if dim == 0 and dims and place < len(dims) else None
        for place, dim in enumerate(wanted)
    ]
    rest, elements = [dim for dim in made if dim is not None], inputs[0].elements
    if -1 in wanted and len(rest) == len(made) - 1 and elements is not None and prod(rest) > 0:
        made[wanted.index(-1)] = elements // prod(rest)
    return [Tensor(_bits(inputs), tuple(made))], {}


def _quantize(attributes: Attributes, inputs: list[Tensor]) -> Answer:
    return [Tensor(8, _dims(inputs)), _SMALL, _SMALL], {}


def _dequantize(attributes: Attributes, inputs: list[Tensor]) -> Answer:
    return [Tensor(FLOAT_BITS, _dims(inputs))], {}


def _embedding(attributes: Attributes, inputs: list[Tensor]) -> Answer:
    rows, width = integer(attributes, "input_dim", 0), integer(attributes, "output_dim", 0)
    dims = _dims(inputs)
    made = None if dims is None or width < 1 else (*dims, width)
    return [Tensor(FLOAT_BITS, made)], {1: (rows, width)} if rows > 0 and width > 0 else {}


def _leaky(attributes: Attributes, inputs: list[Tensor]) -> Answer:
    dims = _dims(inputs)
    parameters: dict[int, Dims] = {}
    if attributes.get("act_type") == "prelu" and dims and len(dims) > 1:
        parameters = {1: (dims[1],)}
    return [inputs[0] if inputs else Tensor()], parameters


def _product(dims: Dims) -> int | None:
    known = [dim for dim in dims if dim is not None]
    return prod(known) if len(known) == len(dims) else None


_SAME = (
    *("elemwise_add", "_plus", "_Plus", "_Minus", "_Mul", "_Div", "elemwise_mul", "elemwise_sub"),
    *("elemwise_div", "ElementWiseSum", "add_n", "_add", "Activation", "Dropout", "LRN", "relu"),
    *("sigmoid", "tanh", "exp", "log", "sqrt", "square", "softmax", "log_softmax", "clip"),
    *("SoftmaxActivation", "BlockGrad", "identity", "_copy", "_plus_scalar", "_mul_scalar"),
    *("_minus_scalar", "_div_scalar", "MakeLoss", "InstanceNorm"),
)
_RULES: dict[str, Rule] = {
    **dict.fromkeys(_SAME, _like),
    **dict.fromkeys(("Convolution", "Convolution_v1"), _convolution),
    "Deconvolution": _deconvolution,
    "FullyConnected": _fully_connected,
    **dict.fromkeys(("Pooling", "Pooling_v1"), _pooling),
    **dict.fromkeys(("BatchNorm", "BatchNorm_v1", "CuDNNBatchNorm"), _batch_norm),
    **dict.fromkeys(("Concat", "concat"), _concat),
    **dict.fromkeys(("Flatten", "flatten"), _flatten),
    **dict.fromkeys(("Reshape", "reshape"), _reshape),
    **dict.fromkeys(("SoftmaxOutput", "Softmax"), _softmax_output),
    **dict.fromkeys(
        ("broadcast_add", "broadcast_mul", "broadcast_sub", "broadcast_div"), _broadcast
    ),
    "LeakyReLU": _leaky,
    "Embedding": _embedding,
    **dict.fromkeys(("_contrib_quantize_v2", "_contrib_quantize", "quantize"), _quantize),
    **dict.fromkeys(("_contrib_dequantize", "dequantize"), _dequantize),
}

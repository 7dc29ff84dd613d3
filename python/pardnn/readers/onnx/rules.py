"""What is known of types of ops: aliases, buffers taken over, arithmetic, shapes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from pardnn.readers.tensors import Dims, Tensor

# Another shape of the same bytes.
VIEWS = {"Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity"}
# Element by element: what they make may take the place of what they read.
ELEMENTWISE = {
    *("Abs", "Add", "And", "BiasGelu", "Ceil", "Clip", "Cos", "Div", "Elu", "Erf", "Exp"),
    *("FastGelu", "Floor", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Log", "Mul", "Neg"),
    *("Not", "Or", "PRelu", "Pow", "QuickGelu", "Reciprocal", "Relu", "Round", "Selu", "Sigmoid"),
    *("Sign", "Sin", "Softplus", "Softsign", "Sqrt", "Sub", "Sum", "Tanh", "ThresholdedRelu"),
    *("Where", "Mish", "Celu", "Xor", "Mod", "ReluGrad", "GeluGrad", "FastGeluGrad"),
}
IN_PLACE = {"InPlaceAccumulator", "InPlaceAccumulatorV2"}


def flops(node: Any, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> int | None:
    """Arithmetic of an op, None where it or a shape is unknown."""
    if not outputs or outputs[0].elements is None:
        return None
    made = outputs[0].elements
    op_type = node.op_type
    if op_type in ELEMENTWISE:
        return made
    if len(inputs) < 2 or inputs[0].dims is None or inputs[1].dims is None:
        return None
    first, second = inputs[0].dims, inputs[1].dims
    depth: int | None = None
    if op_type in ("MatMul", "FusedMatMul", "MatMulInteger", "Gemm", "FusedGemm") and first:
        is_transposed = _attribute(node, "transA", 0)
        depth = first[-2 if is_transposed and len(first) > 1 else -1]
    elif op_type in ("Conv", "FusedConv", "ConvInteger") and len(second) > 2:
        depth = _product(second[1:])
    elif op_type == "ConvTranspose" and len(second) > 2 and inputs[0].elements is not None:
        made, depth = inputs[0].elements, _product(second[1:])
    return None if depth is None else 2 * made * depth


def _attribute(node: Any, name: str, default: int) -> int:
    return next((int(each.i) for each in node.attribute if each.name == name), default)


def _product(dims: Dims) -> int | None:
    known = [dim for dim in dims if dim is not None]
    return prod(known) if len(known) == len(dims) else None

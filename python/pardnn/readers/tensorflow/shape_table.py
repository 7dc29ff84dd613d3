"""Which rule tells the shapes that an op type gives."""

from __future__ import annotations

from pardnn.readers.tensorflow import shape_rules as rules
from pardnn.readers.tensorflow.known import Known, Shape
from pardnn.readers.tensorflow.nodes import Node
from pardnn.readers.tensorflow.shape_rules import Rule


def shapes(node: Node, known: Known) -> list[Shape]:
    """Shapes of a node's outputs as far as its rule tells; empty without a rule."""
    rule = _RULES.get(node.op)
    if rule is None or not node.inputs:
        return []
    try:
        return [_sane(shape) for shape in rule(node, known)]
    except (IndexError, ValueError, TypeError, OverflowError, ZeroDivisionError):
        return []  # inputs that the op would refuse tell nothing about its outputs


def _sane(shape: Shape) -> Shape:
    return None if shape is None else tuple(None if s is None or s < 0 else int(s) for s in shape)


def _table() -> dict[str, Rule]:
    names = """
        Abs Acos Asin Atan Ceil CheckNumerics ClipByValue Cos Cosh Cumsum DebugIdentityV2 Digamma
        Elu EluGrad EnsureShape Enter Erf Erfc Exit Exp Expm1 Floor Identity Inv InvGrad Invert
        IsFinite IsInf IsNan L2Normalize LRN LeakyRelu Lgamma Log Log1p LogSoftmax LogicalNot
        LoopCond Neg NextIteration OnesLike PlaceholderWithDefault PreventGradient Print
        QuantizeAndDequantizeV2 Reciprocal RefEnter RefExit RefIdentity RefNextIteration Relu Relu6
        ReverseSequence ReverseV2 Rint Round Rsqrt Selu Sigmoid Sign Sin Sinh Snapshot Softmax
        Softplus Softsign Sqrt Square StopGradient Tan Tanh ZerosLike BiasAdd BiasAddV1 Cast
        MatrixBandPart StackPushV2 StackPush Assign AssignAdd AssignSub MaxPoolGrad Bitcast
        """
    table: dict[str, Rule] = dict.fromkeys(names.split(), rules.of_like(0))
    binary = """
        Add AddV2 Sub Mul Div RealDiv DivNoNan FloorDiv FloorMod Mod TruncateDiv Pow Maximum Minimum
        SquaredDifference Atan2 Xdivy Xlogy MulNoNan Less LessEqual Greater GreaterEqual Equal
        NotEqual LogicalAnd LogicalOr BitwiseAnd BitwiseOr SelectV2 SigmoidGrad TanhGrad ReluGrad
        Relu6Grad RsqrtGrad SqrtGrad SoftplusGrad SoftsignGrad ReciprocalGrad LeakyReluGrad SeluGrad
        """
    table |= dict.fromkeys(binary.split(), rules.of_broadcast)
    table |= dict.fromkeys(("Sum", "Mean", "Max", "Min", "Prod", "Any", "All"), rules.of_reduction)
    table |= dict.fromkeys(
        ("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"), rules.of_matmul
    )
    table |= dict.fromkeys(("Conv2D", "Conv3D", "DepthwiseConv2dNative"), rules.of_convolution)
    table |= dict.fromkeys(("MaxPool", "AvgPool", "MaxPool3D", "AvgPool3D"), rules.of_pool)
    table |= dict.fromkeys(
        ("Conv2DBackpropInput", "AvgPoolGrad", "DepthwiseConv2dNativeBackpropInput"),
        rules.of_sizes_of(0),
    )
    table |= dict.fromkeys(
        ("Conv2DBackpropFilter", "DepthwiseConv2dNativeBackpropFilter", "BroadcastTo"),
        rules.of_sizes_of(1),
    )
    table |= dict.fromkeys(
        ("Fill", "RandomUniform", "RandomStandardNormal", "TruncatedNormal", "RandomUniformInt"),
        rules.of_sizes_of(0),
    )
    table |= dict.fromkeys(
        ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"), rules.of_batch_norm
    )
    table |= dict.fromkeys(
        ("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3"),
        rules.of_batch_norm_grad,
    )
    table |= dict.fromkeys(
        ("SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits"),
        rules.of_cross_entropy,
    )
    table |= dict.fromkeys(("ArgMax", "ArgMin"), rules.of_arg_max)
    table |= dict.fromkeys(("Shape", "ShapeN"), rules.of_shape_of)
    table |= dict.fromkeys(
        ("Size", "Rank", "L2Loss", "TensorArraySizeV3", "IsVariableInitialized", "ScalarSummary"),
        rules.of_scalar,
    )
    table |= dict.fromkeys(("Merge", "RefMerge"), rules.of_through_merge)
    table |= dict.fromkeys(("Switch", "RefSwitch"), rules.of_through_switch)
    table |= dict.fromkeys(("Concat", "ConcatV2"), rules.of_concat)
    table |= dict.fromkeys(("Gather", "GatherV2", "ResourceGather"), rules.of_gather)
    table |= dict.fromkeys(("Pad", "PadV2", "MirrorPad"), rules.of_pad)
    table |= dict.fromkeys(
        ("TensorArrayWriteV3", "TensorArrayScatterV3", "TensorArraySplitV3"), rules.of_scalar
    )
    return table | {
        "AddN": rules.of_any_known,
        "BiasAddGrad": rules.of_bias_grad,
        "BroadcastGradientArgs": rules.of_reduced,
        "ExpandDims": rules.of_expand,
        "IdentityN": rules.of_identities,
        "OneHot": rules.of_one_hot,
        "Pack": rules.of_pack,
        "Range": rules.of_range,
        "Reshape": rules.of_reshape,
        "Select": rules.of_like(1),
        "Slice": rules.of_slice,
        "Split": rules.of_split,
        "SplitV": rules.of_split_v,
        "Squeeze": rules.of_squeeze,
        "StridedSlice": rules.of_strided_slice,
        "Tile": rules.of_tile,
        "Transpose": rules.of_transpose,
        "Unpack": rules.of_unpack,
        "UnsortedSegmentSum": rules.of_segments,
    }


_RULES = _table()

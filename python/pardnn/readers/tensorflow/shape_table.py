"""Which rule tells the shapes that an op type gives."""

from __future__ import annotations

from pardnn.readers.tensorflow import shape_rules as rules
from pardnn.readers.tensorflow.known import Known, Shape
from pardnn.readers.tensorflow.nodes import Node
from pardnn.readers.tensorflow.shape_rules import Rule

_NAMES: tuple[tuple[Rule, str], ...] = (
    (
        rules.of_like(0),
        """
            Abs Acos Asin Assign AssignAdd AssignSub Atan BiasAdd BiasAddV1 Bitcast Cast
            Ceil CheckNumerics ClipByValue Cos Cosh Cumsum DebugIdentityV2 Digamma Elu
            EluGrad EnsureShape Enter Erf Erfc Exit Exp Expm1 Floor Identity Inv InvGrad
            Invert IsFinite IsInf IsNan L2Normalize LRN LeakyRelu Lgamma Log Log1p
            LogSoftmax LogicalNot LoopCond MatrixBandPart MaxPoolGrad Neg NextIteration
            OnesLike PlaceholderWithDefault PreventGradient Print
            QuantizeAndDequantizeV2 Reciprocal RefEnter RefExit RefIdentity
            RefNextIteration Relu Relu6 ReverseSequence ReverseV2 Rint Round Rsqrt Selu
            Sigmoid Sign Sin Sinh Snapshot Softmax Softplus Softsign Sqrt Square
            StopGradient Tan Tanh ZerosLike
        """,
    ),
    (
        rules.of_broadcast,
        """
            Add AddV2 Atan2 BitwiseAnd BitwiseOr Div DivNoNan Equal FloorDiv FloorMod
            Greater GreaterEqual LeakyReluGrad Less LessEqual LogicalAnd LogicalOr
            Maximum Minimum Mod Mul MulNoNan NotEqual Pow RealDiv ReciprocalGrad
            Relu6Grad ReluGrad RsqrtGrad SelectV2 SeluGrad SigmoidGrad SoftplusGrad
            SoftsignGrad SqrtGrad SquaredDifference Sub TanhGrad TruncateDiv Xdivy Xlogy
        """,
    ),
    (rules.of_like(1), "Select StackPush StackPushV2"),
    (rules.of_reduction, "All Any Max Mean Min Prod Sum"),
    (rules.of_matmul, "BatchMatMul BatchMatMulV2 BatchMatMulV3 MatMul"),
    (rules.of_convolution, "Conv2D Conv3D DepthwiseConv2dNative"),
    (rules.of_pool, "AvgPool AvgPool3D MaxPool MaxPool3D"),
    (
        rules.of_sizes_of(0),
        """
            AvgPoolGrad Conv2DBackpropInput DepthwiseConv2dNativeBackpropInput Fill
            RandomStandardNormal RandomUniform RandomUniformInt TruncatedNormal
        """,
    ),
    (
        rules.of_sizes_of(1),
        """
            BroadcastTo Conv2DBackpropFilter DepthwiseConv2dNativeBackpropFilter
        """,
    ),
    (rules.of_batch_norm, "FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3"),
    (rules.of_batch_norm_grad, "FusedBatchNormGrad FusedBatchNormGradV2 FusedBatchNormGradV3"),
    (
        rules.of_cross_entropy,
        """
            SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits
        """,
    ),
    (rules.of_arg_max, "ArgMax ArgMin"),
    (rules.of_shape_of, "Shape ShapeN"),
    (
        rules.of_scalar,
        """
            IsVariableInitialized L2Loss Rank ScalarSummary Size TensorArrayScatterV3
            TensorArraySizeV3 TensorArraySplitV3 TensorArrayWriteV3
        """,
    ),
    (rules.of_through_merge, "Merge RefMerge"),
    (rules.of_through_switch, "RefSwitch Switch"),
    (rules.of_concat, "Concat ConcatV2"),
    (rules.of_gather, "Gather GatherV2 ResourceGather"),
    (rules.of_pad, "MirrorPad Pad PadV2"),
    (rules.of_any_known, "AddN"),
    (rules.of_bias_grad, "BiasAddGrad"),
    (rules.of_reduced, "BroadcastGradientArgs"),
    (rules.of_expand, "ExpandDims"),
    (rules.of_identities, "IdentityN"),
    (rules.of_one_hot, "OneHot"),
    (rules.of_pack, "Pack"),
    (rules.of_range, "Range"),
    (rules.of_reshape, "Reshape"),
    (rules.of_slice, "Slice"),
    (rules.of_split, "Split"),
    (rules.of_split_v, "SplitV"),
    (rules.of_squeeze, "Squeeze"),
    (rules.of_strided_slice, "StridedSlice"),
    (rules.of_tile, "Tile"),
    (rules.of_transpose, "Transpose"),
    (rules.of_unpack, "Unpack"),
    (rules.of_segments, "UnsortedSegmentSum"),
)
_RULES = {name: rule for rule, names in _NAMES for name in names.split()}


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

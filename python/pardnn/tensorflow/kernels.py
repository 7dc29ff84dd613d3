"""What TensorFlow's kernels do with their inputs' buffers, by op type; imports no TensorFlow.

The tables state what the kernels of TensorFlow 2.21 (oneDNN on) were measured to do. An op that is
in no table gets fresh buffers, which is right for most and never too little.
"""

from __future__ import annotations

# Output n is input n under another shape or name.
ALIAS = frozenset(
    """
    Bitcast CheckNumerics CheckNumericsV2 DebugGradientIdentity DebugIdentityV2 EnsureShape
    ExpandDims GuaranteeConst Identity IdentityN PlaceholderWithDefault PreventGradient Print
    Reshape Squeeze StopGradient
    """.split()  # noqa: SIM905
)

_UNARY = """
    Abs Acos Acosh Asin Asinh Atan Atanh BesselI0e BesselI1e Ceil ClipByValue Cos Cosh Digamma
    Elu Erf Erfc Erfinv Exp Expm1 Floor Inv Invert LeakyRelu Lgamma Log Log1p LogSoftmax LogicalNot
    MatrixBandPart Ndtri Neg OnesLike Reciprocal Relu Relu6 Rint Round Rsqrt Selu Sigmoid Sign Sin
    Sinh Snapshot Softmax Softplus Softsign Sqrt Square Tan Tanh ZerosLike BiasAdd BiasAddV1
    """.split()  # noqa: SIM905
_BINARY = """
    Add AddN AddV2 Atan2 BitwiseAnd BitwiseOr BitwiseXor Div DivNoNan EluGrad FloorDiv
    FloorMod InvGrad LeakyReluGrad LogicalAnd LogicalOr Maximum Minimum Mod Mul MulNoNan Pow RealDiv
    ReciprocalGrad Relu6Grad ReluGrad RsqrtGrad SeluGrad SigmoidGrad SoftplusGrad SoftsignGrad
    SqrtGrad SquaredDifference Sub TanhGrad TruncateDiv TruncateMod Xdivy Xlog1py Xlogy
    """.split()  # noqa: SIM905

# Output number -> inputs whose buffer the kernel takes over when nobody else needs it, in the
# order in which it tries them.
TAKES_OVER: dict[str, dict[int, tuple[int, ...]]] = {
    **{kind: {0: (0,)} for kind in _UNARY},
    **{kind: {0: (0, 1)} for kind in _BINARY},
    "Select": {0: (1, 2)},
    "SelectV2": {0: (1, 2)},
    "SoftmaxCrossEntropyWithLogits": {1: (0,)},
    "SparseSoftmaxCrossEntropyWithLogits": {1: (0,)},
}

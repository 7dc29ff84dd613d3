"""What TensorFlow's op types do, as far as a graph file's reader must know.

Types that are in no table get fresh buffers and touch no variable.
"""

from __future__ import annotations

CALLS = frozenset(
    """
    PartitionedCall StatefulPartitionedCall While StatelessWhile If StatelessIf Case StatelessCase
    SymbolicGradient RemoteCall For MapDefun
    """.split()  # noqa: SIM905
)
INLINED = frozenset({"PartitionedCall", "StatefulPartitionedCall"})
WHILES = frozenset({"While", "StatelessWhile", "For"})

FRAME_OPS = frozenset(
    f"{ref}{kind}"
    for ref in ("", "Ref")
    for kind in ("Enter", "Exit", "NextIteration", "Switch", "Merge", "LoopCond")
)
ENTERS = frozenset({"Enter", "RefEnter"})
EXITS = frozenset({"Exit", "RefExit"})
BACK_EDGES = frozenset({"NextIteration", "RefNextIteration"})

VARIABLES = frozenset({"Variable", "VariableV2", "VarHandleOp", "TemporaryVariable"})
PLACEHOLDERS = frozenset({"Placeholder", "PlaceholderV2", "_Arg"})

# Optimizer's update -> how many of its inputs, from the first, are variables that it modifies.
_STATES = {
    "GradientDescent": 1,
    "ProximalGradientDescent": 1,
    "Momentum": 2,
    "KerasMomentum": 2,
    "Adagrad": 2,
    "AdagradV2": 2,
    "ProximalAdagrad": 2,
    "AddSign": 2,
    "PowerSign": 2,
    "RMSProp": 3,
    "CenteredRMSProp": 4,
    "Adam": 3,
    "AdamWithAmsgrad": 4,
    "AdaMax": 3,
    "Adadelta": 3,
    "Ftrl": 3,
    "FtrlV2": 3,
    "AdagradDA": 3,
}
OPTIMIZERS = {
    f"{prefix}Apply{name}": states
    for name, states in _STATES.items()
    for prefix in ("", "Sparse", "Resource", "ResourceSparse")
}
# Other ops whose first input is a variable that they write.
ASSIGNS = frozenset({"Assign", "AssignVariableOp"})
_WRITES = frozenset(
    """
    Assign AssignAdd AssignSub AssignVariableOp AssignAddVariableOp AssignSubVariableOp CountUpTo
    ResourceCountUpTo StridedSliceAssign ResourceStridedSliceAssign AccumulateNV2Assign
    DestroyTemporaryVariable
    """.split()  # noqa: SIM905
)
_SCATTERS = ("Scatter", "ResourceScatter")
_PURE_SCATTERS = frozenset({"ScatterNd", "ScatterNdNonAliasingAdd"})
# Ops that pass a reference on.
REF_PASSES = frozenset(
    {"RefSwitch", "RefIdentity", "RefEnter", "RefMerge", "RefExit", "RefNextIteration", "RefSelect"}
)
# Ops on a variable that only look at it.
LOOKS = frozenset(
    {"IsVariableInitialized", "VarIsInitializedOp", "VariableShape", "ResourceGather"}
    | {"ResourceGatherNd", "DisableCopyOnRead"}
)
READS = "ReadVariableOp"

SAVES = frozenset(
    """
    SaveV2 Save SaveSlices ShardedFilename MergeV2Checkpoints RestoreV2 Restore RestoreSlice
    ShardedFilespec
    """.split()  # noqa: SIM905
)
SUMMARIES = frozenset(
    """
    ScalarSummary HistogramSummary ImageSummary AudioSummary MergeSummary TensorSummary
    TensorSummaryV2
    """.split()  # noqa: SIM905
)
# What gives the batch of a step: bringing it to the devices is outside the step.
BATCHES = frozenset({"IteratorGetNext", "IteratorGetNextSync", "OneShotIterator"})

# Names of the outputs of ops that have several; functions refer to outputs by name.
OUTPUT_NAMES = {
    "FusedBatchNorm": ("y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2"),
    "FusedBatchNormGrad": (
        *("x_backprop", "scale_backprop", "offset_backprop"),
        *("reserve_space_3", "reserve_space_4"),
    ),
    "FusedBatchNormV3": (
        *("y", "batch_mean", "batch_variance"),
        *("reserve_space_1", "reserve_space_2", "reserve_space_3"),
    ),
    "FusedBatchNormGradV3": (
        *("x_backprop", "scale_backprop", "offset_backprop"),
        *("reserve_space_4", "reserve_space_5"),
    ),
    "Switch": ("output_false", "output_true"),
    "RefSwitch": ("output_false", "output_true"),
    "Merge": ("output", "value_index"),
    "RefMerge": ("output", "value_index"),
    "SoftmaxCrossEntropyWithLogits": ("loss", "backprop"),
    "SparseSoftmaxCrossEntropyWithLogits": ("loss", "backprop"),
    "BroadcastGradientArgs": ("r0", "r1"),
    "TensorArrayV3": ("handle", "flow"),
    "TensorArrayGradV3": ("grad_handle", "flow_out"),
    "TopKV2": ("values", "indices"),
    "TopK": ("values", "indices"),
    "Unique": ("y", "idx"),
    "UniqueV2": ("y", "idx"),
    "UniqueWithCounts": ("y", "idx", "count"),
    "MaxPoolWithArgmax": ("output", "argmax"),
    "TensorListPopBack": ("output_handle", "tensor"),
    "Moments": ("mean", "variance"),
    "Svd": ("s", "u", "v"),
    "Qr": ("q", "r"),
    "CudnnRNN": ("output", "output_h", "output_c", "reserve_space"),
    "CudnnRNNV2": ("output", "output_h", "output_c", "reserve_space", "host_reserved"),
    "CudnnRNNV3": ("output", "output_h", "output_c", "reserve_space", "host_reserved"),
    "LSTMBlockCell": ("i", "cs", "f", "o", "ci", "co", "h"),
    "BlockLSTM": ("i", "cs", "f", "o", "ci", "co", "h"),
    "BlockLSTMV2": ("i", "cs", "f", "o", "ci", "co", "h"),
    "TensorListConcatV2": ("tensor", "lengths"),
    "NonMaxSuppressionV5": ("selected_indices", "selected_scores", "valid_outputs"),
}
for _FusedV2, _Fused in (
    ("FusedBatchNormV2", "FusedBatchNorm"),
    ("FusedBatchNormGradV2", "FusedBatchNormGrad"),
):
    OUTPUT_NAMES[_FusedV2] = OUTPUT_NAMES[_Fused]


def written(op: str) -> int:
    """How many inputs of an op, from the first, are variables that it writes."""
    if op in OPTIMIZERS:
        return OPTIMIZERS[op]
    return int(op in _WRITES or (op.startswith(_SCATTERS) and op not in _PURE_SCATTERS))


def takes_reference(op: str) -> int:
    """How many inputs of an op, from the first, it takes as references to variables."""
    return max(written(op), int(op in REF_PASSES or op == "IsVariableInitialized"))

"""The element type of what a node gives, from its type and attributes."""

from __future__ import annotations

from pardnn.readers.tensorflow import types
from pardnn.readers.tensorflow.nodes import Node

_BOOLEANS = frozenset(
    """
    Less LessEqual Greater GreaterEqual Equal NotEqual LogicalAnd LogicalOr LogicalNot IsNan IsInf
    IsFinite LoopCond Any All IsVariableInitialized VarIsInitializedOp InTopK InTopKV2
    """.split()  # noqa: SIM905
)
_RESOURCES = frozenset(
    {"VarHandleOp", "StackV2", "IteratorV2", "Iterator", "HashTableV2", "MutableHashTableV2"}
)
_STRINGS = frozenset({"StringJoin", "ShardedFilename", "ReadFile", "ScalarSummary", "AsString"})
_TYPE_OF = {
    "Cast": "DstT",
    "Shape": "out_type",
    "ShapeN": "out_type",
    "Size": "out_type",
    "ArgMax": "output_type",
    "ArgMin": "output_type",
    "StackPopV2": "elem_type",
    "StackPop": "elem_type",
    "TensorListStack": "element_dtype",
    "TensorListGetItem": "element_dtype",
    "Bitcast": "type",
    "GatherV2": "Tparams",
    "Gather": "Tparams",
}
_LISTS = ("output_types", "Tout", "dtypes")
_LISTED = frozenset({"IdentityN", "While", "StatelessWhile", "For"})
_SECOND_INT32 = {"Merge": 1, "RefMerge": 1}
_INDEX_SECOND = frozenset({"TopKV2", "TopK", "Unique", "UniqueV2", "UniqueWithCounts"})
_TENSOR_ARRAYS = frozenset({"TensorArrayV3", "TensorArrayGradV3"})
_FLOWS = frozenset({"TensorArrayWriteV3", "TensorArrayScatterV3", "TensorArraySplitV3"})
_LIST_HANDLES = frozenset(
    """
    TensorListReserve EmptyTensorList TensorListFromTensor TensorListPushBack TensorListSetItem
    """.split()  # noqa: SIM905
)


def dtype(node: Node, number: int) -> int:
    """Element type of output `number`, 0 where it is not known."""
    op = node.op
    if op in _BOOLEANS:
        return types.BOOL
    if op in _RESOURCES or (op in _TENSOR_ARRAYS and number == 0):
        return types.RESOURCE
    if op in _LIST_HANDLES or (op == "TensorListPopBack" and number == 0):
        return types.VARIANT
    if op in _FLOWS or op in _TENSOR_ARRAYS:
        return types.FLOAT
    if op in _STRINGS:
        return types.STRING
    if op in ("Rank", "TensorArraySizeV3") or _SECOND_INT32.get(op) == number:
        return types.INT32
    if op in _TYPE_OF:
        found = node.dtype(_TYPE_OF[op])
        return found or (types.INT32 if op in ("Shape", "ShapeN", "Size") else types.INT64)
    if number and op in _INDEX_SECOND:
        return types.INT32
    if op.startswith("FusedBatchNorm") and number:
        return node.dtype("U") or node.dtype("T")
    return _attribute_type(node, number)


def _attribute_type(node: Node, number: int) -> int:
    for name in ("T",) if node.op in _LISTED else _LISTS:
        if name in node.attr and len(node.attr[name].list.type) > number:
            return types.plain(node.attr[name].list.type[number])
    for name in ("dtype", "T", "Tidx", "element_dtype"):
        if name in node.attr:
            return node.dtype(name)
    return 0

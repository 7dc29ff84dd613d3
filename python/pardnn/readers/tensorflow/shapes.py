"""Shapes, element types and small constant values of a graph's tensors, as far as the file tells.

Shapes come from `_output_shapes`, and from one sweep over the nodes in order that knows the usual
op types. What neither tells stays unknown: a size of None is never 0 or 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import pardnn
from pardnn.readers.tensorflow import dtypes, folding, shape_table, types
from pardnn.readers.tensorflow.known import Shape, Value
from pardnn.readers.tensorflow.nodes import Node, Nodes, Tensor
from pardnn.readers.tensorflow.optypes import BATCHES, OUTPUT_NAMES, PLACEHOLDERS, VARIABLES

# A handle to a resource, or the box around a list of tensors.
HANDLE_BYTES = 256
_MOST_BYTES = 2**62
# Values are worked out for tensors of at most this many elements: shapes, axes, indices.
_MOST_ELEMENTS = 1024
_NUMPY: dict[int, np.dtype[Any]] = {
    types.FLOAT: np.dtype("<f4"),
    types.INT32: np.dtype("<i4"),
    types.INT64: np.dtype("<i8"),
    types.BOOL: np.dtype("bool"),
}


@dataclass
class Bindings:
    """What the user says about shapes: `shapes` by node, `batch` for the first dimension.

    `old`: the graph is older than version 24, which made placeholders' shapes hold.
    """

    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    batch: int | None = None
    old: bool = False


class Shapes:
    """What is known about the tensors of `nodes`, whose names `order` lists with inputs first.

    `handles`: the variable that a tensor refers to. `given`: shapes of `_Arg` nodes.
    """

    def __init__(
        self,
        nodes: Nodes,
        order: Iterable[str],
        handles: Mapping[Tensor, str],
        bindings: Bindings,
        given: Mapping[str, Shape] | None = None,
    ) -> None:
        self.nodes, self._handles, self._bindings = nodes, handles, bindings
        self._given = given or {}
        self._shapes: dict[str, list[Shape]] = {}
        self._values: dict[Tensor, Value] = {}
        self._types: dict[Tensor, int] = {}
        self._sizes: dict[Tensor, int | None] = {}
        self.unbound: list[str] = []
        """Placeholders and batches of which some dimension is not known."""
        self._last = _last_read(nodes)
        for name in order:
            self._shapes[name] = self._infer(nodes[name])

    def shape(self, tensor: Tensor) -> Shape:
        """Dimensions, None for each unknown one; None where not even their number is known."""
        shapes = self._shapes.get(tensor[0], [])
        return shapes[tensor[1]] if tensor[1] < len(shapes) else None

    def value(self, tensor: Tensor) -> Value | None:
        """Elements of a small constant."""
        return self._values.get(tensor)

    def number(self, tensor: Tensor) -> float | None:
        """The one element of a constant."""
        value = self._values.get(tensor)
        return float(value.reshape(-1)[0]) if value is not None and value.size == 1 else None

    def outputs(self, name: str) -> int:
        """How many outputs a node has."""
        return len(self._shapes[name])

    def dtype(self, tensor: Tensor) -> int:
        """Number of the element type, 0 where it is not known."""
        found = self._types.get(tensor)
        if found is None:
            found = self._types[tensor] = dtypes.dtype(self.nodes[tensor[0]], tensor[1])
        return found

    def elements(self, tensor: Tensor) -> int | None:
        """How many elements, None where a dimension is not known."""
        shape = self.shape(tensor)
        if shape is None or any(size is None for size in shape):
            return None
        return math.prod(size for size in shape if size is not None)

    def size(self, tensor: Tensor) -> int | None:
        """Bytes, None where they are not known. Raises pardnn.Error beyond 2^62."""
        if tensor not in self._sizes:
            dtype = self.dtype(tensor)
            handle = dtype in types.HANDLES
            shape = self.shape(tensor)
            self._sizes[tensor] = HANDLE_BYTES if handle else bytes_of(shape, dtype, tensor[0])
        return self._sizes[tensor]

    def _infer(self, node: Node) -> list[Shape]:
        stated = _stated(node)
        count = max(_outputs(node), len(stated), self._last.get(node.name, -1) + 1)
        self._evaluate(node)
        found = self._source(node)
        if found is None:
            found = shape_table.shapes(node, self)
        found += [None] * (count - len(found))
        for number, shape in enumerate(stated[: len(found)]):
            found[number] = _merged(shape, found[number])
        if node.name in self._bindings.shapes:
            found[0] = self._bindings.shapes[node.name]
        if node.op in PLACEHOLDERS or node.op in BATCHES:
            found = [self._bound(node, shape) for shape in found]
        self._note_value(node, found)
        for number, shape in enumerate(found):
            value = self._values.get((node.name, number))
            if shape is None and value is not None:
                found[number] = value.shape
        return found

    def _source(self, node: Node) -> list[Shape] | None:
        """Shapes of nodes that need no input; None for others."""
        if node.op == "Const":
            value = node.attr["value"].tensor if "value" in node.attr else None
            return [None if value is None else dims(value.tensor_shape)]
        if node.name in self._given:
            return [self._given[node.name]]
        if node.op in PLACEHOLDERS or node.op in VARIABLES:
            shape = dims(node.attr["shape"].shape) if "shape" in node.attr else None
            # Before version 24 of graphs, a placeholder of any shape was written as a scalar's.
            scalar = shape == () and node.op == "Placeholder" and self._bindings.old
            return [None if scalar else shape]
        if node.op in BATCHES and "output_shapes" in node.attr:
            return [dims(shape) for shape in node.attr["output_shapes"].list.shape]
        if node.op == "ReadVariableOp" and node.inputs:
            return [self.of_variable(node.inputs[0])]
        return None

    def of_variable(self, handle: Tensor) -> Shape:
        """Shape of the variable behind a handle."""
        variable = self._handles.get(handle)
        return None if variable is None else self.shape((variable, 0))

    def _bound(self, node: Node, shape: Shape) -> Shape:
        """A batch's shape with its first dimension bound."""
        if shape and shape[0] is None and self._bindings.batch is not None:
            shape = (self._bindings.batch, *shape[1:])
        if shape is None or None in shape:
            self.unbound.append(node.name)
        return shape

    def _note_value(self, node: Node, found: list[Shape]) -> None:
        if node.op == "Const" and "value" in node.attr and found:
            value = constant(node.attr["value"].tensor, found[0])
            if value is not None:
                self._values[node.name, 0] = value

    def _evaluate(self, node: Node) -> None:
        for number, value in enumerate(folding.values(node, self)):
            if value is not None and value.size <= _MOST_ELEMENTS:
                self._values[node.name, number] = value


def dims(shape: Any) -> Shape:
    """A TensorShapeProto's dimensions."""
    if shape.unknown_rank:
        return None
    return tuple(one.size if one.size >= 0 else None for one in shape.dim)


def bytes_of(shape: Shape, dtype: int, name: str) -> int | None:
    """Bytes of a tensor. Raises pardnn.Error beyond 2^62."""
    item = types.item_bytes(dtype)
    if item is None or shape is None or any(size is None for size in shape):
        return None
    total = item
    for size in shape:
        total *= size or 0
    if total >= _MOST_BYTES:
        raise pardnn.Error(
            f"node {name}: its shape {list(shape)} means {total} bytes, expected less than 2^62"
        )
    return total


def constant(tensor: Any, shape: Shape) -> Value | None:
    """Elements of a TensorProto where they are few numbers, else None."""
    kind = _NUMPY.get(types.plain(tensor.dtype))
    if kind is None or shape is None:
        return None
    sizes = tuple(size or 0 for size in shape)
    count = math.prod(sizes)
    if count > _MOST_ELEMENTS:
        return None
    if tensor.tensor_content:
        if len(tensor.tensor_content) != count * kind.itemsize:
            return None
        return np.frombuffer(tensor.tensor_content, kind).reshape(sizes)
    listed = {
        types.FLOAT: tensor.float_val,
        types.INT32: tensor.int_val,
        types.INT64: tensor.int64_val,
        types.BOOL: tensor.bool_val,
    }[types.plain(tensor.dtype)]
    given = list(listed[:count]) or [0]
    # The last element stands for all that follow it.
    filled = given + [given[-1]] * (count - len(given))
    return np.array(filled[:count], kind).reshape(sizes)


def _stated(node: Node) -> list[Shape]:
    if "_output_shapes" not in node.attr:
        return []
    return [dims(shape) for shape in node.attr["_output_shapes"].list.shape]


def _merged(stated: Shape, inferred: Shape) -> Shape:
    """What the file states, its unknown dimensions as inferred."""
    if stated is None:
        return inferred
    if inferred is None or len(stated) != len(inferred):
        return stated
    return tuple(s if s is not None else i for s, i in zip(stated, inferred, strict=True))


def _last_read(nodes: Nodes) -> dict[str, int]:
    """The greatest output number of each node that some node reads."""
    last: dict[str, int] = {}
    for node in nodes.values():
        for name, number in node.inputs:
            if number > last.get(name, -1):
                last[name] = number
    for name, number in last.items():
        if number > 65535:
            raise pardnn.Error(f"some node reads output {number} of {name}, expected at most 65535")
    return last


_NO_OUTPUT = frozenset(
    """
    NoOp AssignVariableOp AssignAddVariableOp AssignSubVariableOp Assert SaveV2 ControlTrigger
    _Retval _Send _HostSend Save MergeV2Checkpoints StackCloseV2 TensorArrayCloseV3
    """.split()  # noqa: SIM905
)
_LISTS = ("Tout", "output_types", "dtypes")
_LIKE_INPUTS = frozenset({"IdentityN", "While", "StatelessWhile", "For"})


def _outputs(node: Node) -> int:
    """How many outputs an op has by its type, at least 1 where that is not known."""
    if node.op in OUTPUT_NAMES:
        return len(OUTPUT_NAMES[node.op])
    if node.op in _NO_OUTPUT or node.op.startswith(("ResourceApply", "ResourceScatter")):
        return 0
    if node.op in ("Split", "SplitV"):
        return min(node.integer("num_split", 1), 65536)
    if node.op == "Unpack":
        return min(node.integer("num", 1), 65536)
    if node.op in ("ShapeN", "ConcatOffset"):
        return min(node.integer("N", 1), 65536)
    for name in ("T",) if node.op in _LIKE_INPUTS else _LISTS:
        if name in node.attr and len(node.attr[name].list.type):
            return len(node.attr[name].list.type)
    return 1

"""Shapes, bytes and constant values of a graph's tensors, found without running the step.

TensorFlow infers most shapes of a rebuilt step. What it leaves open (results of loops, items of
tensor lists, shapes computed from shapes) is worked out here in one sweep over the ops, so that an
unknown size is never silently 0. Where a shape depends on data (`tf.where`, `tf.unique`), the
tensor gets an upper bound and is listed in `Statics.bounded`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
import tensorflow as tf

from pardnn.tensorflow import compat

Value = np.ndarray[Any, Any]


class SweptBody(Protocol):
    """A loop's body, and what is known about its tensors."""

    graph: Any

    @property
    def statics(self) -> Statics:
        """What the sweep over the body found."""
        ...


# A handle to a resource, or the box around a list of tensors: what the kernel allocates for it.
HANDLE_BYTES = 256
# Values are only worked out for tensors of at most this many elements: shapes, axes, indices.
_MOST_ELEMENTS = 4096
_OF_SHAPE = frozenset({"Shape", "ShapeN", "Size", "Rank"})
# Rows of the result are at most the elements of the input.
_ONE_ROW_PER_ELEMENT = frozenset({"Where", "Unique", "UniqueV2", "UniqueWithCounts"})
_LISTS = {"TensorListPushBack": 1, "TensorListSetItem": 2}
_PASS = frozenset({"Identity", "StopGradient", "PreventGradient", "Snapshot"})


class Statics:
    """What is known about every tensor of `graph` before it runs.

    `given` holds shapes of what the handles among a body's inputs stand for: the variable, or the
    items of the tensor list. `body_of` returns the swept body of a while loop; it is asked for when
    the sweep comes to one.
    """

    def __init__(
        self,
        graph: Any,
        body_of: Callable[[Any, Statics], SweptBody] | None = None,
        given: Mapping[str, Any] | None = None,
    ) -> None:
        self.bounded: set[str] = set()
        self._body_of = body_of
        self._values: dict[str, Value] = {}
        self._shapes: dict[str, Any] = {}
        self._contents: dict[str, Any] = dict(given or {})
        self._bounds: dict[str, int] = {}
        for op in graph.get_operations():
            self._sweep(op)

    def value(self, tensor: tf.Tensor) -> Value | None:
        """What `tensor` is known to hold; None where that depends on data, or is large."""
        return self._values.get(tensor.name)

    def shape(self, tensor: tf.Tensor) -> Any:
        """The TensorShape of `tensor`, at least as well known as TensorFlow's own."""
        return self._shapes.get(tensor.name, tensor.shape)

    def content_shape(self, tensor: tf.Tensor) -> Any:
        """The TensorShape of a handle's variable, or of a list's items; None where not known."""
        return self._contents.get(tensor.name)

    def bytes(self, tensor: tf.Tensor) -> int:
        """Bytes of `tensor`; for a resource or a tensor list, of the handle alone."""
        if tensor.dtype in (tf.resource, tf.variant):
            return HANDLE_BYTES
        count = self.shape(tensor).num_elements()
        if count is None:
            count = self._bound(tensor)
        return int(count) * item_bytes(tensor.dtype)

    def _bound(self, tensor: tf.Tensor) -> int:
        """At most this many elements, from those of the inputs."""
        found = self._bounds.get(tensor.name)
        if found is not None:
            return found
        self.bounded.add(tensor.name)
        self._bounds[tensor.name] = 0
        shape = self.shape(tensor)
        dims = [d for d in shape.as_list() if d is not None] if shape.rank is not None else []
        rest = int(np.prod(dims, dtype=np.int64))
        largest = 1
        for source in tensor.op.inputs:
            if source.dtype not in (tf.resource, tf.variant):
                largest = max(largest, self.bytes(source) // item_bytes(source.dtype))
        rows = tensor.op.type in _ONE_ROW_PER_ELEMENT
        self._bounds[tensor.name] = largest * rest if rows else max(largest, rest)
        return self._bounds[tensor.name]

    def _sweep(self, op: tf.Operation) -> None:
        for output in op.outputs:
            if output.dtype == tf.resource and compat.handle_shape(output) is not None:
                self._contents[output.name] = compat.handle_shape(output)
        if op.type in ("Placeholder", "NoOp") or not op.outputs:
            return
        if op.type == "Const":
            proto = op.get_attr("value")
            if np.prod([d.size for d in proto.tensor_shape.dim], dtype=np.int64) <= _MOST_ELEMENTS:
                self._values[op.outputs[0].name] = tf.make_ndarray(proto)
            return
        if any(t.dtype in (tf.variant, tf.resource) for t in [*op.inputs, *op.outputs]):
            self._sweep_handles(op)
        if op.type in _OF_SHAPE:
            for source, output in zip(op.inputs, op.outputs, strict=True):
                self._learn(output, _of_shape(op.type, self.shape(source), output.dtype))
            return
        if op.type in compat.SPLITS:
            for output in op.outputs:
                self._learn(output, self._values.get(op.inputs[0].name))
        if op.type in ("While", "StatelessWhile"):
            self._sweep_loop(op)
        elif any(not t.shape.is_fully_defined() for t in op.outputs):
            self._infer(op)
        if op.type not in compat.SPLITS | compat.JOINS:  # run alone, they yield nothing or anything
            self._fold(op)

    def _learn(self, output: tf.Tensor, value: Value | None) -> None:
        if value is not None:
            self._values[output.name] = value
            self._shapes[output.name] = tf.TensorShape(value.shape)

    def _sweep_loop(self, op: tf.Operation) -> None:
        if self._body_of is None:
            return
        body = self._body_of(op, self)
        graph = body.graph
        for output, given, result in zip(op.outputs, graph.inputs, graph.outputs, strict=True):
            statics = body.statics
            if statics.content_shape(result) is not None:
                self._contents[output.name] = statics.content_shape(result)
            if statics.shape(result) == given.shape:
                self._shapes[output.name] = given.shape  # a fixed point: every trip keeps it

    def _sweep_handles(self, op: tf.Operation) -> None:
        kind, output = op.type, op.outputs[0]
        if kind == "TensorListFromTensor":
            self._contents[output.name] = self.shape(op.inputs[0])[1:]
        elif kind in _LISTS:
            self._contents[output.name] = self.shape(op.inputs[_LISTS[kind]])
        content = self._contents.get(op.inputs[0].name) if op.inputs else None
        if content is None:
            return
        if kind in _PASS:
            self._contents[output.name] = content
        elif kind == "ReadVariableOp":
            self._refine(output, content)
        elif kind == "VariableShape" and content.is_fully_defined():
            self._learn(output, np.asarray(content.as_list(), output.dtype.as_numpy_dtype))
        elif kind == "TensorListPopBack":
            self._contents[output.name] = content
            self._refine(op.outputs[1], content)
        elif kind == "TensorListGetItem":
            self._refine(output, content)
        elif kind == "TensorListStack":
            rows = op.get_attr("num_elements")
            self._refine(output, tf.TensorShape([None if rows < 0 else rows]).concatenate(content))

    def _refine(self, output: tf.Tensor, shape: Any) -> None:
        if not output.shape.is_fully_defined() and output.shape.is_compatible_with(shape):
            self._shapes[output.name] = output.shape.merge_with(shape)

    def _infer(self, op: tf.Operation) -> None:
        """Ask TensorFlow's shape function again where more is known about the inputs now."""
        known = [self.shape(t) for t in op.inputs]
        better = any(
            t.name in self._values or str(s) != str(t.shape)
            for t, s in zip(op.inputs, known, strict=True)
        )
        if not better or op.type in compat.FUNCTIONAL_OPS or op.inputs[0].dtype == tf.resource:
            return
        inputs = [
            (t.dtype, s, self._values.get(t.name)) for t, s in zip(op.inputs, known, strict=True)
        ]
        for output, shape in zip(
            op.outputs, compat.inferred_shapes(op.node_def, inputs), strict=True
        ):
            if output.name not in self._shapes:
                self._refine(output, shape)

    def _fold(self, op: tf.Operation) -> None:
        """Run `op` now if it depends on known small values alone."""
        if not op.inputs or op.op_def.is_stateful or op.type in compat.FUNCTIONAL_OPS:
            return
        inputs = [self._values.get(t.name) for t in op.inputs]
        if any(v is None for v in inputs) or any(
            t.dtype in (tf.resource, tf.variant, tf.string)
            or (self.shape(t).num_elements() or 0) > _MOST_ELEMENTS
            for t in op.outputs
        ):
            return
        constants = [tf.constant(v, t.dtype) for v, t in zip(inputs, op.inputs, strict=True)]
        try:
            found = compat.run_op(op.node_def, constants, len(op.outputs))
        except (tf.errors.OpError, ValueError, TypeError):
            return  # a kernel that cannot run here says nothing about the step
        for output, tensor in zip(op.outputs, found, strict=True):
            self._learn(output, tensor.numpy())


def item_bytes(dtype: tf.DType) -> int:
    """Bytes of one element; for text, of the object that points to it."""
    return 24 if dtype == tf.string else int(dtype.size)


def _of_shape(kind: str, shape: Any, dtype: tf.DType) -> Value | None:
    if kind == "Rank":
        return None if shape.rank is None else np.asarray(shape.rank, dtype.as_numpy_dtype)
    if not shape.is_fully_defined():
        return None
    found = shape.num_elements() if kind == "Size" else shape.as_list()
    return np.asarray(found, dtype.as_numpy_dtype)

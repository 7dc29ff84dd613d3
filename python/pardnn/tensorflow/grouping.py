"""Variables of a step, who touches them, and which ops must share a device because of that."""

from __future__ import annotations

import weakref
from collections.abc import Collection, Mapping
from typing import Any

import tensorflow as tf

from pardnn.tensorflow import compat, semantics
from pardnn.tensorflow.loops import Regions
from pardnn.tensorflow.place import CAPTURED_PREFIX
from pardnn.tensorflow.tracing import Capture


class Grouping:
    """Which variable stands behind each handle of `graph`, and the groups that handles make.

    Ops that take one resource, or pass a tensor list between them, share a device: neither can be
    sent. Keys of variables are the names of their placeholders.
    """

    def __init__(self, graph: Any, capture: Capture, regions: Regions) -> None:
        self.variables: dict[str, int] = {}
        self.variable_of: dict[str, Any] = {}
        self.copied_on_read: set[str] = set()
        self._parent: dict[str, str] = {}
        self._behind: dict[str, str] = {}
        self._note_captures(graph, capture)
        for op in graph.get_operations():
            self._join(op, regions)

    def variable_behind(self, tensor: tf.Tensor) -> str | None:
        """Key of the variable whose handle `tensor` is."""
        return self._behind.get(tensor.name)

    def group_of(self, key: str) -> str | None:
        """Name of the group of an op, or None where it may be on any device by itself."""
        return self._names.get(self._find(key)) if key in self._parent else None

    def state(
        self, graph: Any, pins: Mapping[str, str], fixed: Collection[int] | None = None
    ) -> None:
        """Add variables and their groups to the builder; `pins` keeps them where they are, those
        whose id is in `fixed` if it is given."""
        members: dict[str, list[str]] = {}
        for key in self._parent:
            members.setdefault(self._find(key), []).append(key)
        self._names = {root: _group_name(keys, self.variables) for root, keys in members.items()}
        pinned: dict[str, str] = {}
        for key, variable in self.variable_of.items():
            if variable.device in pins and (fixed is None or id(variable) in fixed):
                pinned.setdefault(self._names[self._find(key)], pins[variable.device])
        for name, device in pinned.items():
            graph.group(name, on=(device,))
        for key, size in self.variables.items():
            variable = self.variable_of[key]
            name = getattr(variable, "path", None) or variable.name
            graph.var(key, size, group=self._names[self._find(key)], name=str(name))

    def _note_captures(self, graph: Any, capture: Capture) -> None:
        keys: dict[int, str] = {}
        for number, captured in enumerate(capture.captured):
            name = f"{CAPTURED_PREFIX}{number}"
            tensor = graph.get_tensor_by_name(f"{name}:0")
            if captured.variable is None:
                continue
            # A variable captured twice is one variable.
            key = keys.setdefault(id(captured.variable), name)
            self._behind[tensor.name] = key
            if key == name:
                self.variable_of[key] = captured.variable
                if _is_copied(captured.variable):
                    self.copied_on_read.add(key)
                self.variables[key] = _variable_bytes(captured.variable)
            self._union(key, name)

    def _join(self, op: tf.Operation, regions: Regions) -> None:
        for position, tensor in enumerate(op.inputs):
            if tensor.dtype not in (tf.resource, tf.variant):
                continue
            self._union(tensor.op.name, op.name)
            variable = self._behind.get(tensor.name)
            if variable is None:
                continue
            sparse = semantics.makes_copy_on_read(op.type)
            if op.type in compat.FUNCTIONAL_OPS:
                region = regions.of(op)
                sparse = position in region.sparse
            if sparse:
                self.copied_on_read.add(variable)
                _note_copied(self.variable_of[variable])
            self._pass_on(op, position, variable, regions)

    def _pass_on(self, op: tf.Operation, position: int, variable: str, regions: Regions) -> None:
        """Handles that come out of an op are those that went in."""
        if op.type in compat.FUNCTIONAL_OPS:
            for number, source in enumerate(regions.of(op).sources):
                if source.alias == position:
                    self._behind[op.outputs[number].name] = variable
        elif op.type in semantics.ALIAS | compat.SPLITS | compat.JOINS:
            for output in op.outputs:
                if output.dtype == tf.resource:
                    self._behind[output.name] = variable

    def _find(self, key: str) -> str:
        root = key
        while self._parent.setdefault(root, root) != root:
            root = self._parent[root]
        while self._parent[key] != root:
            self._parent[key], key = root, self._parent[key]
        return root

    def _union(self, first: str, second: str) -> None:
        self._parent[self._find(second)] = self._find(first)


# Variables that some function of this process updates in part: the variable stays in the
# mode in which every read is a copy, for functions that only read it too.
_copied: dict[int, weakref.ref[Any]] = {}


def _note_copied(variable: Any) -> None:
    number = id(variable)
    _copied[number] = weakref.ref(variable, lambda _: _copied.pop(number, None))


def _is_copied(variable: Any) -> bool:
    reference = _copied.get(id(variable))
    return reference is not None and reference() is variable


def _variable_bytes(variable: Any) -> int:
    count = variable.shape.num_elements()
    if count is None:
        count = int(tf.size(variable))
    return int(count) * int(variable.dtype.size)


def _group_name(members: list[str], variables: Mapping[str, int]) -> str:
    owned = [key for key in members if key in variables]
    return min(owned, key=lambda key: (len(key), key)) if owned else f"g_{min(members)}"

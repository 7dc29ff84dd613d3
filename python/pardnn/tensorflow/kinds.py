"""Which nodes of a step are ops of the graph to plan, and which are there on every device."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import tensorflow as tf

from pardnn.tensorflow import compat
from pardnn.tensorflow.branches import Branches
from pardnn.tensorflow.statics import Statics

# What is copied to every device that reads it: results of at most this size.
_REPEATED_BYTES = 1024
_NEVER_REPEATED = compat.FUNCTIONAL_OPS | compat.SPLITS | compat.JOINS | {"Placeholder", "NoOp"}


class Kinds:
    """What each node of `graph` is.

    `of` maps a node's name to `handle` (of a variable), `known` (its value is known before the step
    runs), `every` (each device has its own), `scalar` (each device computes it behind a variable's
    read) or `op`; `scalars` maps a scalar's name to those reads. `host` are nodes of the chief,
    `branches` those that run only when a branch of a conditional is taken.
    """

    def __init__(
        self, graph: Any, statics: Statics, host: Collection[str], branches: Branches
    ) -> None:
        self._nodes: list[tf.Operation] = graph.get_operations()
        self._statics, self._host, self._branches = statics, host, branches
        self._results = {t.name for t in graph.outputs}
        self._effects = {op.name for op in graph.control_outputs}
        self.of: dict[str, str] = {}
        self.scalars: dict[str, tuple[str, ...]] = {}
        for node in self._nodes:
            self.of[node.name] = self._classify(node)

    def _classify(self, node: tf.Operation) -> str:
        if node.type == "Placeholder":
            resource = node.outputs[0].dtype == tf.resource
            return "handle" if resource else "every"
        small = all(self._statics.bytes(t) <= _REPEATED_BYTES for t in node.outputs)
        if node.type == "Const":
            # In a branch of a conditional a constant waits for the branch to be taken.
            waits = {self.of[control.name] for control in node.control_inputs}
            return "every" if waits <= {"every", "known"} else "op"
        if node.name in self._host:
            before = [*(t.op for t in node.inputs), *node.control_inputs]
            kinds = {self.of[one.name] for one in before}
            return "every" if kinds <= {"every", "known", "handle"} else "op"
        # A constant in place of a node of a branch would be there when the branch is not taken.
        known = all(self._statics.value(t) is not None for t in node.outputs)
        known = known and node.name not in self._branches
        if node.type == "VariableShape" and known:
            return "known"
        if node.name in self._effects or node.op_def.is_stateful or node.type in _NEVER_REPEATED:
            return "op"
        if any(t.dtype in (tf.resource, tf.variant) for t in [*node.inputs, *node.outputs]):
            return "op"
        if not small or not node.inputs or any(t.name in self._results for t in node.outputs):
            return "op"
        return "known" if known else self._repeatable(node)

    def _repeatable(self, node: tf.Operation) -> str:
        """Whether a cheap node is computed from constants and inputs, or scalar variables too."""
        kinds = set()
        reads: dict[str, None] = {}
        for control in node.control_inputs:
            kinds.add(self.of[control.name])
        for tensor in node.inputs:
            kind = self.of[tensor.op.name]
            if self._is_scalar_read(tensor.op):
                kind = "scalar"
                reads[tensor.op.name] = None
            if kind == "every" and self._statics.bytes(tensor) > _REPEATED_BYTES:
                return "op"
            reads.update(dict.fromkeys(self.scalars.get(tensor.op.name, ())))
            kinds.add(kind)
        if kinds <= {"known", "every"}:
            return "every"
        if kinds <= {"known", "every", "scalar"}:
            self.scalars[node.name] = tuple(reads)
            return "scalar"
        return "op"

    def _is_scalar_read(self, node: tf.Operation) -> bool:
        return (
            node.type == "ReadVariableOp"
            and self._statics.bytes(node.outputs[0]) <= _REPEATED_BYTES
        )

    def needed(self) -> list[tf.Operation]:
        """The nodes that run: a node read for its shape alone is gone once shapes are constants."""
        by_name = {node.name: node for node in self._nodes}
        stack = [*(name.partition(":")[0] for name in self._results), *self._effects]
        needed: set[str] = set()
        while stack:
            name = stack.pop()
            if name not in needed:
                needed.add(name)
                if self.of[name] != "known":
                    node = by_name[name]
                    stack += [t.op.name for t in node.inputs]
                    stack += [c.name for c in node.control_inputs]
        return [node for node in self._nodes if node.name in needed]

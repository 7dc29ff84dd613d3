"""Variables of a graph: which tensors refer to them, and what must share a device because of it."""

from __future__ import annotations

from collections.abc import Iterable

from pardnn.readers.tensorflow import dtypes, types
from pardnn.readers.tensorflow.nodes import Node, Nodes, Tensor
from pardnn.readers.tensorflow.optypes import REF_PASSES, VARIABLES, written

_RESOURCE_PASSES = frozenset(
    {"Identity", "Enter", "Exit", "Switch", "Merge", "NextIteration", "IdentityN"}
)


def handles_of(nodes: Nodes, order: Iterable[str]) -> dict[Tensor, str]:
    """The variable behind every tensor that is a reference or a handle to one."""
    behind: dict[Tensor, str] = {}
    for name in order:
        node = nodes[name]
        if node.op in VARIABLES:
            behind[name, 0] = name
        elif node.inputs:
            variable = behind.get(node.inputs[0])
            if variable is not None and _passes_on(node):
                behind[name, 0] = behind[name, 1] = variable
    return behind


def _passes_on(node: Node) -> bool:
    if node.op in REF_PASSES:
        return True
    if written(node.op):
        return not node.op.startswith("Resource") and not node.op.endswith("VariableOp")
    return node.op in _RESOURCE_PASSES and dtypes.dtype(node, 0) == types.RESOURCE


class Groups:
    """Names that must share a device, joined pair by pair."""

    def __init__(self) -> None:
        self._parent: dict[str, str] = {}

    def join(self, first: str, second: str) -> None:
        """Both, and what is with them, share a device."""
        self._parent[self._find(second)] = self._find(first)

    def members(self) -> dict[str, list[str]]:
        """Groups of two and more, by one of their names."""
        found: dict[str, list[str]] = {}
        for name in self._parent:
            found.setdefault(self._find(name), []).append(name)
        return {root: names for root, names in found.items() if len(names) > 1}

    def _find(self, name: str) -> str:
        root = name
        while self._parent.setdefault(root, root) != root:
            root = self._parent[root]
        while self._parent[name] != root:
            self._parent[name], name = root, self._parent[name]
        return root

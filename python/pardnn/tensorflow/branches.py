"""Which nodes run only when a branch of a conditional is taken.

A node that waits for one of another branch is skipped by TensorFlow whenever that branch is not
taken: an edge that enforces an order must never lead out of a branch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pardnn.tensorflow import compat, passes

Branches = Mapping[str, frozenset[tuple[str, str]]]
"""For each node the branches that must be taken for it to run: (predicate, output of Switch)."""

_NOWHERE: frozenset[tuple[str, str]] = frozenset()


def branches_of(nodes: Iterable[Any]) -> Branches:
    """Branches of the NodeDefs of a graph; nodes outside of any conditional are left out."""
    found: dict[str, frozenset[tuple[str, str]]] = {}
    switches: dict[str, str] = {}
    for node in passes.in_topological_order(nodes):
        inside = [_behind(edge, found, switches) for edge in node.input]
        if node.op in compat.JOINS:
            data = [i for i, e in zip(inside, node.input, strict=True) if not passes.is_control(e)]
            taken = frozenset.intersection(*data)
        else:
            taken = frozenset().union(*inside)
        if node.op in compat.SPLITS:
            switches[node.name] = node.input[1]
        if taken:
            found[node.name] = taken
    return found


def _behind(edge: str, found: Branches, switches: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    name = passes.producer(edge)
    before = found.get(name, _NOWHERE)
    if name in switches and not passes.is_control(edge):
        output = edge.partition(":")[2] or "0"
        return before | {(switches[name], output)}
    return before


def may_wait(first: str, second: str, branches: Branches) -> bool:
    """Whether `second` can wait for `first`: `first` runs whenever `second` does."""
    return branches.get(first, _NOWHERE) <= branches.get(second, _NOWHERE)

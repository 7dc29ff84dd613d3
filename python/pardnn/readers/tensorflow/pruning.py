"""Which nodes are the training step: those that the training op needs, without saving and init."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from pardnn.readers.tensorflow.nodes import Nodes
from pardnn.readers.tensorflow.optypes import ASSIGNS, OPTIMIZERS, SAVES, SUMMARIES, VARIABLES

_COLLECTIONS = ("train_op", "losses", "update_ops")
_RESULTS = frozenset({"_Retval", "_DeviceRetval"})


def fetches_of(meta_graph: Any) -> list[str]:
    """Nodes that a MetaGraph's collections name as what training runs."""
    names = []
    for collection in _COLLECTIONS:
        if collection in meta_graph.collection_def:
            found = meta_graph.collection_def[collection]
            values = [*found.node_list.value]
            values += [value.decode(errors="replace") for value in found.bytes_list.value]
            names += [value.lstrip("^").partition(":")[0] for value in values]
    return names if "train_op" in meta_graph.collection_def else []


def step_of(nodes: Nodes, fetches: Collection[str]) -> tuple[set[str], str]:
    """Names of the nodes of a step, and what was taken as its end, for people.

    The end is what the collections name; else the optimizer's updates and what comes after them;
    else everything but saving, restoring, summaries and initial values.
    """
    known = [name for name in fetches if name in nodes]
    if known:
        return _before(nodes, known), f"the training op {known[0]}"
    if any(node.op in _RESULTS for node in nodes.values()):
        return set(nodes), "the function's results"  # TensorFlow has pruned it already
    updates = [name for name, node in nodes.items() if node.op in OPTIMIZERS]
    unwanted = _unwanted(nodes)
    if updates:
        after = _after(nodes, updates)
        read = {tensor[0] for node in nodes.values() for tensor in node.inputs}
        read |= {name for node in nodes.values() for name in node.controls}
        ends = [n for n in after if n not in read and n not in unwanted]
        return _before(nodes, [*updates, *ends]), "the optimizer's updates"
    kept = _before(nodes, [name for name in nodes if name not in unwanted])
    # A graph that does nothing but save, restore or initialise is planned as it is.
    return kept or set(nodes), "all results"


def _unwanted(nodes: Nodes) -> set[str]:
    """Nodes that save, restore, summarise or initialise, and what is only there for them.

    An initial value is an Assign that nothing waits for but nodes that compute nothing.
    """
    readers: dict[str, list[str]] = {}
    for name, node in nodes.items():
        for before in {*(tensor[0] for tensor in node.inputs), *node.controls}:
            readers.setdefault(before, []).append(name)
    unwanted: set[str] = set()
    stack = [
        name
        for name, node in nodes.items()
        if node.op in SAVES | SUMMARIES | ASSIGNS | {"NoOp"} | VARIABLES
        or (node.op == "Const" and name in readers)
        or _is_helper(node.op)
    ]
    candidates = set(stack)
    # What is read by unwanted nodes only is unwanted too; results that nobody reads are wanted.
    pending = [name for name in candidates if _serves(nodes, name, readers, unwanted)]
    while pending:
        name = pending.pop()
        if name in unwanted or not _serves(nodes, name, readers, unwanted):
            continue
        unwanted.add(name)
        node = nodes[name]
        pending += {*(tensor[0] for tensor in node.inputs), *node.controls} - unwanted
    return unwanted


def _is_helper(op: str) -> bool:
    return op in ("VarIsInitializedOp", "IsVariableInitialized", "StringJoin", "ReadVariableOp")


def _serves(
    nodes: Nodes, name: str, readers: dict[str, list[str]], unwanted: Collection[str]
) -> bool:
    """Whether all that read a node are unwanted; of nodes nobody reads, whether its type is."""
    behind = readers.get(name, [])
    if behind:
        return all(reader in unwanted for reader in behind)
    op = nodes[name].op
    return op in SAVES | SUMMARIES | ASSIGNS | {"NoOp"} | VARIABLES or _is_helper(op)


def _before(nodes: Nodes, ends: Iterable[str]) -> set[str]:
    """The nodes that some of these need."""
    found: set[str] = set()
    stack = list(ends)
    while stack:
        name = stack.pop()
        if name not in found:
            found.add(name)
            stack += [tensor[0] for tensor in nodes[name].inputs]
            stack += nodes[name].controls
    return found


def _after(nodes: Nodes, starts: Iterable[str]) -> set[str]:
    """These nodes and those that need one of them."""
    readers: dict[str, list[str]] = {}
    for name, node in nodes.items():
        for before in (*(tensor[0] for tensor in node.inputs), *node.controls):
            readers.setdefault(before, []).append(name)
    found: set[str] = set()
    stack = list(starts)
    while stack:
        name = stack.pop()
        if name not in found:
            found.add(name)
            stack += readers.get(name, ())
    return found

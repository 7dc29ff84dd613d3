"""Which operations of a step must run in the process of the script, not on a worker.

A Python function, what prints, and what works with files, datasets, tables or queues of the script
is there and nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import tensorflow as tf

from pardnn.errors import Refusal
from pardnn.tensorflow import compat, passes

_KINDS = re.compile(
    r"PyFunc|^Print(V2)?$|^(Read|Write)File$|^MatchingFiles$|^(Save|Restore)(Slices?|V2)?$"
    r"|Checkpoint|Dataset|Iterator|Summary|Queue|HashTable|LookupTable|InitializeTable|Reader"
)
_HANDED_ON = compat.SPLITS | compat.JOINS | {"Identity"}
_HANDLES = frozenset({tf.resource.as_datatype_enum, tf.variant.as_datatype_enum})


def is_of_chief(kind: str) -> bool:
    """Whether operations of this type run in the script's process, whatever they are given."""
    return _KINDS.search(kind) is not None


def nodes_of_chief(
    graph_def: Any, foreign: Iterable[str], variables: Iterable[str]
) -> frozenset[str]:
    """Names of the nodes that must run here: those of such a type, and all that use a resource of
    this process: one behind the placeholders in `foreign`, or one that such a node makes.

    A loop that uses one of `variables` as well, placeholders of what lives on workers, is on a
    worker; only what is in its body can be here, see `pin_in_loops`.
    """
    here, away, found = set(foreign), set(variables), set[str]()
    for node in passes.in_topological_order(graph_def.node):
        sources = {passes.producer(edge) for edge in node.input if not passes.is_control(edge)}
        if node.op in _HANDED_ON and sources & away:
            away.add(node.name)
        if node.op in passes.LOOPS and sources & away:
            continue
        if is_of_chief(node.op) and sources & away:
            raise Refusal(
                f"{node.name} uses variables, which are on workers, inside of a dataset, which is "
                "not: iterate over the dataset outside of the @tf.function"
            )
        if sources & here or is_of_chief(node.op):
            found.add(node.name)
            if _hands_on(node):
                here.add(node.name)
    return frozenset(found)


def pin_in_loops(graph_def: Any, device: str) -> None:
    """Give `device`, the script's own, to what must run here in the bodies of loops."""
    for function in graph_def.library.function:
        for node in function.node_def:
            if is_of_chief(node.op):
                node.device = device


def _hands_on(node: Any) -> bool:
    """Whether an operation that runs here yields a resource, or something like a dataset."""
    return node.op in _HANDED_ON or not _HANDLES.isdisjoint(compat.output_types(node))

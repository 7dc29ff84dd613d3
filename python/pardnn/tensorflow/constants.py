"""Nodes whose values are known before a step runs become constants in its graph.

With static shapes, most of what a step computes with shapes is known: reductions' axes, the shapes
that gradients are brought back to. As nodes they would keep large tensors alive, or even have them
sent, for the sake of their shapes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import tensorflow as tf

from pardnn.tensorflow import passes

PREFIX = "pardnn_value"


def folded(nodes: Iterable[Any], values: Mapping[str, Any], keep: Iterable[str]) -> list[Any]:
    """`nodes` in which the tensors named in `values` are constants, without what nobody needs then.

    `keep` are names of nodes that must stay. A node of whose outputs one becomes a constant must
    not have any other effect. Nodes that stay are the same objects unless an input changed.
    """
    nodes = list(nodes)
    if not values:
        return nodes
    constants = {_edge(name): _constant(name, value) for name, value in values.items()}
    replaced = {constant.name for constant in constants.values()}
    result = [constants[_edge(name)] for name in values]
    for node in nodes:
        if node.name in replaced:
            continue
        if any(edge in constants for edge in node.input):
            changed = tf.compat.v1.NodeDef()
            changed.CopyFrom(node)
            edges = [constants[e].name if e in constants else e for e in node.input]
            passes.set_edges(changed, edges)
            node = changed
        result.append(node)
    return _needed(result, keep)


def _edge(tensor: str) -> str:
    """How a NodeDef names a tensor among its inputs."""
    node, _, number = tensor.partition(":")
    return node if number in ("", "0") else f"{node}:{number}"


def _constant(tensor: str, value: Any) -> Any:
    """A Const with the name of the node it replaces, or one of its own for a further output."""
    node, _, number = tensor.partition(":")
    name = node if number in ("", "0") else f"{PREFIX}/{node}/{number}"
    constant = tf.compat.v1.NodeDef(name=name, op="Const")
    proto = tf.make_tensor_proto(value)
    constant.attr["value"].tensor.CopyFrom(proto)
    constant.attr["dtype"].type = proto.dtype
    return constant


def _needed(nodes: list[Any], keep: Iterable[str]) -> list[Any]:
    by_name = {node.name: node for node in nodes}
    stack = list(keep)
    alive: set[str] = set()
    while stack:
        name = stack.pop()
        if name not in alive and name in by_name:
            alive.add(name)
            stack.extend(passes.producer(edge) for edge in by_name[name].input)
    return [node for node in nodes if node.name in alive]

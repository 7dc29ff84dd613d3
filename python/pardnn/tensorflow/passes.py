"""Rewrites of a captured step that make it divisible over devices without changing one bit of its
results.

All of them work on GraphDefs, before shapes are known, and keep the names of the nodes they keep. A
rewritten graph computes the same numbers: what they remove is bundling (many tensors through one
node), waiting (outputs that wait for every side effect) and repetition (the same variable read many
times).
"""

from __future__ import annotations

import functools
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import tensorflow as tf

from pardnn.tensorflow import compat

SINK = "pardnn_sink"
LOOPS = frozenset({"While", "StatelessWhile"})
_RESOURCE = tf.resource.as_datatype_enum
_VARIANT = tf.variant.as_datatype_enum

# Elementwise ops without state: applied to scalars they are cheap, and equal inputs give equal
# outputs.
_SCALAR_OPS = frozenset(
    """
    Abs Add AddV2 Cast Ceil Cos Div DivNoNan Equal Exp Floor FloorDiv FloorMod Greater
    GreaterEqual Identity Less LessEqual Log Log1p LogicalAnd LogicalNot LogicalOr Maximum
    Minimum Mul Neg NotEqual Pow RealDiv Reciprocal Rsqrt Select SelectV2 Sign Sin Sqrt Square
    SquaredDifference Sub Tanh
    """.split()  # noqa: SIM905
)


def is_control(edge: str) -> bool:
    """Whether an input string of a NodeDef is a control edge."""
    return edge.startswith("^")


def producer(edge: str) -> str:
    """Name of the node an input string refers to."""
    return edge[1:] if edge.startswith("^") else edge.split(":", 1)[0]


def inline(graph_def: Any, side_effects: Iterable[str], keep: Iterable[str]) -> Any:
    """Inline all functions and lower conditionals; loops stay one functional op each.

    A node `SINK` that waits for `side_effects` is added first, because inlining drops names of
    stateful calls: what the sink waits for afterwards are the rewritten side effects.
    """
    sink = graph_def.node.add()
    sink.name, sink.op = SINK, "NoOp"
    sink.input.extend("^" + name for name in side_effects)
    for function in graph_def.library.function:
        # The inliner skips functions that claim to implement an interface.
        function.attr.pop("api_implements", None)
    _lower_loops(graph_def, False)
    graph_def = compat.optimize_functions(graph_def, [*keep, SINK])
    # The runtime lowers them when it has placed them, as it does in an ordinary run: the functional
    # kernel optimizes loop bodies by themselves, and gives other last bits.
    _lower_loops(graph_def, True)
    return graph_def


def _lower_loops(graph_def: Any, lower: bool) -> None:
    functions = (function.node_def for function in graph_def.library.function)
    for node in itertools.chain(graph_def.node, *functions):
        if node.op in LOOPS and "_lower_using_switch_merge" in node.attr:
            node.attr["_lower_using_switch_merge"].b = lower
            # Trips that run ahead of each other hold up to 32 times one trip's memory (a gradient
            # loop starts every trip's products before it sums them), and change no number.
            node.attr["parallel_iterations"].i = 1


def split_identity_n(graph_def: Any) -> None:
    """Replace every IdentityN by one Identity per tensor.

    Keras optimizers pass all gradients through one IdentityN, which would bring all of them to one
    device.
    """
    renamed: dict[str, str] = {}
    parts: dict[str, list[str]] = {}
    nodes = []
    for node in graph_def.node:
        if node.op != "IdentityN":
            nodes.append(node)
            continue
        controls = [edge for edge in node.input if is_control(edge)]
        tensors = [edge for edge in node.input if not is_control(edge)]
        parts[node.name] = []
        for number, (edge, dtype) in enumerate(zip(tensors, node.attr["T"].list.type, strict=True)):
            part = tf.compat.v1.NodeDef(
                name=f"{node.name}_pardnn{number}", op="Identity", input=[edge, *controls]
            )
            part.attr["T"].type = dtype
            nodes.append(part)
            parts[node.name].append(part.name)
            renamed[f"{node.name}:{number}"] = part.name
        renamed[node.name] = renamed[f"{node.name}:0"]
    if parts:
        _replace_nodes(graph_def, nodes)
        _rewire(
            graph_def.node,
            lambda edge: (
                ["^" + part for part in parts[edge[1:]]]
                if is_control(edge) and edge[1:] in parts
                else [renamed.get(edge, edge)]
            ),
        )


def split_add_n(graph_def: Any) -> None:
    """Replace every AddN of three or more inputs by AddV2, left to right, also inside functions.

    AddN starts with an input whose buffer it may reuse, so its order of summing, and the last bits,
    depend on who else still reads the inputs: on the placement. The last AddV2 keeps the name.
    """
    nodes, _ = _with_split_sums(graph_def.node, "{name}")
    _replace_nodes(graph_def, nodes)
    for function in graph_def.library.function:
        nodes, split = _with_split_sums(function.node_def, "{name}:z:0")
        if not split:
            continue
        del function.node_def[:]
        function.node_def.extend(nodes)
        # In functions an edge names the output: AddN calls it `sum`, AddV2 calls it `z`.
        renamed = {f"{name}:sum:0": f"{name}:z:0" for name in split}
        _rewire(function.node_def, functools.partial(_looked_up, renamed))
        for output, edge in function.ret.items():
            function.ret[output] = renamed.get(edge, edge)


def _with_split_sums(nodes: Iterable[Any], edge_form: str) -> tuple[list[Any], set[str]]:
    result, split = [], set()
    for node in nodes:
        tensors = [edge for edge in node.input if not is_control(edge)]
        if node.op != "AddN" or len(tensors) < 3 or node.attr["T"].type == _VARIANT:
            result.append(node)
            continue
        split.add(node.name)
        controls = [edge for edge in node.input if is_control(edge)]
        total = tensors[0]
        for number, edge in enumerate(tensors[1:], 1):
            last = number == len(tensors) - 1
            name = node.name if last else f"{node.name}_pardnn{number}"
            add = tf.compat.v1.NodeDef(name=name, op="AddV2", input=[total, edge, *controls])
            add.attr["T"].type = node.attr["T"].type
            result.append(add)
            total = edge_form.format(name=name)
    return result, split


def drop_group_noops(graph_def: Any, largest: int = 4096) -> None:
    """Remove NoOps that only gather control edges.

    Returned values stop waiting for the step's side effects: the function waits for those anyway,
    and a wait across devices is a message each. Every other reader of such a NoOp waits for its
    inputs directly, unless that would make more than `largest` edges.
    """
    noops = {node.name: node for node in graph_def.node if node.op == "NoOp" and node.name != SINK}
    free = _values_that_need_not_wait(graph_def)
    readers: dict[str, int] = defaultdict(int)
    for node in graph_def.node:
        if node.name not in free:
            for edge in node.input:
                readers[producer(edge)] += 1
    gone = {n for n, node in noops.items() if readers[n] * len(node.input) <= largest}

    def expanded(edge: str) -> list[str]:
        if not is_control(edge) or edge[1:] not in gone:
            return [edge]
        return [deep for inner in noops[edge[1:]].input for deep in expanded(inner)]

    kept = [node for node in graph_def.node if node.name not in gone]
    for node in kept:
        if node.name in free:
            set_edges(node, [e for e in node.input if not (is_control(e) and e[1:] in noops)])
        elif any(is_control(edge) and edge[1:] in gone for edge in node.input):
            set_edges(node, [deep for edge in node.input for deep in expanded(edge)])
    _replace_nodes(graph_def, kept)


def _values_that_need_not_wait(graph_def: Any) -> set[str]:
    """Identity nodes whose value reaches nothing but the function's results, and which nothing
    waits for.
    """
    data_readers: dict[str, set[str]] = defaultdict(set)
    awaited: set[str] = set()
    identities = []
    for node in graph_def.node:
        if node.op == "Identity" and node.attr["T"].type not in (_RESOURCE, _VARIANT):
            identities.append(node.name)
        for edge in node.input:
            if is_control(edge):
                awaited.add(edge[1:])
            else:
                data_readers[producer(edge)].add(node.name)
    free: set[str] = set()
    candidates = [name for name in identities if name not in awaited and data_readers[name]]
    grown = True
    while grown:
        grown = False
        for name in candidates:
            if name not in free and data_readers[name] <= free | {SINK}:
                free.add(name)
                grown = True
    return free


def merge_equal_reads(graph_def: Any, scalars: frozenset[str]) -> None:
    """Keep one of several nodes that read a variable at the same moment, or compute the same
    scalar.

    `scalars` are placeholders of scalar variables. Two reads with equal inputs, control edges
    included, see the same value. Only constants and elementwise ops on scalars are merged besides:
    merging larger tensors would prolong their lives, and undo a recomputation the user asked for.
    """
    merged: dict[str, str] = {}
    seen: dict[tuple[Any, ...], str] = {}
    small: set[str] = set(scalars)
    kept = []
    for node in in_topological_order(graph_def.node):
        if any(producer(edge) in merged for edge in node.input):
            set_edges(node, [_renamed(edge, merged) for edge in node.input])
        if _mergeable(node, small):
            key = (node.op, *_sorted_edges(node.input), _attributes(node))
            if key in seen:
                merged[node.name] = seen[key]
                continue
            seen[key] = node.name
        kept.append(node)
    _replace_nodes(graph_def, kept)


def _mergeable(node: Any, small: set[str]) -> bool:
    """Whether equal copies of `node` may become one; remembers in `small` the nodes that yield
    scalars.
    """
    data = [producer(edge) for edge in node.input if not is_control(edge)]
    if node.op == "ReadVariableOp":
        if data[0] in small:
            small.add(node.name)
        return True
    if node.op == "Const":
        shape = node.attr["value"].tensor.tensor_shape
        if not shape.dim and not shape.unknown_rank:
            small.add(node.name)
        return bool(node.ByteSize() <= 1024)
    if node.op == "Identity" and node.attr["T"].type in (_RESOURCE, _VARIANT):
        return False
    if node.op in _SCALAR_OPS and data and all(name in small for name in data):
        small.add(node.name)
        return True
    return False


def _renamed(edge: str, merged: Mapping[str, str]) -> str:
    name = producer(edge)
    return edge.replace(name, merged[name], 1) if name in merged else edge


def _sorted_edges(edges: Iterable[str]) -> list[str]:
    edges = list(edges)
    return [e for e in edges if not is_control(e)] + sorted(e for e in edges if is_control(e))


def _attributes(node: Any) -> bytes:
    parts = sorted(
        (key, value.SerializeToString(deterministic=True))
        for key, value in node.attr.items()
        if not key.startswith("_")
    )
    return b"\0".join(key.encode() + b"=" + value for key, value in parts) + node.device.encode()


def add_results(graph_def: Any, outputs: Iterable[str]) -> None:
    """Let the sink also read the function's results, so that every pass keeps track of them."""
    sink = next(node for node in graph_def.node if node.name == SINK)
    set_edges(sink, [*outputs, *sink.input])


def take_sink(graph_def: Any) -> tuple[list[str], list[str]]:
    """Remove the sink and what nobody needs; return the results' tensors and the nodes that must
    run besides.
    """
    by_name = {node.name: node for node in graph_def.node}
    edges = list(by_name[SINK].input)
    outputs = [edge if ":" in edge else f"{edge}:0" for edge in edges if not is_control(edge)]
    effects = [edge[1:] for edge in edges if is_control(edge)]
    # Auto control dependencies list reads too; a read nobody uses has no effect.
    effects = [n for n in effects if by_name[n].op not in ("ReadVariableOp", "Placeholder")]
    stack, alive = [*map(producer, outputs), *effects], set[str]()
    while stack:
        name = stack.pop()
        if name not in alive:
            alive.add(name)
            stack.extend(producer(edge) for edge in by_name[name].input)
    _replace_nodes(graph_def, [node for node in graph_def.node if node.name in alive])
    return outputs, effects


def updated(graph_def: Any, placeholders: set[str]) -> set[str]:
    """Those of `placeholders` (of variables) that nodes at the top level both read and assign."""
    origin = {name: name for name in placeholders}
    assigned, read = set[str](), set[str]()
    for node in in_topological_order(graph_def.node):
        data = [producer(edge) for edge in node.input if not is_control(edge)]
        for name in data:
            if name not in origin:
                continue
            if node.op == "Identity" or node.op in compat.SPLITS:
                origin[node.name] = origin[name]
            elif node.op.startswith(("Assign", "Resource")) and node.op != "ResourceGather":
                assigned.add(origin[name])
            else:
                read.add(origin[name])
    return assigned & read


def rename_functions(graph_def: Any, names: Mapping[str, str]) -> None:
    """Give library functions other names, wherever they are called."""

    def rename(nodes: Iterable[Any]) -> None:
        for node in nodes:
            node.op = names.get(node.op, node.op)
            for value in node.attr.values():
                if value.HasField("func"):
                    value.func.name = names.get(value.func.name, value.func.name)
                for function in value.list.func:
                    function.name = names.get(function.name, function.name)

    rename(graph_def.node)
    for function in graph_def.library.function:
        function.signature.name = names.get(function.signature.name, function.signature.name)
        rename(function.node_def)
    for gradient in graph_def.library.gradient:
        gradient.function_name = names.get(gradient.function_name, gradient.function_name)
        gradient.gradient_func = names.get(gradient.gradient_func, gradient.gradient_func)


def in_topological_order(nodes: Iterable[Any]) -> list[Any]:
    """`nodes` with producers before readers, otherwise as given. Frames of lowered loops do not
    occur here.
    """
    nodes = list(nodes)
    by_name = {node.name: node for node in nodes}
    done: set[str] = set()
    result = []
    for root in nodes:
        stack = [(root, iter(root.input))] if root.name not in done else []
        done.add(root.name)
        while stack:
            node, edges = stack[-1]
            for edge in edges:
                before = by_name[producer(edge)]
                if before.name not in done:
                    done.add(before.name)
                    stack.append((before, iter(before.input)))
                    break
            else:
                result.append(node)
                stack.pop()
    return result


def _looked_up(renamed: Mapping[str, str], edge: str) -> list[str]:
    return [renamed.get(edge, edge)]


def _rewire(nodes: Iterable[Any], replace: Callable[[str], list[str]]) -> None:
    for node in nodes:
        edges = [new for edge in node.input for new in replace(edge)]
        if edges != list(node.input):
            set_edges(node, edges)


def set_edges(node: Any, edges: Iterable[str]) -> None:
    """Give `node` these inputs: data first as GraphDef demands, each control edge once."""
    edges = list(edges)
    del node.input[:]
    node.input.extend(edge for edge in edges if not is_control(edge))
    node.input.extend(dict.fromkeys(edge for edge in edges if is_control(edge)))


def _replace_nodes(graph_def: Any, nodes: list[Any]) -> None:
    copies = tf.compat.v1.GraphDef()
    copies.node.extend(nodes)
    del graph_def.node[:]
    graph_def.node.MergeFrom(copies.node)

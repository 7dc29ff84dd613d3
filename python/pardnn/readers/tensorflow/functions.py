"""Function libraries: calls replaced by the nodes of what they call, and bodies of loops.

A call becomes the called function's nodes under the call's name. While and If stay one node each;
their functions are instantiated as bodies, to be looked at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pardnn
from pardnn.readers.tensorflow.messages import message_class
from pardnn.readers.tensorflow.nodes import Node, Nodes, Tensor, nodes_of, tensor_of
from pardnn.readers.tensorflow.optypes import INLINED, OUTPUT_NAMES

_DEEPEST = 64
# What inlining may make of a file: functions that call functions twice double with every level.
_MOST_NODES, _MOST_PER_NODE = 200_000, 8

Path = tuple[str, ...]


@dataclass
class Body:
    """A function's nodes by themselves: its arguments are `_Arg` nodes, in order."""

    nodes: Nodes
    arguments: list[str]
    results: list[Tensor]
    path: Path


@dataclass
class _Call:
    node: Node
    path: Path


class Library:
    """The functions of a graph, by name. `where` begins messages of errors."""

    def __init__(self, graph: Any, where: str) -> None:
        self._where = where
        self._functions: dict[str, Any] = {}
        count = len(graph.node)
        for one in graph.library.function:
            if one.signature.name in self._functions:
                raise pardnn.Error(f"{where}two functions are named {one.signature.name}")
            self._functions[one.signature.name] = one
            count += len(one.node_def)
        self._left = _MOST_NODES + _MOST_PER_NODE * count

    def __contains__(self, name: str) -> bool:
        return name in self._functions

    def inline(self, nodes: Nodes, path: Path = ()) -> Nodes:
        """The nodes without calls of functions, all else as it was.

        Raises pardnn.Error where a function calls itself, or calls grow without measure.
        """
        if not any(self.called(node) for node in nodes.values()):
            return nodes
        return _Inlining(self, nodes, path).run()

    def body(self, name: str, path: Path, where: str) -> Body:
        """The function `name`, which node `where` runs, calls in it inlined."""
        function = self.function(name, path, where)
        self.spend(len(function.node_def))
        arguments = [argument.name for argument in function.signature.input_arg]
        nodes: Nodes = {}
        for argument in function.signature.input_arg:
            dtype = message_class("AttrValue")(type=argument.type)
            nodes[argument.name] = Node(argument.name, "_Arg", attr={"T": dtype})
        given: dict[str, Tensor] = {name: (name, 0) for name in arguments}
        for node in _instances(function, "", given, self._where):
            nodes[node.name] = node
        results = list(_results(function, "", given, self._where))
        inside = (*path, name)
        if not any(self.called(node) for node in nodes.values()):
            return Body(nodes, arguments, results, inside)
        inlining = _Inlining(self, nodes, inside)
        flat = inlining.run()
        return Body(flat, arguments, [inlining.resolve(t) for t in results], inside)

    def called(self, node: Node) -> str | None:
        """The function that a node calls, None for other nodes."""
        if node.op in INLINED:
            return str(node.attr["f"].func.name) if "f" in node.attr else ""
        return node.op if node.op in self._functions else None

    def function(self, name: str, path: Path, where: str) -> Any:
        """A function that node `where` calls from inside of `path`."""
        if name in path:
            circle = " -> ".join((*path[path.index(name) :], name))
            raise pardnn.Error(
                f"{self._where}function {name} calls itself ({circle}); such graphs have no end "
                "and cannot be planned"
            )
        if len(path) >= _DEEPEST:
            raise pardnn.Error(
                f"{self._where}functions call each other more than {_DEEPEST} deep at {where}"
            )
        if name not in self._functions:
            raise pardnn.Error(
                f"{self._where}node {where} calls function {name!r}, which the file does not have"
            )
        return self._functions[name]

    def spend(self, nodes: int) -> None:
        """Count nodes that a call adds."""
        self._left -= nodes + 1
        if self._left < 0:
            raise pardnn.Error(
                f"{self._where}functions call functions until the graph is more than "
                f"{_MOST_PER_NODE} times its size in the file; expected one that can be inlined"
            )

    def instances(self, function: Any, prefix: str, given: dict[str, Tensor]) -> list[Node]:
        """Nodes of a function under `prefix`, its arguments replaced by `given`."""
        return list(_instances(function, prefix, given, self._where))

    def results(self, function: Any, prefix: str, given: dict[str, Tensor]) -> list[Tensor]:
        """What a function returns, in the names of its instance."""
        return list(_results(function, prefix, given, self._where))

    def arguments(self, function: Any, node: Node) -> dict[str, Tensor]:
        """Which tensor of the caller each argument is."""
        names = [argument.name for argument in function.signature.input_arg]
        if len(names) != len(node.inputs):
            raise pardnn.Error(
                f"{self._where}node {node.name} gives function {function.signature.name} "
                f"{len(node.inputs)} inputs, expected {len(names)}"
            )
        return dict(zip(names, node.inputs, strict=True))


class _Inlining:
    """One graph while its calls are replaced."""

    def __init__(self, library: Library, nodes: Nodes, path: Path) -> None:
        self._library = library
        self._flat: Nodes = {}
        self._now: dict[Tensor, Tensor] = {}
        self._effects: dict[str, list[str]] = {}
        self._taken = set(nodes)
        self._pending = [_Call(node, path) for node in reversed(nodes.values())]

    def run(self) -> Nodes:
        while self._pending:
            call = self._pending.pop()
            name = self._library.called(call.node)
            if name is None:
                self._flat[call.node.name] = call.node
            else:
                self._expand(call, self._library.function(name, call.path, call.node.name), name)
        self._join()
        return self._flat

    def resolve(self, tensor: Tensor) -> Tensor:
        """The tensor that stands for an output of a call."""
        start = tensor
        while tensor in self._now:
            tensor = self._now[tensor]
            if tensor == start:
                raise pardnn.Error(f"node {start[0]} reads what it returns itself")
        end = tensor
        while start in self._now:
            self._now[start], start = end, self._now[start]
        return end

    def _expand(self, call: _Call, function: Any, name: str) -> None:
        library, node = self._library, call.node
        library.spend(len(function.node_def))
        given = library.arguments(function, node)
        prefix = self._prefix(node.name, function)
        inside = (*call.path, name)
        made = library.instances(function, prefix, given)
        for one in made:
            if node.controls and not one.inputs and not one.controls and one.op != "Const":
                one.controls = list(node.controls)
            one.device = one.device or node.device
            self._taken.add(one.name)
        results = library.results(function, prefix, given)
        for number, tensor in enumerate(results):
            self._now[node.name, number] = tensor
        last = [tensor[0] for tensor in results]
        last += [prefix + one for one in function.control_ret.values()]
        self._effects[node.name] = list(dict.fromkeys([*last, *node.controls]))
        self._pending += [_Call(one, inside) for one in reversed(made)]

    def _prefix(self, name: str, function: Any) -> str:
        """Under which the function's nodes get names that no other node has."""
        prefix, number = f"{name}/", 0
        while any(prefix + one.name in self._taken for one in function.node_def):
            number += 1
            prefix = f"{name}/call_{number}/"
        return prefix

    def _join(self) -> None:
        """Edges to outputs of calls lead on; who waits for a call waits for all of its effects."""
        read: set[str] = set()
        waited: set[str] = set()
        for node in self._flat.values():
            read.update(tensor[0] for tensor in node.inputs)
            node.inputs = [self.resolve(tensor) for tensor in node.inputs]
            self._check(node)
            waited.update(node.controls)
        for name in reversed(self._effects):
            effects = list(dict.fromkeys(self.resolve((one, 0))[0] for one in self._effects[name]))
            waited.update(effects if name in waited else ())
            if name in waited or name not in read:
                self._flat[name] = Node(name, "NoOp", controls=effects)
        self._drop_lost()

    def _check(self, node: Node) -> None:
        for name, number in node.inputs:
            if name not in self._flat:
                raise pardnn.Error(
                    f"node {node.name} reads output {number} of the call {name}, whose function "
                    "does not give it"
                )

    def _drop_lost(self) -> None:
        """Calls whose effects nobody waits for are gone; so are control edges from them."""
        for node in self._flat.values():
            if any(one not in self._flat for one in node.controls):
                node.controls = [one for one in node.controls if one in self._flat]


def _instances(function: Any, prefix: str, given: dict[str, Tensor], where: str) -> Iterator[Node]:
    where = f"{where}function {function.signature.name}: "
    kinds = {one.name: one.op for one in function.node_def}
    definitions = nodes_of(_bare(function.node_def), where)
    for one, definition in zip(definitions.values(), function.node_def, strict=True):
        node = Node(prefix + one.name, one.op, device=one.device, attr=one.attr)
        for text in definition.input:
            if text.startswith("^"):
                name = text[1:]
                if name in kinds:
                    node.controls.append(prefix + name)
                elif name not in given:
                    raise pardnn.Error(f"{where}node {one.name} waits for {name!r}, not there")
                else:
                    node.controls.append(given[name][0])
            else:
                node.inputs.append(_tensor(text, prefix, given, kinds, f"{where}{one.name}"))
        yield node


def _bare(definitions: Iterable[Any]) -> Iterator[Any]:
    """Definitions without their inputs, which functions write in another way."""
    for one in definitions:
        yield _Bare(one.name, one.op, one.device, one.attr)


@dataclass
class _Bare:
    name: str
    op: str
    device: str
    attr: Any
    input: tuple[str, ...] = ()


def _results(function: Any, prefix: str, given: dict[str, Tensor], where: str) -> Iterator[Tensor]:
    kinds = {one.name: one.op for one in function.node_def}
    where = f"{where}function {function.signature.name}: "
    for argument in function.signature.output_arg:
        if argument.name not in function.ret:
            raise pardnn.Error(f"{where}nothing is returned as {argument.name}")
        yield _tensor(function.ret[argument.name], prefix, given, kinds, f"{where}the result")


def _tensor(
    text: str, prefix: str, given: dict[str, Tensor], kinds: dict[str, str], where: str
) -> Tensor:
    """`argument`, or `node:output:number`, where the number counts inside of that output."""
    name, _, rest = text.partition(":")
    if name in given and name not in kinds:
        return given[name]
    if name not in kinds:
        raise pardnn.Error(f"{where} reads {text!r}, and there is no node of that name")
    output, colon, number = rest.partition(":")
    if not colon:
        return prefix + name, tensor_of(text)[1]
    names = OUTPUT_NAMES.get(kinds[name], ())
    base = names.index(output) if output in names else 0
    if not number.isdecimal() or len(number) > 9:
        raise pardnn.Error(f"{where} reads {text!r}, expected node:output:number")
    return prefix + name, base + int(number)

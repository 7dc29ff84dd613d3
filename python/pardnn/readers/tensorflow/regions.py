"""While and If seen from outside: trips, variables touched, what passes through, arithmetic."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import pardnn
from pardnn.readers.tensorflow import types
from pardnn.readers.tensorflow.arithmetic import flops_of
from pardnn.readers.tensorflow.frames import in_order
from pardnn.readers.tensorflow.functions import Body, Library, Path
from pardnn.readers.tensorflow.known import Shape
from pardnn.readers.tensorflow.nodes import Node, Tensor
from pardnn.readers.tensorflow.optypes import LOOKS, READS, WHILES, written
from pardnn.readers.tensorflow.shapes import Bindings, Shapes
from pardnn.readers.tensorflow.variables import handles_of

_PASSES = frozenset({"Identity", "Enter", "Switch", "IdentityN"})
_ITEM = {"TensorListPushBack": 1, "TensorListSetItem": 2}
_FUNCTIONS = ("cond", "body", "then_branch", "else_branch")


@dataclass
class Region:
    """What one functional op does.

    `trips`: None where the file does not say. `writes`: by input number, whether the variable given
    there is written; `passed`: outputs that are the input of that number; `pushed`: bytes that one
    trip puts on the list that is this output, None where unknown; `flops` of one trip of all of it.
    """

    trips: int | None = 1
    writes: dict[int, bool] = field(default_factory=dict)
    passed: dict[int, int] = field(default_factory=dict)
    pushed: dict[int, int | None] = field(default_factory=dict)
    flops: int = 0


class Regions:
    """The functional ops of a graph, each function looked at once per node that runs it."""

    def __init__(self, library: Library, shapes: Shapes) -> None:
        self._library, self._shapes = library, shapes
        self._known: dict[object, Region] = {}

    def of(self, node: Node, path: Path = ()) -> Region:
        """The region of a node in the graph itself."""
        return self._region(node, self._shapes, path)

    def _region(self, node: Node, shapes: Shapes, path: Path) -> Region:
        given_shapes = tuple(shapes.shape(tensor) for tensor in node.inputs)
        known = self._known.get((path, node.name, given_shapes))
        if known is not None:
            return known
        region = self._known[path, node.name, given_shapes] = Region()
        names = [
            node.attr[name].func.name
            for name in _FUNCTIONS
            if name in node.attr and node.attr[name].func.name
        ]
        if "branches" in node.attr:
            names += [one.name for one in node.attr["branches"].list.func]
        flops = []
        for name in names:
            body = self._library.body(name, path, node.name)
            first = len(node.inputs) - len(body.arguments)
            if first < 0 or (first and node.op in WHILES):
                raise pardnn.Error(
                    f"node {node.name} gives function {name} {len(node.inputs)} inputs, expected "
                    f"{len(body.arguments)}"
                )
            given = list(given_shapes[first:])
            inside = self._inside(body, given, shapes, node.inputs[first:])
            self._note(region, body, inside, first)
            flops.append(sum(self._flops(one, inside, body.path) for one in body.nodes.values()))
            if node.op in WHILES and name == names[-1]:
                region.trips = _trips(node, self._conditions(node, path), body, inside, shapes)
                _note_results(region, body, inside)
        region.flops = sum(flops) if node.op in WHILES else max(flops, default=0)
        return region

    def _conditions(self, node: Node, path: Path) -> Body | None:
        name = node.attr["cond"].func.name if "cond" in node.attr else ""
        return self._library.body(name, path, node.name) if name else None

    def _inside(
        self, body: Body, given: list[Shape], outer: Shapes, inputs: list[Tensor]
    ) -> Shapes:
        order = in_order(body.nodes, "")
        shapes = dict(zip(body.arguments, given, strict=False))
        handles = handles_of(body.nodes, order)
        for name, tensor in zip(body.arguments, inputs, strict=False):
            if outer.dtype(tensor) == types.RESOURCE:
                handles[name, 0] = name
                shapes[name] = outer.of_variable(tensor)
        return Shapes(body.nodes, order, handles, Bindings(), shapes)

    def _note(self, region: Region, body: Body, inside: Shapes, first: int) -> None:
        """Which variables the body reads or writes."""
        numbers = {name: first + n for n, name in enumerate(body.arguments)}
        for node in body.nodes.values():
            nested: Region | None = None
            for position, tensor in enumerate(node.inputs):
                number = numbers.get(_origin(tensor, body)[0])
                if number is None or inside.dtype(tensor) != types.RESOURCE:
                    continue
                if node.op in _PASSES:
                    continue
                writes = position < written(node.op)
                if any(name in node.attr for name in (*_FUNCTIONS, "branches")):
                    nested = nested or self._region(node, inside, body.path)
                    writes = nested.writes.get(position, False)
                elif node.op not in LOOKS and node.op != READS and not writes:
                    writes = not node.op.startswith("ResourceGather")
                region.writes[number] = region.writes.get(number, False) or writes

    def _flops(self, node: Node, inside: Shapes, path: Path) -> int:
        if any(name in node.attr for name in (*_FUNCTIONS, "branches")):
            region = self._region(node, inside, path)
            return region.flops * (region.trips or 1)
        return flops_of(node, inside) or 0


def _origin(tensor: Tensor, body: Body) -> Tensor:
    for _ in range(len(body.nodes)):
        node = body.nodes[tensor[0]]
        if node.op not in _PASSES or not node.inputs:
            break
        tensor = node.inputs[min(tensor[1], len(node.inputs) - 1) if node.op == "IdentityN" else 0]
    return tensor


def _note_results(region: Region, body: Body, inside: Shapes) -> None:
    for number, result in enumerate(body.results):
        source = _origin(result, body)
        if number < len(body.arguments) and source[0] == body.arguments[number]:
            region.passed[number] = number
            continue
        node = body.nodes[source[0]]
        if len(node.inputs) > _ITEM.get(node.op, len(node.inputs)):
            region.pushed[number] = inside.size(node.inputs[_ITEM[node.op]])


def _trips(
    node: Node, condition: Body | None, body: Body, inside: Shapes, outer: Shapes
) -> int | None:
    """From a condition `counter < constant`; None where the loop depends on data."""
    if condition is None or not condition.results:
        return None
    known = Shapes(condition.nodes, in_order(condition.nodes, ""), {}, Bindings())
    bounds = []
    pending = [condition.results[0]]
    for _ in range(len(condition.nodes)):
        if not pending:
            break
        test = condition.nodes[_origin(pending.pop(), condition)[0]]
        if test.op == "LogicalAnd":
            pending += test.inputs
        if test.op not in ("Less", "LessEqual") or len(test.inputs) != 2:
            continue
        counter = _origin(test.inputs[0], condition)[0]
        if counter not in condition.arguments:
            continue
        number = condition.arguments.index(counter)
        first, step = outer.number(node.inputs[number]), _step(body, inside, number)
        limit = _limit(test.inputs[1], condition, known, node, outer)
        if first is None or limit is None or not step or step < 0:
            continue
        trips = (limit - first + (test.op == "LessEqual")) / step
        if math.isfinite(trips) and trips < 2**40:
            bounds.append(max(1, math.ceil(trips)))
    return min(bounds) if bounds else None


def _limit(
    tensor: Tensor, condition: Body, known: Shapes, node: Node, outer: Shapes
) -> float | None:
    source = _origin(tensor, condition)
    if source[0] in condition.arguments:
        return outer.number(node.inputs[condition.arguments.index(source[0])])
    return known.number(source)


def _step(body: Body, inside: Shapes, number: int) -> float | None:
    if number >= len(body.results):
        return None
    add = body.nodes[_origin(body.results[number], body)[0]]
    if add.op not in ("Add", "AddV2") or len(add.inputs) != 2:
        return None
    for own, other in ((0, 1), (1, 0)):
        if _origin(add.inputs[own], body)[0] == body.arguments[number]:
            return inside.number(add.inputs[other])
    return None

"""A while loop or call seen from outside: its trips, what it touches, saves and shares.

A plan contracts each loop to one op. Its body is read here once: how often it runs, which variables
it reads or updates, which outputs are inputs passed through, and how many bytes it pushes on the
lists that its gradient loop reads back.
"""

from __future__ import annotations

import logging
import math
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

from pardnn.tensorflow import compat, semantics
from pardnn.tensorflow.semantics import Source, Touch
from pardnn.tensorflow.statics import HANDLE_BYTES, Statics

# Trips of a loop whose number of trips depends on data.
_ASSUMED_TRIPS = 32
_PASS = semantics.ALIAS | compat.SPLITS
_ITEM = {"TensorListPushBack": 1, "TensorListSetItem": 2}

_LOG = logging.getLogger(__name__)
_told: set[str] = set()
"""Loops of which that was said; a function is captured more than once."""


@dataclass
class Body:
    """A function that a functional op runs, and what is known about its tensors."""

    graph: Any
    regions: Regions

    @property
    def statics(self) -> Statics:
        """What is known about the body's tensors."""
        return self.regions.statics


@dataclass
class Region:
    """What one functional op does, by input and output number."""

    trips: int = 1
    touches: dict[int, Touch] = field(default_factory=dict)
    sparse: set[int] = field(default_factory=set)
    """Inputs: variables that are updated in part, and copied by their readers from then on."""
    sources: list[Source] = field(default_factory=list)
    saved_bytes: dict[int, int] = field(default_factory=dict)
    """Outputs that are lists: bytes of the items that this op has put on them."""
    bodies: list[Body] = field(default_factory=list)
    """What one trip runs, the condition first."""


class Regions:
    """All functional ops of one graph, each read once; `statics` describes the graph's tensors."""

    def __init__(
        self, graph: Any, given: dict[str, Any] | None = None, library: Any = None
    ) -> None:
        self._library = compat.FunctionLibrary(graph) if library is None else library
        self._bodies: dict[str, list[Body]] = {}
        self._known: dict[str, Region] = {}
        self.assumed: set[str] = set()
        """Loops whose number of trips is not known before they run."""
        self.statics = Statics(graph, self._loop_body, given)

    def of(self, op: tf.Operation) -> Region:
        """The region of `op`, which must be of a type in `compat.FUNCTIONAL_OPS`."""
        if op.name not in self._known:
            self._known[op.name] = self._loop(op) if op.type in semantics.LOOPS else self._call(op)
        return self._known[op.name]

    def _loop_body(self, op: tf.Operation, statics: Statics) -> Body:
        """The body of a loop with shapes that hold in every trip."""
        given = [statics.shape(t) for t in op.inputs]
        items = {
            n: statics.content_shape(t)
            for n, t in enumerate(op.inputs)
            if statics.content_shape(t) is not None
        }
        body = self._body(op.get_attr("body").name, given, items)
        kept = [
            s if str(body.statics.shape(result)) == str(s) else output.shape
            for s, result, output in zip(given, body.graph.outputs, op.outputs, strict=True)
        ]
        if [str(s) for s in kept] != [str(s) for s in given]:
            body = self._body(op.get_attr("body").name, kept, items)
        condition = self._body(op.get_attr("cond").name, kept, items)
        self._bodies[op.name] = [condition, body]
        return body

    def _body(self, name: str, shapes: list[Any], items: dict[int, Any]) -> Body:
        graph = compat.body_graph(self._library, name, shapes)
        named = {graph.inputs[n].name: shape for n, shape in items.items()}
        return Body(graph, Regions(graph, named, self._library))

    def _call(self, op: tf.Operation) -> Region:
        region = Region(sources=[semantics.FRESH] * len(op.outputs))
        for name in compat.functions_of(op.node_def):
            count = len(self._library[name].signature.input_arg)
            given = list(op.inputs)[len(op.inputs) - count :]
            body = self._body(name, [self.statics.shape(t) for t in given], {})
            region.bodies.append(body)
            self._note_touches(region, body, len(op.inputs) - count)
        return region

    def _loop(self, op: tf.Operation) -> Region:
        region = Region(bodies=self._bodies[op.name])
        condition, body = region.bodies
        region.trips = self._trips(op, condition.graph, body)
        for one in region.bodies:
            self._note_touches(region, one, 0)
        pushed: set[str] = set()
        for number, result in enumerate(body.graph.outputs):
            passed = _origin(result).name == body.graph.inputs[number].name
            if passed or result.dtype == tf.resource:
                region.sources.append(Source(alias=number))
            elif result.dtype == tf.variant:
                self._note_list(region, body, number, pushed)
            else:
                region.sources.append(semantics.FRESH)
        return region

    def _note_list(self, region: Region, body: Body, number: int, pushed: set[str]) -> None:
        """A list that the body adds to holds an item per trip; one it takes from stays as is."""
        result, given = body.graph.outputs[number], body.graph.inputs[number]
        items = list(_pushed(result, given))
        if not items:
            region.sources.append(Source(alias=number))
            return
        buffers = [_buffer(item, body.statics) for item in items]
        lent = [_list_behind(buffer, body.graph) for buffer in buffers]
        if None not in lent:
            # Items taken from a list that entered the loop: this output keeps that list alive.
            region.sources.append(Source(alias=lent[0]))
            return
        region.sources.append(semantics.FRESH)
        region.saved_bytes[number] = HANDLE_BYTES
        for buffer in buffers:
            if buffer.name in pushed:
                continue  # another list holds this buffer already
            pushed.add(buffer.name)
            constant = buffer.op.type in ("Placeholder", "Const", "ReadVariableOp")
            constant = constant and not _changes(buffer, body.graph)
            trips = 1 if constant or _overwrites(result, given, body) else region.trips
            held = 0 if buffer.op.type == "ReadVariableOp" else body.statics.bytes(buffer)
            region.saved_bytes[number] += held * trips

    def _note_touches(self, region: Region, body: Body, offset: int) -> None:
        numbers = {t.name: n + offset for n, t in enumerate(body.graph.inputs)}
        for inner in body.graph.get_operations():
            for position, tensor in enumerate(inner.inputs):
                number = numbers.get(_origin(tensor).name)
                if tensor.dtype != tf.resource or number is None or inner.type in _PASS:
                    continue
                touch = semantics.touch(inner.type)
                if inner.type in compat.FUNCTIONAL_OPS:
                    nested = body.regions.of(inner)
                    touch = nested.touches.get(position, Touch.LOOK)
                if semantics.makes_copy_on_read(inner.type):
                    region.sparse.add(number)
                if region.touches.get(number) != Touch.UPDATE:
                    region.touches[number] = touch

    def _trips(self, op: tf.Operation, condition: Any, body: Body) -> int:
        bounds = list(self._bounds(op, condition, body))
        if bounds:
            return max(1, min(bounds))
        rows = [
            self.statics.shape(t.op.inputs[0])[0]
            for t in op.inputs
            if t.op.type == "TensorListFromTensor"
        ]
        if rows and None not in rows:
            return int(max(rows))
        self.assumed.add(op.name)
        if op.name not in _told:
            _told.add(op.name)
            _LOG.warning(
                "how often the loop %s runs depends on data; its time and memory are planned for "
                "%d trips, and more of them can need more memory than the plan says",
                op.name,
                _ASSUMED_TRIPS,
            )
        return _ASSUMED_TRIPS

    def _bounds(self, op: tf.Operation, condition: Any, body: Body) -> Iterator[int]:
        """Trips allowed by each comparison `counter < bound` that the condition makes."""
        numbers = {t.name: n for n, t in enumerate(condition.inputs)}
        for test in condition.get_operations():
            if test.type not in ("Less", "LessEqual"):
                continue
            counter = numbers.get(_origin(test.inputs[0]).name)
            if counter is None:
                continue
            limit = self._limit(op, condition, numbers, test.inputs[1])
            first = self.statics.value(op.inputs[counter])
            step = self._step(op, body, counter)
            if limit is None or first is None or step is None or step <= 0:
                continue
            whole = float(limit) - float(first) + (test.type == "LessEqual")
            yield math.ceil(whole / step)

    def _step(self, op: tf.Operation, body: Body, number: int) -> float | None:
        """How much one trip adds to a counter, if that is known before the loop runs."""
        add = _origin(body.graph.outputs[number]).op
        if add.type not in ("AddV2", "Add"):
            return None
        entering = {t.name: n for n, t in enumerate(body.graph.inputs)}
        for own, other in ((0, 1), (1, 0)):
            if entering.get(_origin(add.inputs[own]).name) != number:
                continue
            added = _origin(add.inputs[other])
            value = body.statics.value(added)
            if added.name in entering and not _changes(added, body.graph):
                value = self.statics.value(op.inputs[entering[added.name]])
            return None if value is None else float(value)
        return None

    def _limit(
        self, op: tf.Operation, condition: Any, numbers: dict[str, int], tensor: tf.Tensor
    ) -> float | None:
        source = _origin(tensor)
        number = numbers.get(source.name)
        if number is None:
            value = self._bodies[op.name][0].statics.value(source)
            return None if value is None else float(value)
        outer = _origin(op.inputs[number])
        if outer.op.type in semantics.LOOPS:
            # A gradient loop counts up to what the counter of its forward loop has reached.
            return float(self.of(outer.op).trips)
        value = self.statics.value(outer)
        return None if value is None else float(value)


_regions: weakref.WeakKeyDictionary[Any, Regions] = weakref.WeakKeyDictionary()


def regions_of(graph: Any) -> Regions:
    """The regions of `graph`, worked out once."""
    if graph not in _regions:
        _regions[graph] = Regions(graph)
    return _regions[graph]


def _origin(tensor: tf.Tensor) -> tf.Tensor:
    """Where `tensor` comes from when ops that pass their input through are skipped."""
    while tensor.op.type in _PASS and tensor.op.inputs:
        tensor = tensor.op.inputs[tensor.value_index if tensor.op.type == "IdentityN" else 0]
    return tensor


def _buffer(tensor: tf.Tensor, statics: Statics) -> tf.Tensor:
    """The tensor in whose buffer `tensor` lives."""
    while True:
        if tensor.op.type in compat.FUNCTIONAL_OPS or not tensor.op.inputs:
            return tensor
        alias = semantics.sources(tensor.op, statics)[tensor.value_index].alias
        if alias is None:
            return tensor
        tensor = tensor.op.inputs[alias]


def _overwrites(result: tf.Tensor, given: tf.Tensor, body: Body) -> bool:
    """Whether each trip sets the same item: so does a layer that returns its last state."""
    op = _origin(result).op
    if op.type != "TensorListSetItem" or _origin(op.inputs[0]).name != given.name:
        return False
    return body.statics.value(op.inputs[1]) is not None


def _list_behind(buffer: tf.Tensor, body: Any) -> int | None:
    """The input that is the list from which `buffer` was taken, if nothing is removed."""
    if buffer.op.type != "TensorListGetItem":
        return None
    source = _origin(buffer.op.inputs[0])
    for number, given in enumerate(body.inputs):
        if given.name == source.name and not _changes(given, body):
            return number
    return None


def _changes(tensor: tf.Tensor, body: Any) -> bool:
    """Whether an input of a loop's body is another tensor at the next trip."""
    for given, result in zip(body.inputs, body.outputs, strict=True):
        if given.name == tensor.name:
            return bool(_origin(result).name != given.name)
    return False


def _pushed(result: tf.Tensor, given: tf.Tensor) -> Iterator[tf.Tensor]:
    """What one trip puts on the list that enters as `given` and leaves as `result`."""
    tensor = _origin(result)
    while tensor.name != given.name:
        if tensor.op.type in _ITEM:
            yield tensor.op.inputs[_ITEM[tensor.op.type]]
        if not tensor.op.inputs:
            return
        tensor = _origin(tensor.op.inputs[0])

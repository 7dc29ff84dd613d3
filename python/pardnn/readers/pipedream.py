"""Profiles of msr-fiddle/pipedream: a line a node, then a line an edge.

    node7 -- LSTM(2048, 1024) -- forward_compute_time=3.190, backward_compute_time=5.348, …
        node6 -- node7

A profile measures the layers of a training step; the step is made of it. A layer becomes a forward
op, a backward op and, where it has parameters, a variable and its update, all in one group. The
backward op reads what the layer read (a layer that works in place: what it made), the parameters,
and a gradient from each reader; it makes a gradient of each tensor that the layer read and of the
parameters. Layers without inputs get no gradient. Updates were not measured and last no time. A
profile in which no layer has a backward time is one of inference, and becomes forward ops only.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pardnn
from pardnn.readers.content import Content
from pardnn.readers.errors import ReadError, quoted
from pardnn.readers.reading import Options, Reading, started
from pardnn.readers.values import bytes_of, decimal, ns_of_ms, text_of

NAME = "pipedream"
OPTIONS: tuple[str, ...] = ()

_MARK = " -- forward_compute_time="
_FIELDS = ("forward_compute_time", "backward_compute_time", "activation_size", "parameter_size")
_SELECTS = "__getitem__("


@dataclass
class _Layer:
    key: str
    what: str
    forward_ns: int
    backward_ns: int
    outputs: list[int]
    parameters: int
    inputs: list[str] = field(default_factory=list)  # keys of layers
    readers: list[str] = field(default_factory=list)

    @property
    def type(self) -> str:
        return self.what.split("(", 1)[0].strip() or "Layer"

    @property
    def is_in_place(self) -> bool:
        return "inplace" in self.what

    @property
    def selected(self) -> int | None:
        """Which output of its input a ``__getitem__`` layer is."""
        rest = self.what.removeprefix(_SELECTS).rstrip(") ")
        return int(rest[:9]) if self.what.startswith(_SELECTS) and rest.isdecimal() else None


def recognise(content: Content) -> bool:
    """Text whose first line is a node with its times."""
    return content.is_text and _MARK in content.head.lstrip().split("\n", 1)[0]


def read(content: Content, options: Options) -> Reading:
    """The graph of a training step, or of inference."""
    del options
    layers, edges = _parse(content)
    trains = any(layer.backward_ns for layer in layers.values())
    counts = {"nodes": len(layers), "edges": edges}
    graph = started(NAME, "measured", counts)
    step = _Step(graph, layers, trains)
    for layer in layers.values():
        step.add_forward(layer)
        if trains:
            step.add_backward(layer)
    notes = ["optimizer slots are not in a profile, and updates last no time"]
    if not trains:
        notes = ["no layer has a backward time, so this is a graph of inference"]
    return Reading(graph, NAME, notes, counts)


def _parse(content: Content) -> tuple[dict[str, _Layer], int]:
    layers: dict[str, _Layer] = {}
    pairs: list[tuple[str, str, str]] = []
    for number, line in enumerate(content.text.splitlines(), 1):
        if not line.strip():
            continue
        place = f"{content.name}:{number}"
        parts = line.strip().split(" -- ")
        if line[0] in "\t " and len(parts) == 2:
            pairs.append((parts[0], parts[1], place))
            continue
        layer = _layer(parts, place)
        if layer.key in layers:
            raise ReadError(place, f"{quoted(parts[0])} a second time", "names that differ")
        layers[layer.key] = layer
    for source, reader, place in pairs:
        keys = [pardnn.escape_key(name) for name in (source, reader)]
        for name, key in zip((source, reader), keys, strict=True):
            if key not in layers:
                raise ReadError(place, f"an edge of {quoted(name)}", "a node of the lines above")
        layers[keys[1]].inputs.append(keys[0])
        layers[keys[0]].readers.append(keys[1])
    return layers, len(pairs)


def _layer(parts: list[str], place: str) -> _Layer:
    """A layer of the parts of its line; what is behind its numbers (a stage) is not used."""
    at = next((n for n, part in enumerate(parts) if part.startswith(_FIELDS[0])), 0)
    values = dict(item.partition("=")[::2] for item in parts[at].split(", ")) if at >= 2 else {}
    for name in _FIELDS:
        if name not in values:
            raise ReadError(place, quoted(" -- ".join(parts)), f"a node with {name}=NUMBER")
    sizes = values["activation_size"].strip("[]").split(";")
    number = {name: decimal(values[name], place, name) for name in _FIELDS if "_size" not in name}
    return _Layer(
        pardnn.escape_key(text_of(parts[0])),
        text_of(" -- ".join(parts[1:at])),
        ns_of_ms(number["forward_compute_time"], place, "forward_compute_time"),
        ns_of_ms(number["backward_compute_time"], place, "backward_compute_time"),
        [bytes_of(decimal(size, place, "activation_size"), place, "a size") for size in sizes],
        bytes_of(decimal(values["parameter_size"], place, "parameter_size"), place, "a size"),
    )


class _Step:
    """Adds the ops of layers to a graph."""

    def __init__(self, graph: pardnn.Graph, layers: dict[str, _Layer], trains: bool) -> None:
        self._graph = graph
        self._layers = layers
        self._trains = trains
        self._read = {key: self._tensors(layer) for key, layer in layers.items()}
        # For each layer, who makes a gradient of one of its tensors, and which output that is.
        self._gradients: dict[str, list[str]] = {key: [] for key in layers}
        for key, read in self._read.items():
            wanted = [source for source, _ in read if self._wants_gradient(source)]
            for place, source in enumerate(wanted):
                self._gradients[source].append(f"{key}.backward:{place}")

    def add_forward(self, layer: _Layer) -> None:
        variable = f"{layer.key}.parameters"
        group = layer.key if layer.parameters else None
        read = self._read[layer.key]
        inputs = [_reference(source, output) for source, output in read]
        outputs: list[int | str] = list(layer.outputs)
        if read and len(outputs) == 1:
            source, output = read[0]
            same = self._layers[source].outputs[output] == outputs[0]
            if same and layer.selected is not None:
                outputs = ["=0"]
            elif same and layer.is_in_place and outputs[0] != 0:
                outputs = [f"{outputs[0]}~0"]
        if not layer.readers and not self._trains:
            outputs[-1] = f"{outputs[-1]}*"
        if layer.parameters:
            self._graph.var(variable, layer.parameters, group=group)
            inputs.append(variable)
        cost, name = layer.forward_ns, layer.what or None
        self._graph.op(
            layer.key, _type(layer), cost, inputs, outputs, group=group, phase="f", name=name
        )

    def add_backward(self, layer: _Layer) -> None:
        if not self._wants_gradient(layer.key):
            return
        key, variable = f"{layer.key}.backward", f"{layer.key}.parameters"
        group = layer.key if layer.parameters else None
        read = self._read[layer.key]
        kept = [_reference(source, output) for source, output in read]
        if layer.is_in_place:
            kept = [layer.key]
        if layer.selected is not None:
            kept = []
        if not layer.readers:
            kept = [*kept, layer.key] if layer.key not in kept else kept
        gradients: list[int] = [
            self._layers[source].outputs[output]
            for source, output in read
            if self._wants_gradient(source)
        ]
        inputs = [*kept, *self._gradients[layer.key]]
        if layer.parameters:
            inputs.append(variable)
            gradients.append(layer.parameters)
        self._graph.op(
            key, f"{_type(layer)}Grad", layer.backward_ns, inputs, gradients, group=group, phase="b"
        )
        if layer.parameters:
            made = _reference(key, len(gradients) - 1)
            self._graph.op(
                f"{layer.key}.update", "Update", 0, [made, f"!{variable}"], group=group, phase="u"
            )

    def _wants_gradient(self, key: str) -> bool:
        layer = self._layers[key]
        return bool(layer.inputs or layer.parameters)

    def _tensors(self, layer: _Layer) -> list[tuple[str, int]]:
        """The tensors that a layer reads: (layer, output); of a list all, or the selected one."""
        tensors = []
        for source in layer.inputs:
            count = len(self._layers[source].outputs)
            chosen = layer.selected
            if chosen is not None and chosen < count:
                tensors.append((source, chosen))
            else:
                tensors += [(source, output) for output in range(count)]
        return tensors


def _reference(key: str, output: int) -> str:
    return f"{key}:{output}" if output else key


def _type(layer: _Layer) -> str:
    return pardnn.escape_key(layer.type)

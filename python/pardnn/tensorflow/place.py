"""A capture with devices becomes a function that runs over them, with static shapes and today's
variables.

Nothing is decided here: `StepPlacement` names a device for every node that runs once, and the rest
(constants, batch inputs and what is computed from them alone, cheap chains of scalars) is copied to
each device that reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

from pardnn.tensorflow import compat, constants, gates, passes
from pardnn.tensorflow.branches import branches_of, may_wait
from pardnn.tensorflow.gates import Gate, Hold
from pardnn.tensorflow.tracing import Capture

# Flat names of their own: a placeholder called `a/b/resource` would make `a/b` a used name scope,
# and importing would silently rename an op `a/b`.
INPUT_PREFIX = "pardnn_in_"
CAPTURED_PREFIX = "pardnn_cap_"
OUTPUT_PREFIX = "pardnn_out_"
COPY_PREFIX = "pardnn_copy"

_SMALL_RESULT_BYTES = 1024

Shapes = Sequence[Any]
"""Static shapes of the tensors given at each call, one for each of `Capture.inputs`."""


@dataclass(frozen=True)
class StepPlacement:
    """Devices of a step's nodes, by TensorFlow device string.

    Nodes absent from `devices`, and those in `clone`, are copied to every device that reads them.
    `control_edges` are (before, after) pairs that enforce an order. `values` are tensors, by name,
    whose value is known: they become constants. `gates` keep transfers to the plan's time, `holds`
    copies from being taken over.
    """

    devices: dict[str, str]
    control_edges: list[tuple[str, str]] = field(default_factory=list)
    clone: frozenset[str] = frozenset()
    values: dict[str, Any] = field(default_factory=dict)
    gates: list[Gate] = field(default_factory=list)
    holds: list[Hold] = field(default_factory=list)


def base_graph(capture: Capture, batch_shapes: Shapes) -> Any:
    """The step as an unplaced FuncGraph with static shapes; its nodes have the names of
    `capture.graph_def`.

    Input i is `pardnn_in_i`, captured tensor i `pardnn_cap_i`.
    """
    return _rebuild(capture, batch_shapes, list(capture.graph_def.node), capture.outputs)


def place(
    capture: Capture,
    batch_shapes: Shapes,
    placement: StepPlacement,
    *,
    fetch_bytes: int = _SMALL_RESULT_BYTES,
) -> Callable[[Sequence[Any]], list[Any]]:
    """A function over flat inputs that runs each node on its device and returns the flat results.

    Results up to `fetch_bytes` are brought to the caller within the step, larger ones stay where
    they were computed until somebody reads them. The function holds the handles that the variables
    have now: after a variable moved, place again.
    """
    graph = _rebuild(capture, batch_shapes, _placed_nodes(capture, placement), capture.outputs)
    here = compat.local_device()
    with graph.as_default(), tf.device(here):
        for number, tensor in enumerate(graph.outputs):
            if _bytes(tensor) <= fetch_bytes:
                graph.outputs[number] = tf.identity(tensor, name=f"{OUTPUT_PREFIX}{number}")
    return compat.callable_from_graph(graph)


def _bytes(tensor: Any) -> float:
    elements = tensor.shape.num_elements()
    return float("inf") if elements is None else elements * tensor.dtype.size


def _placed_nodes(capture: Capture, placement: StepPlacement) -> list[Any]:
    """The nodes with devices and control edges, copied where they are needed on several devices."""
    needed = [*map(passes.producer, capture.outputs), *capture.side_effects]
    given = constants.folded(capture.graph_def.node, placement.values, needed)
    homes = _homes(capture, placement, given)
    branches = branches_of(given)
    after: dict[str, list[str]] = {}
    for first, second in placement.control_edges:
        if may_wait(first, second, branches):
            after.setdefault(second, []).append("^" + first)

    def local(edge: str, device: str) -> str:
        name = passes.producer(edge)
        devices = homes.get(name)
        if devices is None or device == devices[0] or device not in devices:
            return edge
        return edge.replace(name, _copy_name(name, devices.index(device)), 1)

    nodes = []
    for node in given:
        if node.op == "Placeholder":
            nodes.append(node)
            continue
        for number, device in enumerate(homes[node.name]):
            placed = tf.compat.v1.NodeDef()
            placed.CopyFrom(node)
            placed.device = device
            edges = [local(edge, device) for edge in (*node.input, *after.get(node.name, ()))]
            if number:
                placed.name = _copy_name(node.name, number)
            passes.set_edges(placed, edges)
            nodes.append(placed)
    return gates.insert(nodes, placement.gates, placement.holds)


def _copy_name(name: str, number: int) -> str:
    return f"{COPY_PREFIX}{number}/{name}"


def _homes(capture: Capture, placement: StepPlacement, nodes: list[Any]) -> dict[str, list[str]]:
    """The devices of every node but placeholders; several for one that is copied to its readers."""
    homes: dict[str, list[str]] = {}
    wanted: dict[str, dict[str, None]] = {}
    for node in reversed(passes.in_topological_order(nodes)):
        if node.op == "Placeholder":
            continue
        if node.name in capture.host:
            homes[node.name] = [""]
        elif node.name in placement.devices and node.name not in placement.clone:
            homes[node.name] = [placement.devices[node.name]]
        else:
            # What only the caller reads (a result that does not depend on a variable) stays with
            # it.
            homes[node.name] = list(wanted.get(node.name, {"": None}))
        for edge in node.input:
            wanted.setdefault(passes.producer(edge), {}).update(dict.fromkeys(homes[node.name]))
    return homes


def _rebuild(capture: Capture, batch_shapes: Shapes, nodes: list[Any], outputs: list[str]) -> Any:
    """A FuncGraph of `nodes`, inputs with the given shapes, captures bound to what they are now."""
    if len(batch_shapes) != len(capture.inputs):
        raise ValueError(f"{len(batch_shapes)} shapes for {len(capture.inputs)} inputs")
    graph = compat.new_func_graph("pardnn_step")
    given: dict[str, Any] = {}
    with graph.as_default():
        for number, (one, shape) in enumerate(zip(capture.inputs, batch_shapes, strict=True)):
            tensor = tf.compat.v1.placeholder(one.dtype, shape, name=f"{INPUT_PREFIX}{number}")
            graph.inputs.append(tensor)
            given[one.placeholder] = tensor
        for number, captured in enumerate(capture.captured):
            given[captured.placeholder] = compat.capture_into(
                graph, captured.current(), f"{CAPTURED_PREFIX}{number}"
            )
    graph_def = _without_placeholders(capture, nodes, given)
    present = {passes.producer(edge) for node in graph_def.node for edge in node.input}
    compat.import_into(graph, graph_def, {f"{n}:0": t for n, t in given.items() if n in present})
    for name in outputs:
        source = given.get(passes.producer(name))
        graph.outputs.append(graph.get_tensor_by_name(name) if source is None else source)
    graph.control_outputs.extend(graph.get_operation_by_name(n) for n in capture.side_effects)
    return graph


def _without_placeholders(capture: Capture, nodes: list[Any], given: dict[str, Any]) -> Any:
    """The GraphDef to import: library functions get names of this rebuild, since a name may be used
    once only.
    """
    graph_def = tf.compat.v1.GraphDef()
    graph_def.versions.CopyFrom(capture.graph_def.versions)
    graph_def.node.extend(node for node in nodes if node.name not in given)
    for node in graph_def.node:
        node.attr.pop("_class", None)
        node.attr.pop("_output_shapes", None)
    library = capture.graph_def.library
    if library.function:
        graph_def.library.CopyFrom(library)
        passes.rename_functions(
            graph_def,
            {f.signature.name: compat.unique_name(f.signature.name) for f in library.function},
        )
    return graph_def

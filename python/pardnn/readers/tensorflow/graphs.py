"""TensorFlow's graphs: GraphDef, MetaGraph and SavedModel, in binary or text form."""

from __future__ import annotations

import gc
from typing import Any

import pardnn
from pardnn.readers.content import Content
from pardnn.readers.errors import ReadError
from pardnn.readers.reading import Options, Reading
from pardnn.readers.tensorflow import devices, files, pruning
from pardnn.readers.tensorflow.emit import graph_of
from pardnn.readers.tensorflow.frames import frames_of
from pardnn.readers.tensorflow.functions import Library
from pardnn.readers.tensorflow.nodes import counts_of, nodes_of, tensor_of
from pardnn.readers.tensorflow.profiles import Profile, profile_of
from pardnn.readers.tensorflow.regions import Regions
from pardnn.readers.tensorflow.shapes import Bindings, Shapes
from pardnn.readers.tensorflow.step import Step
from pardnn.readers.tensorflow.variables import handles_of

NAME = "tensorflow"
OPTIONS: tuple[str, ...] = ("dims", "shapes", "trips", "costs")
_BATCH = "batch"


def recognise(content: Content) -> bool:
    """Whether a file is a graph, told by its first fields."""
    return files.kind_of(content.data) in files.GRAPHS


def read(content: Content, options: Options) -> Reading:
    """The graph of one training step. Raises ReadError, pardnn.Error."""
    # Everything made here is kept to the end: looking for garbage takes a third of the time.
    collects = gc.isenabled()
    gc.disable()
    try:
        return _read(content, options)
    finally:
        if collects:
            gc.enable()


def _read(content: Content, options: Options) -> Reading:
    message = _load(content)
    graph, fetches, counts = _parts(content, message)
    nodes = nodes_of(graph.node, "")
    if not nodes:
        raise ReadError(content.name, "a graph without nodes", "at least one")
    library = Library(graph, "")
    nodes = library.inline(nodes)
    kept, what = pruning.step_of(nodes, fetches)
    notes = []
    if len(kept) < len(nodes):
        notes.append(f"{len(kept)} of {len(nodes)} nodes are the step, those behind {what}")
        nodes = {name: node for name, node in nodes.items() if name in kept}
    frames = frames_of(nodes, "")
    handles = handles_of(nodes, frames.order)
    shapes = Shapes(
        nodes, frames.order, handles, _bindings(options, nodes, graph.versions.producer)
    )
    regions = Regions(library, shapes)
    fetched = [t for node in nodes.values() if node.op == "_Retval" for t in node.inputs]
    fetched += [tensor_of(name) for name in fetches if name in nodes and shapes.outputs(name)]
    step = Step(nodes, frames, shapes, handles, regions, options.trips, fetched)
    notes += step.notes
    notes += devices.notes(nodes.values())
    profile = Profile() if options.costs is None else profile_of(options.costs)
    built, more = graph_of(step, nodes, shapes, profile, options, counts)
    return Reading(built, NAME, [*notes, *more], counts)


def _load(content: Content) -> Any:
    kind = files.kind_of(content.data)
    assert kind is not None
    try:
        return files.load(content, kind)
    except ImportError:
        raise ReadError(
            content.name,
            "a file of TensorFlow's",
            "the package protobuf, which reads them; pip install protobuf",
        ) from None


def _parts(content: Content, message: Any) -> tuple[Any, list[str], dict[str, int]]:
    """The GraphDef in a file, what it says training runs, and its counts."""
    name = message.DESCRIPTOR.name
    if name == "GraphDef":
        return message, [], counts_of(message)
    more = {}
    if name == "SavedModel":
        more["metagraphs"] = len(message.meta_graphs)
        if not message.meta_graphs:
            raise ReadError(content.name, "a SavedModel without graphs", "at least one")
        message = message.meta_graphs[0]
    graph = message.graph_def
    return graph, pruning.fetches_of(message), counts_of(graph) | more


def _bindings(options: Options, nodes: Any, version: int) -> Bindings:
    unknown = [name for name in options.dims if name != _BATCH]
    if unknown:
        raise pardnn.Error(
            f"--dim {unknown[0]}: dimensions have no names here; --dim batch=N binds the first one "
            "of every input, --shape NAME=N,… a whole input"
        )
    for name in options.shapes:
        if name not in nodes:
            raise pardnn.Error(f"--shape {name}: the step has no node of that name")
    return Bindings(options.shapes, options.dims.get(_BATCH), version < 24)

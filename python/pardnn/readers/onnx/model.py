"""A model made ready to be read: functions inlined, dimensions bound, shapes inferred."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import onnx
import onnx.inliner
import onnx.shape_inference
from google.protobuf.message import DecodeError

from pardnn.readers.content import Content
from pardnn.readers.dimensions import evaluate
from pardnn.readers.errors import ReadError, quoted
from pardnn.readers.onnx.folding import fold
from pardnn.readers.reading import Options
from pardnn.readers.wire import BYTES, fields

# Values of small tensors are shapes that others depend on; no shape depends on those of large ones.
_SMALL_BYTES = 4096
_ROUNDS = 12
_GRAPH_FIELD, _NODE_FIELD = 7, 1
_LEAST_NODE_BYTES = 24  # a type, an input and an output with names of a few letters
_DATA = ("raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data")


def parsed(content: Content) -> Any:
    """The model as its file has it. Raises ReadError."""
    _check_size(content)
    model = onnx.ModelProto()
    try:
        model.ParseFromString(content.data)
    except DecodeError:
        raise ReadError(content.name, "a damaged model", "a whole one") from None
    return model


def _check_size(content: Content) -> None:
    """Refuses a file of ops that are next to nothing: each takes far more memory than its bytes."""
    count = 0
    most = len(content.data) // _LEAST_NODE_BYTES + 10_000
    for number, wire, begin, end in fields(content.data):
        if number != _GRAPH_FIELD or wire != BYTES:
            continue
        for inner, _, _, _ in fields(content.data, begin, end):
            count += inner == _NODE_FIELD
            if count > most:
                expected = f"at most {most} in a file of this size"
                raise ReadError(content.name, f"more than {most} ops", expected)


def check_texts(message: Any, content: Content) -> None:
    """Refuses text that is no UTF-8, which the library hands out as bytes."""
    for field, value in message.ListFields():
        values = value if hasattr(value, "extend") else (value,)
        if field.type == field.TYPE_MESSAGE:
            for each in values:
                check_texts(each, content)
        elif field.type == field.TYPE_STRING:
            for each in values:
                if isinstance(each, bytes):
                    found = f"the {field.name} {quoted(each[:40])}"
                    raise ReadError(content.name, found, "text in UTF-8")


def with_training(model: Any) -> dict[str, str]:
    """Puts the algorithm of a model's training behind its graph.

    Answers which tensor becomes the new value of which variable. Further algorithms, of other
    stages of training, are not part of the same step.
    """
    if not model.training_info:
        return {}
    training = model.training_info[0]
    model.graph.node.extend(training.algorithm.node)
    model.graph.initializer.extend(training.algorithm.initializer)
    model.graph.value_info.extend(training.algorithm.value_info)
    return {each.key: each.value for each in training.update_binding}


def inlined(model: Any, content: Content) -> Any:
    """The model without calls of its own functions. Raises ReadError where they never end."""
    if not model.functions:
        return model
    _check_calls(model, content)
    try:
        return onnx.inliner.inline_local_functions(model)
    except Exception as error:  # its C++ half throws whatever it likes
        found = f"functions that cannot be inlined ({str(error).splitlines()[0][:100]})"
        raise ReadError(content.name, found, "a valid model") from None


def bind(model: Any, options: Options, content: Content) -> list[str]:
    """Gives dimensions and inputs the values of the options; names of dimensions still open."""
    initial = {each.name for each in model.graph.initializer}
    inputs = {each.name: each for each in model.graph.input if each.name not in initial}
    values = dict(options.dims)
    for name, dims in options.shapes.items():
        _set_shape(inputs, name, dims, values, content)
    used: set[str] = set()
    still_open: dict[str, None] = {}
    for info in inputs.values():
        for dim in _bound(info, values, used, options):
            still_open[dim.dim_param or f"of {info.name}"] = None
    for info in _inner_infos(model.graph):
        _bound(info, values, used, options)
    for name in options.dims:
        if name not in used:
            names = quoted(", ".join(still_open) or "none")
            raise ReadError(f"{content.name}: --dim {name}", f"the open dimensions {names}", "one")
    return list(still_open)


def _set_shape(
    inputs: dict[str, Any],
    name: str,
    dims: tuple[int, ...],
    values: dict[str, int],
    content: Content,
) -> None:
    place = f"{content.name}: --shape {name}"
    if name not in inputs:
        raise ReadError(place, f"the inputs {quoted(', '.join(inputs))}", "the name of one")
    shape = inputs[name].type.tensor_type.shape
    if shape.dim and len(shape.dim) != len(dims):
        raise ReadError(place, f"{len(dims)} dimensions", str(len(shape.dim)))
    while len(shape.dim) < len(dims):
        shape.dim.add()
    for dim, value in zip(shape.dim, dims, strict=True):
        if dim.dim_value > 0 and dim.dim_value != value:
            raise ReadError(place, f"the dimension {value}", str(dim.dim_value))
        if dim.dim_param:
            values.setdefault(dim.dim_param, value)
        dim.dim_value = value


def _bound(info: Any, values: dict[str, int], used: set[str], options: Options) -> list[Any]:
    """Gives the dimensions of a tensor their values; those that have none."""
    without = []
    for dim in info.type.tensor_type.shape.dim:
        value = evaluate(dim.dim_param, values) if dim.dim_param else None
        if value is not None:
            used.update(name for name in options.dims if name in dim.dim_param)
            dim.dim_value = value
        elif dim.dim_value <= 0:
            if dim.HasField("dim_value"):
                dim.ClearField("dim_value")  # what exporters write where they do not know
            without.append(dim)
    return without


def _inner_infos(graph: Any) -> Iterator[Any]:
    """Descriptions of all tensors but the inputs, and of those in subgraphs."""
    yield from graph.value_info
    yield from graph.output
    for inner in subgraphs(graph.node):
        yield from inner.input
        yield from _inner_infos(inner)


def subgraphs(nodes: Any) -> Iterator[Any]:
    """The graphs that are attributes of nodes, without those inside of them."""
    for node in nodes:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield attribute.g
            yield from attribute.graphs


def strip(graph: Any) -> None:
    """Takes the values of large tensors out of a graph: a shape says all about their size."""
    for tensor in graph.initializer:
        if tensor.ByteSize() > _SMALL_BYTES:
            for field in _DATA:
                tensor.ClearField(field)
    for inner in subgraphs(graph.node):
        strip(inner)


def infer(model: Any, guess: Any) -> Any:
    """A copy of the model with the shapes that follow from those it has.

    Ops of the copy whose values are known are constants in it. ``guess`` is asked for what follows
    at ops that the library does not know; it adds to the model and says whether it found something.
    """
    model = _in_order(model)
    for _ in range(_ROUNDS):
        try:
            model = onnx.shape_inference.infer_shapes(model, data_prop=True)
        except Exception:  # a model that is not valid keeps the shapes it has
            return model
        has_guessed = guess(model)
        if not fold(model) and not has_guessed:
            break
    return model


def _in_order(model: Any) -> Any:
    """The model, or a copy in which what makes a tensor stands before what reads it.

    Files are meant to be so, and inference believes it; some are not.
    """
    nodes = list(model.graph.node)
    maker = {name: place for place, node in enumerate(nodes) for name in node.output if name}
    waits = [{maker[name] for name in node.input if name in maker} for node in nodes]
    if all(not sources or max(sources) < place for place, sources in enumerate(waits)):
        return model
    readers: list[list[int]] = [[] for _ in nodes]
    for place, sources in enumerate(waits):
        for source in sources:
            readers[source].append(place)
    missing = [len(sources) for sources in waits]
    order = [place for place, count in enumerate(missing) if count == 0]
    for place in order:  # grows while it is walked
        for reader in readers[place]:
            missing[reader] -= 1
            if missing[reader] == 0:
                order.append(reader)
    if len(order) < len(nodes):
        return model  # a cycle, which the graph will name
    sorted_model = onnx.ModelProto()
    sorted_model.CopyFrom(model)
    del sorted_model.graph.node[:]
    sorted_model.graph.node.extend(nodes[place] for place in order)
    return sorted_model


def _check_calls(model: Any, content: Content) -> None:
    """Refuses functions that call themselves, or each other so often that no file means it."""
    functions: dict[tuple[str, str], list[Any]] = {}
    for each in model.functions:  # overloads count as one
        functions.setdefault((each.domain, each.name), []).extend(each.node)
    most = len(content.data) // 8 + 100_000
    sizes: dict[tuple[str, str], int] = {}

    def size(key: tuple[str, str], path: tuple[tuple[str, str], ...]) -> int:
        if key in path or len(path) > 100:
            found = f"the function {quoted(key[1])}, which calls itself"
            raise ReadError(content.name, found, "functions that end")
        if key not in sizes:
            sizes[key] = total(functions[key], (*path, key))
        return sizes[key]

    def total(nodes: Any, path: tuple[tuple[str, str], ...]) -> int:
        count = 0
        for node in nodes:
            key = (node.domain, node.op_type)
            count += 1 + (size(key, path) if key in functions else 0)
            for inner in subgraphs([node]):
                count += total(inner.node, path)
            if count > most:
                found = f"functions that stand for more than {most} ops"
                raise ReadError(content.name, found, "fewer in a file of this size")
        return count

    total(model.graph.node, ())

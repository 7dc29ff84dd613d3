"""Every private TensorFlow and Keras call of the adapter, each with the versions it was seen to
work with.

Seen to work with means: tensorflow 2.21 and keras 3.15 on CPython 3.11.
`tests/tensorflow/test_compat.py` fails with a sentence when one of them changes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import tensorflow as tf

# --- capture and rebuild --------------------------------------------------------------------------

_names = itertools.count()


def unique_name(stem: str) -> str:
    """A name nobody in this process has used: functions live in one table of the eager context."""
    return f"pardnn_{stem}_{next(_names)}"


def captures_of(function: Any) -> list[tuple[Any, str]]:
    """(captured tensor, name of its placeholder op) of a ConcreteFunction, in the order of its
    inputs.
    """
    captured = list(function.captured_inputs)
    placeholders = function.inputs[len(function.inputs) - len(captured) :]
    return [
        (tensor, placeholder.op.name)
        for tensor, placeholder in zip(captured, placeholders, strict=True)
    ]


def handle_of(variable: Any) -> Any:
    """The resource tensor of a tf.Variable; identity of this object says which variable a function
    captured.
    """
    return variable.handle


def optimize_functions(graph_def: Any, keep: Iterable[str]) -> Any:
    """Inline every function call of `graph_def`, and lower every conditional whose lowering is
    asked for.

    `keep` are names of nodes or tensors that must survive. Runs grappler's `function` pass alone,
    once. Seen to work with TF 2.21. An op whose `_lower_using_switch_merge` is false stays
    functional.
    """
    from tensorflow.core.protobuf import config_pb2, meta_graph_pb2, rewriter_config_pb2
    from tensorflow.python.grappler import tf_optimizer

    meta = meta_graph_pb2.MetaGraphDef()
    meta.graph_def.CopyFrom(graph_def)
    fetches = meta_graph_pb2.CollectionDef()
    fetches.node_list.value.extend(keep)
    meta.collection_def["train_op"].CopyFrom(fetches)
    config = config_pb2.ConfigProto()
    options = config.graph_options.rewrite_options
    options.min_graph_nodes = -1
    options.meta_optimizer_iterations = 1
    options.optimizers.append("function")
    options.function_optimization = rewriter_config_pb2.RewriterConfig.AGGRESSIVE
    return tf_optimizer.OptimizeGraph(config, meta)


def new_func_graph(name: str) -> Any:
    """An empty FuncGraph (TF 2.21)."""
    from tensorflow.python.framework import func_graph

    return func_graph.FuncGraph(name)


def capture_into(graph: Any, tensor: Any, name: str) -> Any:
    """Capture an eager tensor into `graph`; unlike a plain placeholder it keeps a variable's shape
    (TF 2.21).
    """
    return graph.capture(tensor, name=name)


def import_into(graph: Any, graph_def: Any, inputs: dict[str, Any]) -> None:
    """Import `graph_def` into `graph`, tensors named in `inputs` replaced (TF 2.21)."""
    from tensorflow.python.framework import importer

    with graph.as_default():
        importer.import_graph_def(graph_def, input_map=inputs, name="")


def callable_from_graph(graph: Any) -> Callable[[Sequence[Any]], list[Any]]:
    """Register a FuncGraph as a runtime function and return a caller over flat inputs and flat
    outputs.

    The caller takes the tensors of `graph.inputs` without captures. Devices of nodes are respected,
    so the function may span processes; `graph` is used up (TF 2.21: AtomicFunction.call_flat,
    through the eager context).
    """
    from tensorflow.core.function.polymorphism import function_type
    from tensorflow.python.eager import context
    from tensorflow.python.eager.polymorphic_function import atomic_function

    for function in graph.as_graph_def(use_pybind11_proto=False).library.function:
        if not context.context().has_function(function.signature.name):
            context.context().add_function_def(function)
    graph.structured_input_signature = ((), {})
    graph.structured_outputs = list(graph.outputs)
    signature = function_type.from_structured_signature(
        graph.structured_input_signature,
        graph.structured_outputs,
        graph.function_captures.capture_types,
    )
    function = atomic_function.from_func_graph(unique_name("step"), graph, {}, signature)
    captured = list(graph.external_captures)
    dismantle(graph)  # the runtime has its own copy

    def call(arguments: Sequence[Any]) -> list[Any]:
        return list(
            function.call_flat(*arguments, *captured) or ()
        )  # None from a function without results

    return call


def dismantle(graph: Any) -> None:
    """Take a FuncGraph apart that nobody will look at again: it lets go of the handles it captured
    (TF 2.21).

    Tapes, and lists it caches, make a graph outlive its last user otherwise, and with it the memory
    of variables.
    """
    from tensorflow.python.framework import func_graph

    func_graph.dismantle_func_graph(graph)
    captures = graph._function_captures
    captures._cached_by_val_capture_tuples = []
    captures._by_val_tracetype.clear()


def release(function: Any) -> None:
    """Let a ConcreteFunction that nobody will call, and its graph, go of what they captured (TF
    2.21).
    """
    function._captured_inputs = []
    dismantle(function.graph)


def local_device() -> str:
    """The full name of this process's CPU, also when it is one of a cluster (TF 2.21)."""
    with tf.init_scope(), tf.device("/device:CPU:0"):
        return str(tf.constant(0).device)


def gradient_may_be_recorded(tensors: Sequence[Any]) -> bool:
    """Whether a tape or a forward accumulator outside is watching one of `tensors` (TF 2.21)."""
    from tensorflow.python.eager import record
    from tensorflow.python.ops import gradients_util

    if not record.could_possibly_record():
        return False
    watched = gradients_util.PossibleTapeGradientTypes(list(tensors))
    return bool(watched != gradients_util.POSSIBLE_GRADIENT_TYPES_NONE)


def turn_off_grappler() -> None:
    """Run graphs as they are: grappler renames and fuses ops, per partition, and so changes sums
    (TF 2.21).
    """
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})


def turn_off_folding() -> None:
    """Let workers run partitions as they are: no constant folding, no merging of equal nodes.

    A folded constant stays on its device for ever, up to 10 MB each, and is shared with a variable
    that was initialised with it, so that the variable's first update allocates. Must come before
    the cluster is connected (TF 2.21: the context's own ConfigProto is sent to the workers).
    """
    from tensorflow.core.protobuf import config_pb2
    from tensorflow.python.eager import context

    config = context.context()._config or config_pb2.ConfigProto()
    config.graph_options.optimizer_options.opt_level = config_pb2.OptimizerOptions.L0
    context.context()._config = config


def partitions_of(call: Callable[[], Any]) -> Iterator[Any]:
    """Run `call` and yield the partition GraphDefs of the functions it executed, with final devices
    (TF 2.21).
    """
    from tensorflow.python.eager import context

    context.context().enable_run_metadata()
    try:
        call()
        metadata = context.context().export_run_metadata()
    finally:
        context.context().disable_run_metadata()
    for function_graphs in metadata.function_graphs:
        yield from function_graphs.partition_graphs


# --- single ops and function bodies ---------------------------------------------------------------

FUNCTIONAL_OPS = frozenset(
    """
    While StatelessWhile If StatelessIf Case StatelessCase PartitionedCall
    StatefulPartitionedCall SymbolicGradient RemoteCall For Map MapDefun
    """.split()  # noqa: SIM905
)
# What lowered conditionals are made of: one output of the first kind has a value when the op has
# run, and the second kind hands on whichever input has one.
SPLITS = frozenset({"Switch", "RefSwitch", "_SwitchN"})
JOINS = frozenset({"Merge", "RefMerge"})


def node_def(kind: str, types: dict[str, Any]) -> Any:
    """A NodeDef of type `kind` whose attributes are types."""
    node = tf.compat.v1.NodeDef(op=kind)
    for name, dtype in types.items():
        node.attr[name].type = dtype.as_datatype_enum
    return node


def bare_node(node: Any) -> bytes:
    """A NodeDef as bytes, without name, inputs and device: equal ops give equal bytes."""
    bare = tf.compat.v1.NodeDef()
    bare.CopyFrom(node)
    bare.ClearField("name")
    bare.ClearField("input")
    bare.ClearField("device")
    bare.ClearField("experimental_debug_info")
    for name in [name for name in bare.attr if name.startswith("_")]:
        del bare.attr[name]
    return bytes(bare.SerializeToString(deterministic=True))


def output_types(node: Any) -> list[int]:
    """The dtype numbers of a NodeDef's outputs (TF 2.21: the registry of op definitions)."""
    from tensorflow.python.framework import op_def_registry

    types: list[int] = []
    for argument in op_def_registry.get(node.op).output_arg:
        if argument.type_list_attr:
            types += node.attr[argument.type_list_attr].list.type
            continue
        count = int(node.attr[argument.number_attr].i) if argument.number_attr else 1
        one = node.attr[argument.type_attr].type if argument.type_attr else argument.type
        types += [one] * count
    return [int(one) for one in types]


def output_type(node: Any, output: int) -> int:
    """The dtype number of one output of a NodeDef."""
    return output_types(node)[output]


def attributes_of(node_def: Any) -> tuple[Any, ...]:
    """Names and values of an op's attributes, alternating, for eager execution (TF 2.21)."""
    result: list[Any] = []
    for attribute, value in sorted(node_def.attr.items()):
        if attribute.startswith("_"):
            continue
        kind = value.WhichOneof("value")
        if kind == "list":
            parts = value.list
            field = next((f.name for f, items in parts.ListFields() if len(items)), None)
            items = [] if field is None else list(getattr(parts, field))
            result += [attribute, [_shape(i) for i in items] if field == "shape" else items]
        elif kind == "shape":
            result += [attribute, _shape(value.shape)]
        elif kind is not None:
            result += [attribute, getattr(value, kind)]
    return tuple(result)


def _shape(proto: Any) -> list[int] | None:
    return None if proto.unknown_rank else [d.size for d in proto.dim]


def run_op(node_def: Any, inputs: Sequence[Any], outputs: int) -> list[Any]:
    """Run one kernel eagerly on this process's CPU (TF 2.21: execute.execute through the eager
    context).
    """
    from tensorflow.python.eager import context, execute

    with tf.init_scope(), tf.device("/device:CPU:0"):
        found = execute.execute(
            node_def.op.encode(), outputs, list(inputs), attributes_of(node_def), context.context()
        )
    return list(found) if isinstance(found, (list, tuple)) else []


def inferred_shapes(node_def: Any, inputs: Sequence[tuple[Any, Any, Any]]) -> list[Any]:
    """Shapes of an op's outputs given (dtype, shape, value or None) of its inputs (TF 2.21)."""
    from tensorflow.python.framework import func_graph

    scratch = func_graph.FuncGraph("pardnn_shapes")
    with scratch.as_default():
        tensors = [
            tf.compat.v1.placeholder(dtype, shape) if value is None else tf.constant(value, dtype)
            for dtype, shape, value in inputs
        ]
        copy = tf.compat.v1.NodeDef()
        copy.CopyFrom(node_def)
        copy.name, copy.device = "op", ""
        copy.attr.pop("_class", None)
        del copy.input[:]
        names = {f"in{n}:0": tensor for n, tensor in enumerate(tensors)}
        copy.input.extend(names)
        graph_def = tf.compat.v1.GraphDef(node=[copy])
        import_into(scratch, graph_def, names)
        return [tensor.shape for tensor in scratch.get_operation_by_name("op").outputs]


def handle_shape(tensor: Any) -> Any:
    """The shape of the variable behind a graph's resource tensor, or None (TF 2.21)."""
    from tensorflow.python.ops import handle_data_util

    found = handle_data_util.get_resource_handle_data(tensor)
    if found is None or not found.is_set or len(found.shape_and_type) != 1:
        return None
    shape = tf.TensorShape(found.shape_and_type[0].shape)
    return shape if shape.rank is not None else None


class FunctionLibrary(dict[str, Any]):
    """The FunctionDefs that ops of a FuncGraph may call, by name (TF 2.21)."""

    def __init__(self, graph: Any) -> None:
        super().__init__(
            (f.signature.name, f)
            for f in graph.as_graph_def(use_pybind11_proto=False).library.function
        )

    def __missing__(self, name: str) -> Any:
        from tensorflow.python.eager import context

        return context.context().get_function_def(name)


def functions_of(node_def: Any) -> list[str]:
    """Names of the functions in an op's attributes, in the order of their names."""
    names = []
    for _, value in sorted(node_def.attr.items()):
        if value.WhichOneof("value") == "func":
            names.append(value.func.name)
        names += [function.name for function in value.list.func]
    return names


def body_graph(library: FunctionLibrary, name: str, input_shapes: Sequence[Any]) -> Any:
    """The FuncGraph of library function `name`, with these input shapes (TF 2.21)."""
    from tensorflow.core.framework import function_pb2
    from tensorflow.python.framework import function_def_to_graph

    definition = function_pb2.FunctionDef()
    definition.CopyFrom(library[name])
    for attributes in definition.arg_attr.values():
        attributes.attr.pop("_output_shapes", None)  # would win over the shapes given here
    with tf.init_scope():
        return function_def_to_graph.function_def_to_graph(
            definition, input_shapes=[tf.TensorShape(s) for s in input_shapes]
        )

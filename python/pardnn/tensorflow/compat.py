"""Every private TensorFlow and Keras call of the adapter, each with the versions it was seen to work with.

Seen to work with means: tensorflow 2.21 and keras 3.15 on CPython 3.11. `tests/tensorflow/test_compat.py` fails with
a sentence when one of them changes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import tensorflow as tf

# --- capture and rebuild ---------------------------------------------------------------------------------------

_names = itertools.count()


def unique_name(stem: str) -> str:
    """A name nobody in this process has used: functions live in one table of the eager context."""
    return f"pardnn_{stem}_{next(_names)}"


def captures_of(function: Any) -> list[tuple[Any, str]]:
    """(captured tensor, name of its placeholder op) of a ConcreteFunction, in the order of its inputs."""
    captured = list(function.captured_inputs)
    placeholders = function.inputs[len(function.inputs) - len(captured) :]
    return [(tensor, placeholder.op.name) for tensor, placeholder in zip(captured, placeholders, strict=True)]


def handle_of(variable: Any) -> Any:
    """The resource tensor of a tf.Variable; identity of this object says which variable a function captured."""
    return variable.handle


def optimize_functions(graph_def: Any, keep: Iterable[str]) -> Any:
    """Inline every function call of `graph_def`, and lower every conditional whose lowering is asked for.

    `keep` are names of nodes or tensors that must survive. Runs grappler's `function` pass alone, once.
    Seen to work with TF 2.21. An op whose `_lower_using_switch_merge` is false stays functional.
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
    """Capture an eager tensor into `graph`; unlike a plain placeholder it keeps a variable's shape (TF 2.21)."""
    return graph.capture(tensor, name=name)


def import_into(graph: Any, graph_def: Any, inputs: dict[str, Any]) -> None:
    """Import `graph_def` into `graph`, tensors named in `inputs` replaced (TF 2.21)."""
    from tensorflow.python.framework import importer

    with graph.as_default():
        importer.import_graph_def(graph_def, input_map=inputs, name="")


def callable_from_graph(graph: Any) -> Callable[[Sequence[Any]], list[Any]]:
    """Register a FuncGraph as a runtime function and return a caller over flat inputs and flat outputs.

    The caller takes the tensors of `graph.inputs` without captures. Devices of nodes are respected, so the function
    may span processes (TF 2.21: AtomicFunction.call_flat, through the eager context).
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

    def call(arguments: Sequence[Any]) -> list[Any]:
        return list(function.call_flat(*arguments, *captured))

    return call


def gradient_may_be_recorded(tensors: Sequence[Any]) -> bool:
    """Whether a tape or a forward accumulator outside is watching one of `tensors` (TF 2.21)."""
    from tensorflow.python.eager import record
    from tensorflow.python.ops import gradients_util

    if not record.could_possibly_record():
        return False
    watched = gradients_util.PossibleTapeGradientTypes(list(tensors))
    return bool(watched != gradients_util.POSSIBLE_GRADIENT_TYPES_NONE)


def turn_off_grappler() -> None:
    """Run graphs as they are: grappler renames and fuses ops, per partition, and so changes sums (TF 2.21)."""
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})


def partitions_of(call: Callable[[], Any]) -> Iterator[Any]:
    """Run `call` and yield the partition GraphDefs of the functions it executed, with final devices (TF 2.21)."""
    from tensorflow.python.eager import context

    context.context().enable_run_metadata()
    try:
        call()
        metadata = context.context().export_run_metadata()
    finally:
        context.context().disable_run_metadata()
    for function_graphs in metadata.function_graphs:
        yield from function_graphs.partition_graphs

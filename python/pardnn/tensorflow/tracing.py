"""One traced function as data: inlined, divisible, and holding no variable's storage alive.

A `Capture` outlives every move of a variable between devices: it remembers the variable objects,
never their handles, and `place` asks for the handles anew whenever it builds a function.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

from pardnn.tensorflow import chief, compat, passes

# Tensors captured from outside (numpy arrays turned into tensors) up to this size become constants.
_LARGEST_CONSTANT_BYTES = 64 * 1024


@dataclass(frozen=True)
class Input:
    """A tensor given at every call: placeholder, type, and shape with None where the batch is."""

    placeholder: str
    dtype: Any
    shape: Any


@dataclass(frozen=True)
class Captured:
    """A tensor the function took from outside: a variable's handle, or a tensor as it is."""

    placeholder: str
    variable: Any = None
    tensor: Any = None

    @property
    def shape(self) -> Any:
        """Shape of the tensor, or of the variable."""
        return (self.tensor if self.variable is None else self.variable).shape

    def current(self) -> Any:
        """The tensor to bind now; for a variable, the handle it has at this moment."""
        return self.tensor if self.variable is None else compat.handle_of(self.variable)


@dataclass
class Capture:
    """One traced function, independent of devices and of the batch size.

    `graph_def` has all functions inlined but loop bodies; `outputs` are names of tensors in the
    order of the flattened result; `side_effects` are names of nodes that must run; `structure`
    packs flat results. `host` are nodes that run here, like the making of a batch: see `chief`.
    """

    graph_def: Any
    inputs: list[Input]
    captured: list[Captured]
    outputs: list[str]
    side_effects: list[str]
    structure: Any
    host: frozenset[str] = frozenset()
    _hash: str = field(default="", repr=False)

    def fingerprint(self) -> str:
        """SHA-256 over ops, edges, attributes and names, without shapes of inputs: equal for the
        same function traced again, in the next process too.
        """
        if not self._hash:
            digest = hashlib.sha256()
            functions = sorted(self.graph_def.library.function, key=lambda f: f.signature.name)
            nodes = [*self.graph_def.node, *(n for f in functions for n in f.node_def)]
            for node in nodes:
                if node.op != "Placeholder":
                    digest.update(node.SerializeToString(deterministic=True))
            inputs = [(one.placeholder, one.dtype.name) for one in self.inputs]
            captured = [(c.placeholder, str(c.shape)) for c in self.captured]
            digest.update(repr((inputs, captured, self.outputs, self.side_effects)).encode())
            self._hash = digest.hexdigest()
        return self._hash

    def variables(self) -> list[int]:
        """Ids of the captured variables, in order."""
        return [id(c.variable) for c in self.captured if c.variable is not None]

    def without_inputs(self) -> Capture | None:
        """The side effects that depend on nothing given at a call; None if there are none."""
        waits = {one.placeholder for one in self.inputs}
        nodes = passes.in_topological_order(self.graph_def.node)
        for node in nodes:
            if any(passes.producer(edge) in waits for edge in node.input):
                waits.add(node.name)
        effects = [name for name in self.side_effects if name not in waits]
        if not effects:
            return None
        needed = set(effects)
        for node in reversed(nodes):
            if node.name in needed:
                needed.update(passes.producer(edge) for edge in node.input)
        graph_def = tf.compat.v1.GraphDef(versions=self.graph_def.versions)
        graph_def.node.extend(node for node in nodes if node.name in needed)
        graph_def.library.CopyFrom(self.graph_def.library)
        captured = [one for one in self.captured if one.placeholder in needed]
        return Capture(graph_def, [], captured, [], effects, (), self.host & needed)

    def pack(self, flat: list[Any]) -> Any:
        """The result as the traced function would have returned it; None is no tensor and stays
        None.
        """
        tensors = iter(flat)
        leaves = tf.nest.flatten(self.structure, expand_composites=True)
        filled = [None if leaf is None else next(tensors) for leaf in leaves]
        return tf.nest.pack_sequence_as(self.structure, filled, expand_composites=True)


def capture_function(
    function: Any,
    spec: Any = None,
    *,
    variables: Iterable[Any] = (),
    resources: Mapping[str, Any] | None = None,
) -> Capture:
    """Trace `function` with `spec` (its one argument; None leaves stay None) without running it.

    `function` may be a ConcreteFunction, then `spec` is not used. `variables` are all variables it
    may touch: those are kept as variables, any other captured tensor is kept as it is. `resources`
    binds placeholders of resource arguments (a variable passed to a function) to what is passed, as
    if it were captured.
    """
    if isinstance(function, tf.types.experimental.ConcreteFunction):
        concrete = function
    else:
        concrete = tf.function(function, jit_compile=False).get_concrete_function(spec)
    captures = compat.captures_of(concrete)
    captures += [(tensor, name) for name, tensor in (resources or {}).items()]
    names = {name for _, name in captures}
    inputs = [Input(t.op.name, t.dtype, t.shape) for t in concrete.inputs if t.op.name not in names]
    by_handle = {id(compat.handle_of(variable)): variable for variable in variables}
    graph_def, outputs, effects, constants = _divisible(concrete, captures, by_handle)
    captured = [
        Captured(name, by_handle.get(id(t)), None if id(t) in by_handle else t)
        for t, name in captures
        if name not in constants
    ]
    structure = tf.nest.map_structure(_result_spec, concrete.structured_outputs)
    handles = [one.placeholder for one in inputs if one.dtype in (tf.resource, tf.variant)]
    handles += [c.placeholder for c in captured if _is_foreign(c.tensor)]
    of_workers = [c.placeholder for c in captured if c.variable is not None]
    host = chief.nodes_of_chief(graph_def, handles, of_workers)
    chief.pin_in_loops(graph_def, compat.local_device())
    return Capture(graph_def, inputs, captured, outputs, effects, structure, host)


def _is_foreign(tensor: Any) -> bool:
    return tensor is not None and tensor.dtype in (tf.resource, tf.variant)


def _divisible(
    concrete: Any, captures: list[tuple[Any, str]], by_handle: dict[int, Any]
) -> tuple[Any, list[str], list[str], set[str]]:
    """The function's graph after all passes, its outputs and side effects, and captures that became
    constants.
    """
    graph_def = concrete.graph.as_graph_def()
    constants = _embed_constants(graph_def, captures)
    outputs = [tensor.name for tensor in concrete.outputs]
    inputs = [t.op.name for t in concrete.inputs if t.op.name not in constants]
    effects = [op.name for op in concrete.graph.control_outputs]
    graph_def = passes.inline(graph_def, effects, [*inputs, *outputs])
    passes.add_results(graph_def, outputs)
    passes.split_identity_n(graph_def)
    passes.split_add_n(graph_def)
    passes.drop_group_noops(graph_def)
    scalars = frozenset(
        name for t, name in captures if id(t) in by_handle and by_handle[id(t)].shape.rank == 0
    )
    passes.merge_equal_reads(graph_def, scalars)
    outputs, effects = passes.take_sink(graph_def)
    return graph_def, outputs, effects, constants


def _embed_constants(graph_def: Any, captures: list[tuple[Any, str]]) -> set[str]:
    """Turn small captured tensors into constants in place, so that nothing is sent for them at each
    step.
    """
    values = {}
    for tensor, name in captures:
        if tensor.dtype in (tf.resource, tf.variant) or not hasattr(tensor, "numpy"):
            continue
        if tensor.shape.num_elements() * tensor.dtype.size <= _LARGEST_CONSTANT_BYTES:
            values[name] = tensor
    for node in graph_def.node:
        if node.name in values:
            name, tensor = node.name, values[node.name]
            node.Clear()
            node.name, node.op = name, "Const"
            node.attr["dtype"].type = tensor.dtype.as_datatype_enum
            node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(tensor.numpy()))
    return set(values)


def _result_spec(value: Any) -> Any:
    """A stand-in for one result: keeps composite structure, but no tensor of the traced graph."""
    if isinstance(value, tf.__internal__.CompositeTensor):
        return tf.type_spec_from_value(value)
    return None if value is None else 0

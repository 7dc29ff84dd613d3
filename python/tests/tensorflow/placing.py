"""Placements for tests (by variables, at random), small Keras models, and the ordinary run to
compare with.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import tensorflow as tf

from pardnn.tensorflow.place import StepPlacement, base_graph
from pardnn.tensorflow.tracing import Capture

LIVE: list[Any] = []


@contextmanager
def variables_on(devices: Sequence[str], seed: int = 0) -> Iterator[list[Any]]:
    """Variables created inside go to `devices` at random; yields the list they are appended to."""
    chooser = random.Random(seed)

    def creator(next_creator: Callable[..., Any], **kwargs: Any) -> Any:
        with tf.device(chooser.choice(list(devices))):
            variable = next_creator(**kwargs)
        LIVE.append(variable)
        return variable

    with tf.variable_creator_scope(creator):
        yield LIVE


def _units(graph: Any) -> dict[str, str]:
    """Ops that must share a device: users of one resource or tensor list."""
    parent: dict[str, str] = {}

    def find(name: str) -> str:
        while parent.setdefault(name, name) != name:
            name = parent[name]
        return name

    for op in graph.get_operations():
        find(op.name)
        for tensor in op.inputs:
            if tensor.dtype in (tf.resource, tf.variant):
                parent[find(op.name)] = find(tensor.op.name)
    return {name: find(name) for name in list(parent)}


def every_ops(graph: Any) -> set[str]:
    """Ops computed from constants and inputs alone."""
    every: set[str] = set()
    for op in graph.get_operations():
        if op.type == "Placeholder":
            if op.name.startswith("pardnn_in_"):
                every.add(op.name)
        elif (
            not op.op_def.is_stateful
            and all(
                t.op.name in every and t.dtype not in (tf.resource, tf.variant) for t in op.inputs
            )
            and all(c.name in every for c in op.control_inputs)
            and op.type
            not in (
                "EmptyTensorList",
                "TensorListReserve",
                "TensorListFromTensor",
                "NoOp",
            )
        ):
            every.add(op.name)
    return every


def static(batch: Any) -> list[Any]:
    """Static shapes of a batch, flattened."""
    return [t.shape for t in tf.nest.flatten(batch)]


def move(variable: Any, device: str) -> None:
    """Bring a variable to another device; the object stays the same."""
    with tf.device(device):
        fresh = tf.Variable(variable.read_value(), trainable=False, shape=variable.shape)
    variable._handle = fresh._handle


def planned(
    capture: Capture, shapes: Sequence[Any], devices: Sequence[str], request: Any, seed: int | None
) -> tuple[StepPlacement, list[tuple[Any, str]]]:
    """A placement as a planner returns it: variables that one op touches come together, others
    stay.
    """
    graph = base_graph(capture, shapes)
    units, every = _units(graph), every_ops(graph)
    home: dict[str, str] = {}
    for number, captured in enumerate(capture.captured):
        unit = units.get(f"pardnn_cap_{number}")
        if captured.variable is not None and unit is not None:
            fixed = id(captured.variable) in request.fixed
            if fixed or unit not in home:
                home[unit] = captured.variable.device
    moves = [
        (c.variable, home[units[f"pardnn_cap_{number}"]])
        for number, c in enumerate(capture.captured)
        if c.variable is not None and f"pardnn_cap_{number}" in units
    ]
    chooser = random.Random(seed)
    placed: dict[str, str] = {}
    for op in graph.get_operations():
        if op.name in every or op.type == "Placeholder" or op.name in capture.host:
            continue
        unit = units[op.name]
        if unit not in home:
            inputs = [t.op for t in op.inputs if t.op.name in placed]
            reads = [i for i in inputs if i.type == "ReadVariableOp"] or inputs
            natural = placed[reads[0].name] if reads else devices[0]
            home[unit] = natural if seed is None else chooser.choice(list(devices))
        placed[op.name] = home[unit]
    return StepPlacement(placed), moves

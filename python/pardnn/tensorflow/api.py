"""What a program calls that distributes its model itself: `distribute`, or its parts one by one.

machine = pardnn.Machine.uniform(devices=3, memory=[700 * 2**20] * 3, kind="cpu")
with pardnn.tensorflow.distribute(model, (x[:32], y[:32]), machine):
    model.fit(x, y, batch_size=32)
"""

from __future__ import annotations

import importlib
import json
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import tensorflow as tf

import pardnn
from pardnn.launch import RunOptions
from pardnn.tensorflow import compat, compat_hooks, compat_state, hooks, step_graph, variables
from pardnn.tensorflow.cluster import Cluster
from pardnn.tensorflow.planning import CorePlanner
from pardnn.tensorflow.run import Engine
from pardnn.tensorflow.steps import Request
from pardnn.tensorflow.tracing import Capture, capture_function


@dataclass
class TrainingPlan:
    """A training step, its graph, and a plan of it.

    `graph` and `plan` are pardnn's own: print, check, change the machine and plan again.
    `algorithm` is what was asked for; other functions of the model are planned with it too.
    """

    capture: Capture
    shapes: tuple[Any, ...]
    machine: pardnn.Machine
    step: step_graph.StepGraph
    plan: pardnn.Plan
    algorithm: str = "auto"

    @property
    def graph(self) -> pardnn.Graph:
        """The step as the planner sees it."""
        return self.step.graph


@dataclass
class CapturedStep:
    """A model's training step: what was traced, and the shapes of the sample."""

    capture: Capture
    shapes: tuple[Any, ...]


def capture(model: Any, sample_batch: Any) -> CapturedStep:
    """Trace the training step of a compiled Keras model, without running it.

    `sample_batch` is one batch as a dataset would yield it: `(x, y)` or `(x, y, sample_weight)`,
    each a tensor, an array, or a structure of those; the first dimension is the batch. Variables
    that the model still lacks (the optimizer's) are created.
    """
    batch = tf.nest.map_structure(hooks.tensor_or_none, sample_batch)
    spec = tf.nest.map_structure(_any_batch, batch)
    compat_hooks.keras_build_optimizer(model)
    function = tf.function(compat_hooks.keras_step_function(model, "train"), reduce_retracing=True)
    traced = function.get_concrete_function(spec)
    captured = capture_function(traced, variables=compat_hooks.all_variables())
    compat.release(traced)
    tensors = [t for t in tf.nest.flatten(batch, expand_composites=True) if t is not None]
    return CapturedStep(captured, tuple(tuple(t.shape) for t in tensors))


def plan(
    captured: CapturedStep,
    machine: pardnn.Machine,
    *,
    algorithm: str = "auto",
    margin: int = 30,
) -> TrainingPlan:
    """Plan a captured step for `machine`; costs of ops are measured in this process.

    `margin`: per mille of each device's memory left free. Raises pardnn.errors.Refusal with the
    reason when nothing fits.
    """
    planner = CorePlanner(_options(machine, algorithm, margin), _ThisProcess(), machine)
    request = Request(fixed={}, residents={}, training=True)
    found = planner.find("the training step", captured.capture, captured.shapes, request)
    return TrainingPlan(captured.capture, captured.shapes, machine, *found, algorithm)


def apply(model: Any, training_plan: TrainingPlan) -> Distributed:
    """Start the workers of the plan's machine, bring the model's variables there, and let `fit`,
    `evaluate` and `predict` run over them from now on.

    The model's variables, and those its step uses besides, move to the workers. A tf.function that
    was traced before, with any variable, cannot be called any more. Raises ClusterError.
    """
    machine = training_plan.machine
    options = _options(machine, training_plan.algorithm, 0)
    cluster = Cluster.start(options.devices, options.memory, addresses=options.addresses)
    compat_hooks.keep_functions()
    cluster.connect()
    planner = CorePlanner(options, cluster, machine)
    planned = planner.planned(training_plan.step, training_plan.plan)
    adopted = _variables_of(model, training_plan.capture)
    compat_hooks.renew_variables(
        [v for v in compat_hooks.all_variables() if all(v is not a for a in adopted)]
    )
    variables.install(cluster).adopt(adopted)
    engine = Engine(options, cluster, planner)
    engine.install()
    engine.prepare(training_plan.capture, training_plan.shapes, planned)
    return Distributed(engine, cluster, training_plan)


def distribute(
    model: Any,
    sample_batch: Any,
    machine: pardnn.Machine,
    *,
    algorithm: str = "auto",
    margin: int = 30,
) -> Distributed:
    """`capture`, `plan` and `apply` in one: from now on `fit` trains over the machine's devices.

    Close the result, or use it as a context manager, to bring the variables back.
    """
    found = plan(capture(model, sample_batch), machine, algorithm=algorithm, margin=margin)
    return apply(model, found)


class Distributed:
    """A model that trains over workers; a context manager."""

    def __init__(self, engine: Engine, cluster: Cluster, training_plan: TrainingPlan) -> None:
        self._engine = engine
        self._cluster = cluster
        self.training_plan = training_plan

    def report(self) -> dict[str, Any]:
        """Promised and measured memory and time of every function that ran, as plain data."""
        return self._engine.report()

    def close(self) -> None:
        """Bring all variables back to this process and end the workers."""
        self._engine.uninstall()
        here = compat.local_device()
        for variable in variables.live_variables():
            compat_state.give_handle(variable, here)
        variables.uninstall()
        compat_hooks.leave_cluster()
        self._cluster.stop()

    def __enter__(self) -> Distributed:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class _ThisProcess:
    """Measures ops in this process, where no workers are."""

    def __init__(self) -> None:
        self.limits: list[int | None] = [None]
        self.device_strings: list[str] = []

    def call(self, number: int, target: str, argument: Any, timeout_s: float | None = None) -> Any:
        """Run a function of this package here."""
        module, _, function = target.partition(":")
        return getattr(importlib.import_module(module), function)(argument)

    def memory(self, number: int) -> dict[str, int]:
        """Bytes in use here; without a limit nobody compares them with anything."""
        return {"current": 0, "peak": 0}


def _options(machine: pardnn.Machine, algorithm: str, margin: int) -> RunOptions:
    devices = json.loads(machine.text())["devices"]
    return RunOptions(
        devices=len(devices),
        memory=tuple(int(d["memory"]) - int(d.get("reserve", 0)) for d in devices),
        addresses=tuple(str(d["address"]) for d in devices if d.get("address")),
        script=Path("<program>"),
        algorithm=algorithm,
        margin=margin,
    )


def _variables_of(model: Any, captured: Capture) -> list[Any]:
    """All variables of a model, its optimizer's too, and those of its step, each once."""
    found = {id(c.variable): c.variable for c in captured.captured if c.variable is not None}
    optimizer = getattr(model, "optimizer", None)
    for variable in (*model.variables, *(optimizer.variables if optimizer is not None else ())):
        found.setdefault(id(variable.value), variable.value)
    return list(found.values())


def _any_batch(leaf: Any) -> Any:
    """The spec of a dataset that yields batches like this one, of any size."""
    if leaf is None:
        return None
    spec = tf.type_spec_from_value(leaf)
    if isinstance(spec, tf.TensorSpec) and spec.shape.rank:
        return tf.TensorSpec([None, *spec.shape[1:]], spec.dtype)
    return spec

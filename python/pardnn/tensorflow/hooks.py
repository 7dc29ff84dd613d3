"""Where scripts meet pardnn: Keras's train, test and predict functions, and the user's own
tf.functions.

Hooks only gather what is to be run and hand it to an `Execute`; `remove` puts everything back.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import tensorflow as tf

from pardnn.errors import Refusal
from pardnn.tensorflow import compat, compat_hooks
from pardnn.tensorflow.tracing import Capture, capture_function

_LOG = logging.getLogger(__name__)

_OURS = "pardnn_"


class Execute(Protocol):
    """What runs captured functions: the engine."""

    def variables(self) -> Sequence[Any]:
        """All variables a function may capture."""

    def on_worker(self, tensor: Any) -> bool:
        """Whether a resource lives on a worker."""

    def adopt(
        self, name: str, capture: Capture, *, fetch: bool
    ) -> Callable[[list[Any]], list[Any]]:
        """Take over a captured function; the result runs it on flat tensors. `fetch`: bring results
        here.
        """

    @property
    def busy(self) -> bool:
        """Whether the engine itself is at work, so that what it calls is none of the user's
        functions.
        """


class DistributionUsed(Refusal):
    """The script distributes its model itself."""


def install(execute: Execute) -> Callable[[], None]:
    """Install all hooks; returns what removes them."""
    undo = [
        compat_hooks.replace_trainer_functions(
            train=lambda model: _over_iterator(model, "train", execute),
            test=lambda model: _over_iterator(model, "test", execute),
            predict=lambda model: _over_batches(model, execute),
        ),
        compat_hooks.replace_concrete_call(_function_call(execute)),
        compat_hooks.refuse_strategies(_refuse),
    ]

    def remove() -> None:
        while undo:
            undo.pop()()

    return remove


def _refuse(strategy: str) -> None:
    raise DistributionUsed(
        f"this script uses tf.distribute.{strategy}; pardnn places the training step itself, so "
        "run the script without pardnn or take the strategy out"
    )


# --- Keras -------------------------------------------------------------------------------------


def _over_iterator(model: Any, kind: str, execute: Execute) -> Callable[[Any], Any]:
    """What `model.train_function` and `test_function` become: up to steps_per_execution steps on an
    iterator.
    """
    _say_what_changes(model)
    step = KerasStep(model, kind, execute)

    def function(iterator: Any) -> Any:
        spec = getattr(iterator, "element_spec", None)
        result = None
        for number in range(model.steps_per_execution):
            try:
                batch = next(iterator)
            except (StopIteration, tf.errors.OutOfRangeError):
                if number == 0:
                    if model.steps_per_execution == 1 and not model.run_eagerly:
                        step.without_batch()
                    raise StopIteration from None
                break
            result = step(batch, spec)
        return result

    return function


def _over_batches(model: Any, execute: Execute) -> Callable[[Any], Any]:
    """What `model.predict_function` becomes: all batches of a list, results joined."""
    _say_what_changes(model)
    step = KerasStep(model, "predict", execute)

    def function(batches: Any) -> Any:
        results = [step(batch, None) for batch in batches]
        if len(results) == 1:
            return results[0]
        return tf.nest.map_structure(
            lambda *parts: compat_hooks.keras_concat(list(parts)), *results
        )

    return function


_told: weakref.WeakSet[Any] = weakref.WeakSet()


def _say_what_changes(model: Any) -> None:
    """Once for each model, what its `compile` asked for and a placed step does otherwise."""
    if model in _told:
        return
    _told.add(model)
    if model.run_eagerly:
        _LOG.warning("run_eagerly: pardnn traces the step once and runs it as a graph")
    elif model.jit_compile:
        _LOG.warning("jit_compile: pardnn runs the step's operations one by one, not through XLA")
    if model.steps_per_execution > 1:
        _LOG.warning("steps_per_execution: pardnn runs the steps one after another, each placed")


@dataclass
class _Trace:
    spec: Any
    run: Callable[[list[Any]], list[Any]]
    capture: Capture
    rest: Callable[[list[Any]], list[Any]] | None = None
    """Runs what the step does without a batch, once it was asked for."""


class KerasStep:
    """One of a model's steps (train, test, predict), traced as Keras would trace it."""

    def __init__(self, model: Any, kind: str, execute: Execute) -> None:
        self._model = model
        self._kind = kind
        self._execute = execute
        self._traces: dict[str, _Trace] = {}
        self._by_batch: dict[Any, _Trace] = {}
        self._last_spec: tuple[Any, str] = (None, "")

    def __call__(self, batch: Any, spec: Any) -> Any:
        """Run the step on a batch; `spec` is that of the dataset it comes from, if any."""
        batch = tf.nest.map_structure(tensor_or_none, batch)
        tensors = [t for t in tf.nest.flatten(batch, expand_composites=True) if t is not None]
        if spec is not self._last_spec[0]:
            self._last_spec = (spec, "" if spec is None else repr(spec))
        key = (self._last_spec[1], _signature(batch))
        trace = self._by_batch.get(key)
        if trace is None:
            trace = self._by_batch[key] = self._trace(batch, spec)
        return trace.capture.pack(trace.run(tensors))

    def without_batch(self) -> None:
        """What a step does that finds no batch any more.

        Where a dataset does not say how long it is, Keras begins one more step. TensorFlow runs
        what does not wait for the batch, before it says that there is none: the optimizer's count
        of steps and the seeds of dropout move on.
        """
        trace = next(reversed(self._traces.values()), None)
        if trace is None:
            return
        if trace.rest is None:
            part = trace.capture.without_inputs()
            name = f"{self._model.name} {self._kind} without a batch"
            trace.rest = self._execute.adopt(name, part, fetch=False) if part else lambda _: []
        trace.rest([])

    def _trace(self, batch: Any, spec: Any) -> _Trace:
        given = tf.nest.map_structure(_spec_of, batch)
        spec = given if spec is None else tf.nest.map_structure(_spec_or_none, spec)
        if spec is given and self._traces:
            # Without a dataset's spec Keras traces the first shapes as they are, and general ones
            # when others come.
            spec = _generalized(spec, next(reversed(self._traces.values())).spec)
        key = repr(spec)
        if key not in self._traces:
            capture, run = self._captured(spec)
            self._traces[key] = _Trace(spec, run, capture)
        return self._traces[key]

    def _captured(self, spec: Any) -> tuple[Capture, Callable[[list[Any]], list[Any]]]:
        if self._kind == "train":
            compat_hooks.keras_build_optimizer(self._model)
        function = compat_hooks.keras_step_function(self._model, self._kind)
        traced = tf.function(function, reduce_retracing=True).get_concrete_function(spec)
        # Tracing may create variables (optimizer slots), so they are listed afterwards.
        capture = capture_function(traced, variables=self._execute.variables())
        compat.release(traced)
        name = f"{self._model.name} {self._kind}"
        return capture, self._execute.adopt(name, capture, fetch=self._kind == "predict")


def tensor_or_none(leaf: Any) -> Any:
    """One leaf of a batch as a tensor; what stands for an absent one is None."""
    if leaf is None or isinstance(leaf, tf.experimental.Optional):
        return None
    if isinstance(leaf, (tf.RaggedTensor, tf.SparseTensor, tf.Tensor)):
        return leaf
    return tf.convert_to_tensor(leaf)


def _spec_or_none(leaf: Any) -> Any:
    return leaf if isinstance(leaf, tf.TypeSpec) and not isinstance(leaf, tf.OptionalSpec) else None


def _spec_of(leaf: Any) -> Any:
    return None if leaf is None else tf.type_spec_from_value(leaf)


def _signature(value: Any) -> Any:
    """A hashable picture of a batch's structure, types and shapes."""
    if value is None:
        return None
    if isinstance(value, dict):
        return tuple((key, _signature(value[key])) for key in sorted(value))
    if isinstance(value, (tuple, list)):
        return tuple(_signature(item) for item in value)
    if isinstance(value, tf.Tensor):
        return (value.dtype, tuple(value.shape))
    return tuple(_signature(t) for t in tf.nest.flatten(value, expand_composites=True))


def _generalized(new: Any, old: Any) -> Any:
    """The most specific spec that takes both, as tf.function generalizes; `new` where they differ
    in kind.
    """
    try:
        return tf.nest.map_structure(
            lambda a, b: None if a is None else a.most_specific_common_supertype([b]) or a, new, old
        )
    except (TypeError, ValueError):
        return new


# --- the user's own tf.functions ----------------------------------------------------------------


def _function_call(execute: Execute) -> Callable[[Any, Any, list[Any], list[Any]], Any]:
    """What ConcreteFunction._call_flat becomes: a function that touches variables on workers is
    placed.
    """
    adopted: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()

    def call(original: Any, function: Any, inputs: list[Any], captured: list[Any]) -> Any:
        if execute.busy or not tf.executing_eagerly() or function.graph.name.startswith(_OURS):
            return original(function, inputs, captured)
        given = [_is_of_worker(t, execute) for t in inputs]
        if not any(given) and not any(_is_of_worker(t, execute) for t in captured):
            return original(function, inputs, captured)
        if compat.gradient_may_be_recorded([*inputs, *captured]):
            if function not in adopted:
                adopted[function] = {}
                _LOG.warning(
                    "%s is called under a GradientTape outside of it and is not placed: put tape, "
                    "gradients and update into one @tf.function",
                    function.graph.name,
                )
            return original(function, inputs, captured)
        # A variable is bound; an iterator is another one at every call.
        bound = {
            n: t for n, (t, of_worker) in enumerate(zip(inputs, given, strict=True)) if of_worker
        }
        key = tuple(id(t) for t in bound.values())
        known = adopted.setdefault(function, {})
        if key not in known:
            known[key] = _adopt_function(execute, function, bound)
        flat = known[key]([t for n, t in enumerate(inputs) if n not in bound])
        return function.function_type.pack_output(flat)

    return call


def _is_of_worker(tensor: Any, execute: Execute) -> bool:
    return tensor.dtype == tf.resource and execute.on_worker(tensor)


def _adopt_function(
    execute: Execute, function: Any, bound: Mapping[int, Any]
) -> Callable[[list[Any]], list[Any]]:
    resources = {function.inputs[number].op.name: tensor for number, tensor in bound.items()}
    capture = capture_function(function, variables=execute.variables(), resources=resources)
    return execute.adopt(function.graph.name, capture, fetch=False)

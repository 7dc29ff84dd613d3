"""The private calls of TensorFlow and Keras that hook into a running program; see `compat`."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import tensorflow as tf

from pardnn.tensorflow import compat, compat_state


def keras_step_function(model: Any, kind: str) -> Callable[[Any], Any]:
    """What Keras traces for one step of `kind` (train, test, predict) of `model`, outside of its
    own tf.function.

    Seen to work with Keras 3.15 (TensorFlowTrainer._make_function and make_predict_function).
    """
    from keras.src.backend.tensorflow import trainer

    step = getattr(model, f"{kind}_step")
    reduction = "concat" if kind == "predict" else "auto"

    @tf.autograph.experimental.do_not_convert
    def one_step_on_data(data: Any) -> Any:
        outputs = model.distribute_strategy.run(step, args=(data,))
        return trainer.reduce_per_replica(outputs, model.distribute_strategy, reduction=reduction)

    return one_step_on_data


def keras_build_optimizer(model: Any) -> None:
    """Create the optimizer's variables now, as `apply` would while the step is traced (Keras 3.15).

    Created in a trace, all of them would get their first values from one function that holds them
    all at once.
    """
    from keras.src import backend

    optimizer = getattr(model, "optimizer", None)
    layers = model._flatten_layers()
    if optimizer is None or optimizer.built or not all(layer.built for layer in layers):
        return
    with backend.name_scope(optimizer.name, caller=optimizer):
        optimizer.build(model.trainable_variables)


def keras_concat(parts: list[Any]) -> Any:
    """Join the results of several predicted batches as Keras does (Keras 3.15)."""
    from keras.src.backend.tensorflow import trainer

    return trainer.concat(parts)


def replace_trainer_functions(
    train: Callable[[Any], Any], test: Callable[[Any], Any], predict: Callable[[Any], Any]
) -> Callable[[], None]:
    """Let models get their train, test and predict functions from these makers; returns the
    undoing.

    Seen to work with Keras 3.15: `fit`, `evaluate`, `predict` and the `*_on_batch` methods call
    `make_train_function` and so on, then `train_function` and so on.
    """
    from keras.src.backend.tensorflow.trainer import TensorFlowTrainer

    given: weakref.WeakSet[Any] = weakref.WeakSet()

    def maker(make: Callable[[Any], Any], attribute: str) -> Callable[..., Any]:
        def make_function(self: Any, force: bool = False) -> Any:
            if getattr(self, attribute) is None or force:
                setattr(self, attribute, make(self))
                given.add(self)
            return getattr(self, attribute)

        return make_function

    replaced = {}
    for kind, make in (("train", train), ("test", test), ("predict", predict)):
        name = f"make_{kind}_function"
        replaced[name] = getattr(TensorFlowTrainer, name)
        setattr(TensorFlowTrainer, name, maker(make, f"{kind}_function"))

    def undo() -> None:
        for name, original in replaced.items():
            setattr(TensorFlowTrainer, name, original)
        for model in given:
            model.train_function = model.test_function = model.predict_function = None

    return undo


def replace_concrete_call(
    call: Callable[[Any, Any, list[Any], list[Any]], Any],
) -> Callable[[], None]:
    """Send every call of a ConcreteFunction through `call(original, function, inputs, captured)`
    (TF 2.21).
    """
    from tensorflow.python.eager.polymorphic_function import concrete_function

    original = concrete_function.ConcreteFunction._call_flat

    def _call_flat(self: Any, tensor_inputs: Any, captured_inputs: Any) -> Any:
        return call(original, self, tensor_inputs, captured_inputs)

    concrete_function.ConcreteFunction._call_flat = _call_flat

    def undo() -> None:
        concrete_function.ConcreteFunction._call_flat = original

    return undo


def refuse_strategies(refuse: Callable[[str], None]) -> Callable[[], None]:
    """Call `refuse` with the name of any distribution strategy a script constructs (TF 2.21)."""
    names = (
        "MirroredStrategy",
        "MultiWorkerMirroredStrategy",
        "OneDeviceStrategy",
        "ParameterServerStrategy",
        "TPUStrategy",
    )
    replaced = []
    for name in names:
        strategy = getattr(tf.distribute, name, None) or getattr(tf.distribute.experimental, name)
        original = strategy.__init__

        def refusing(self: Any, *_: Any, _name: str = name, **__: Any) -> None:
            refuse(_name)

        strategy.__init__ = refusing
        replaced.append((strategy, original))

    def undo() -> None:
        for strategy, original in replaced:
            strategy.__init__ = original

    return undo


# --- a program that is at work already ------------------------------------------------------------


def all_variables() -> list[Any]:
    """Every tf.Variable of this process, found through the garbage collector (TF 2.21).

    One that was created while a function was traced is no ResourceVariable, but has the same base;
    what an assignment in a graph returns has it too, and is no variable of its own.
    """
    from tensorflow.python.ops.resource_variable_ops import BaseResourceVariable, _UnreadVariable

    found = [o for o in gc.get_objects() if isinstance(o, BaseResourceVariable)]
    return [variable for variable in found if not isinstance(variable, _UnreadVariable)]


def renew_variables(variables: Iterable[Any]) -> None:
    """Give variables of this process new resources with their values (TF 2.21).

    After the process became part of a cluster, assigning to a resource from before has no effect,
    and no error either.
    """
    here = compat.local_device()
    for variable in variables:
        if tf.raw_ops.VarIsInitializedOp(resource=variable.handle):
            compat_state.give_handle(variable, here)


_kept_functions: list[Any] = []


def keep_functions() -> None:
    """Let Keras models trace their steps anew, and keep every other function for ever.

    Once workers are connected, the end of a function is told to them; one they never knew is an
    error there, which comes out of some later operation (TF 2.21, Keras 3.15).
    """
    from keras.src.backend.tensorflow.trainer import TensorFlowTrainer
    from tensorflow.python.eager.polymorphic_function.atomic_function import AtomicFunction

    for model in [o for o in gc.get_objects() if isinstance(o, TensorFlowTrainer)]:
        model.train_function = model.test_function = model.predict_function = None
    gc.collect()
    _kept_functions.extend(o for o in gc.get_objects() if isinstance(o, AtomicFunction))


def leave_cluster() -> None:
    """Let this process, the job `localhost` of a cluster, know no other process (TF 2.21)."""
    from tensorflow.python.eager import context

    definition = context.context().get_server_def()
    if definition is None:
        return
    for job in list(definition.cluster.job):
        if job.name != definition.job_name:
            definition.cluster.job.remove(job)
    context.context().update_server_def(definition)

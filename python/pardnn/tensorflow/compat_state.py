"""The private TensorFlow and Keras calls about state: making, moving, saving variables.

The other half of ``compat.py``, with the same rule: each function says with which versions it was
seen to work, and its test fails with a sentence when that changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

Undo = Callable[[], None]


def wrap_variable_creation(wrapper: Callable[[Callable[..., Any], dict[str, Any]], Any]) -> Undo:
    """Lets ``wrapper(create, arguments)`` make every tf.Variable from now on.

    Unlike a creator scope it holds in every thread, after ``keras.backend.clear_session()`` and
    around variables that a tf.function lifts out of itself (TF 2.21: Variable._variable_call).
    """
    from tensorflow.python.ops import variables

    original = variables.Variable.__dict__["_variable_call"]
    create = original.__func__

    def variable_call(cls: Any, initial_value: Any = None, *more: Any, **arguments: Any) -> Any:
        if cls is not variables.Variable or more:
            return create(cls, initial_value, *more, **arguments)
        return wrapper(
            lambda **changed: create(cls, **changed), {"initial_value": initial_value, **arguments}
        )

    variables.Variable._variable_call = classmethod(variable_call)

    def undo() -> None:
        variables.Variable._variable_call = original

    return undo


def announce_shapes(initial: Callable[[Callable[..., Any], tuple[int, ...], Any], Any]) -> Undo:
    """Lets ``initial(initializer, shape, dtype)`` make the initial value Keras gives tf.Variable.

    Keras gives a function without a word about its size (Keras 3.15:
    Variable._initialize_with_initializer of the TensorFlow backend).
    """
    from keras.src.backend.tensorflow import core

    original = core.Variable._initialize_with_initializer

    def initialize(self: Any, initializer: Any) -> None:
        self._initialize(initial(initializer, self._shape, self._dtype))

    core.Variable._initialize_with_initializer = initialize

    def undo() -> None:
        core.Variable._initialize_with_initializer = original

    return undo


def give_handle(variable: Any, device: str) -> None:
    """Moves a variable: a new resource on ``device`` with its value, under the same Python object.

    The copy goes from worker to worker. The old resource is emptied at once, because a traced
    function may keep its handle alive for ever (TF 2.21: the attribute _handle; Keras keys its
    optimizers by _unique_id, which stays).
    """
    from tensorflow.python.ops import resource_variable_ops

    old = variable._handle
    with tf.init_scope(), tf.device(device):
        copy = resource_variable_ops.ResourceVariable(
            initial_value=variable.read_value(),
            trainable=False,
            dtype=variable.dtype,
            shape=variable.shape,
        )
    variable._handle = copy._handle
    with tf.init_scope(), tf.device(old.device):
        tf.raw_ops.AssignVariableOp(resource=old, value=tf.zeros([0], variable.dtype))

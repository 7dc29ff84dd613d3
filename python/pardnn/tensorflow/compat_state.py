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
    optimizers by _unique_id, which stays). Returns when both workers are done.
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
    # Operations on workers are queued. The next move must not start before this one made room.
    for handle in (copy._handle, old):
        with tf.init_scope(), tf.device(handle.device):
            tf.raw_ops.VariableShape(input=handle).numpy()


def store_through(put: Callable[[Any, str, Any], bool], get: Callable[[Any, str], Any]) -> Undo:
    """Hooks the tensors of Keras's HDF5 files.

    ``put(group, key, value)`` may write a value into the h5py group itself and return True;
    ``get(group, key)`` may return the value to use instead of the whole array, or None
    (Keras 3.15: saving_lib.H5IOStore, whose subclass for shards keeps its own ways).
    """
    from keras.src.saving import saving_lib

    store = saving_lib.H5IOStore
    original_put, original_get = store.__setitem__, store.__getitem__

    def put_item(self: Any, key: str, value: Any) -> None:
        if type(self) is store and self.mode in ("w", "a"):
            if not self._h5_entry_initialized:
                self._create_h5_group(self._h5_entry_path)
            if put(self._h5_entry_group, key, value):
                return
        original_put(self, key, value)

    def get_item(self: Any, key: str) -> Any:
        if type(self) is store and self.archive is None:
            # Keras's own look-up refuses links out of the file and the like.
            found = get(saving_lib.safe_get_h5_dataset(self._h5_entry_group, key), key)
            if found is not None:
                return found
        return original_get(self, key)

    store.__setitem__, store.__getitem__ = put_item, get_item

    def undo() -> None:
        store.__setitem__, store.__getitem__ = original_put, original_get

    return undo


def save_through_disk() -> Undo:
    """Lets .keras archives be put together and taken apart on disk instead of in memory.

    Keras does so by itself when it thinks memory is short (Keras 3.15:
    saving_lib.is_memory_sufficient).
    """
    from keras.src.saving import saving_lib

    original = saving_lib.is_memory_sufficient
    saving_lib.is_memory_sufficient = lambda model: False

    def undo() -> None:
        saving_lib.is_memory_sufficient = original

    return undo


def save_optimizers_as_variables() -> Undo:
    """Lets optimizers hand their variables to the store, as layers do, instead of numpy arrays
    (Keras 3.15: BaseOptimizer.save_own_variables)."""
    from keras.src.optimizers import base_optimizer

    original = base_optimizer.BaseOptimizer.save_own_variables

    def save_own_variables(self: Any, store: Any) -> None:
        for number, variable in enumerate(self.variables):
            store[str(number)] = variable

    base_optimizer.BaseOptimizer.save_own_variables = save_own_variables

    def undo() -> None:
        base_optimizer.BaseOptimizer.save_own_variables = original

    return undo


def assign_through(assign: Callable[[Any, Any], bool]) -> Undo:
    """Lets ``assign(variable, value)`` carry out an assignment to a Keras variable itself and
    return True (Keras 3.15: Variable.assign)."""
    from keras.src.backend.common import variables

    original = variables.Variable.assign

    def assign_(self: Any, value: Any) -> Any:
        return value if assign(self, value) else original(self, value)

    variables.Variable.assign = assign_

    def undo() -> None:
        variables.Variable.assign = original

    return undo


def tensorflow_is_running() -> bool:
    """Whether TensorFlow has begun to run operations in this process, and with that its threads:
    a process cannot be forked then (TF 2.21: eager.context)."""
    from tensorflow.python.eager import context

    return bool(context.context()._initialized)

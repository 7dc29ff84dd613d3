"""Variables live on workers from their first byte, and move without any passing its limit.

While variables are created nobody knows the plan yet, so each goes to the worker with most memory
left; its initial value is computed there. Once there is a plan, ``move`` brings them home.
"""

from __future__ import annotations

import itertools
import logging
import math
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import tensorflow as tf

from pardnn.errors import Refusal
from pardnn.tensorflow import compat_state
from pardnn.tensorflow.cluster import Cluster

# An initial value this large is computed inside one function, whose intermediate values are
# overwritten in place; eagerly, each of its operations would hold a copy of its own.
_LARGE_BYTES = 1 << 20
# Smaller variables have places of their own on a worker; see small_tensors.
_SCATTERED_BYTES = 256
# Of a worker's free memory, the most that one variable of another may take for a moment: the free
# bytes may be in several pieces.
_PART_LENT = 0.5
# Inside the moves of one variable for another, at most this many steps aside per planned move.
_DETOURS_PER_MOVE = 2

_LOG = logging.getLogger(__name__)


class NotEnoughMemory(Refusal):
    """The variables do not fit the workers; the message names sizes, holders and what is enough."""


def bytes_of(variable: tf.Variable) -> int:
    """Bytes of a variable's value; 0 where its shape is not known."""
    return _bytes(variable.shape, variable.dtype)


def _bytes(shape: Any, dtype: Any) -> int:
    elements = tf.TensorShape(shape).num_elements()
    return 0 if elements is None else int(elements) * int(tf.as_dtype(dtype).size)


class Variables:
    """Every tf.Variable of this process that was created since ``install``, and where it is."""

    def __init__(self, cluster: Cluster, *, values: bool = True) -> None:
        self._cluster = cluster
        self._values = values
        self._devices = cluster.device_strings
        self._lock = threading.RLock()
        self._live: dict[int, weakref.ref[Any]] = {}
        self._numbers = itertools.count()
        self._undo: list[Callable[[], None]] = []

    def install(self) -> None:
        """From now on variables are created on the workers."""
        self._undo = [
            compat_state.wrap_variable_creation(self._create),
            compat_state.announce_shapes(_Initial),
        ]

    def uninstall(self) -> None:
        """Leaves the creation of variables to TensorFlow again."""
        while self._undo:
            self._undo.pop()()

    def live(self) -> list[tf.Variable]:
        """The variables that still exist, in order of creation."""
        with self._lock:
            found = [reference() for reference in self._live.values()]
        return [variable for variable in found if variable is not None]

    def bytes_on(self, number: int) -> int:
        """Bytes of the variables on worker ``number``."""
        device = self._devices[number]
        return sum(bytes_of(v) for v in self.live() if v.device == device)

    def free(self, number: int) -> float:
        """Bytes worker ``number`` can still take; infinite without a limit."""
        limit = self._cluster.limits[number]
        if limit is None:
            return math.inf
        return min(limit - self.bytes_on(number), self._cluster.room(number))

    # --- creation ---------------------------------------------------------------------------------

    def _create(self, create: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        initial = arguments["initial_value"]
        size = _announced_bytes(initial, arguments)
        with self._lock:
            number = self._roomiest(size, str(arguments.get("name") or "variable"))
        if not self._values and isinstance(initial, _Initial):
            arguments["initial_value"] = initial.untouched
        elif isinstance(initial, _Initial) and initial.computes() and size >= _LARGE_BYTES:
            arguments["initial_value"] = lambda: _in_one_function(initial)
        with tf.device(self._devices[number]):
            variable = create(**arguments)
        self._remember(variable)
        return variable

    def adopt(self, found: Iterable[tf.Variable]) -> None:
        """Brings variables that were created before, in this process, to the workers."""
        for variable in found:
            with self._lock:
                number = self._roomiest(bytes_of(variable), variable.name.removesuffix(":0"))
            compat_state.give_handle(variable, self._devices[number])
            self._remember(variable)

    def _roomiest(self, size: int, name: str) -> int:
        """The worker with most memory left; without limits, the one that holds least."""
        held = self._bytes_by_worker()
        limits = self._cluster.limits
        left = [math.inf if m is None else m - h for m, h in zip(limits, held, strict=True)]
        number = max(range(len(held)), key=lambda i: (left[i], -held[i], -i))
        if size > left[number]:
            raise NotEnoughMemory(self._explain(size, name, held))
        return number

    def _bytes_by_worker(self) -> list[int]:
        held = dict.fromkeys(self._devices, 0)
        for variable in self.live():
            if variable.device in held:
                held[variable.device] += bytes_of(variable)
        return list(held.values())

    def _remember(self, variable: Any) -> None:
        number = next(self._numbers)

        def forget(_: Any) -> None:
            self._live.pop(number, None)

        with self._lock:
            self._live[number] = weakref.ref(variable, forget)

    def _explain(self, size: int, name: str, held: Sequence[int]) -> str:
        limits = [0 if limit is None else limit for limit in self._cluster.limits]
        largest = sorted(self.live(), key=bytes_of, reverse=True)[:5]
        lines = [
            f"the model's variables do not fit: variable {name} needs {size} bytes, and "
            + "; ".join(
                f"worker {i} holds {h} of {m} bytes"
                for i, (h, m) in enumerate(zip(held, limits, strict=True))
            ),
            "the largest so far: "
            + ", ".join(f"{v.name.removesuffix(':0')} {bytes_of(v)}" for v in largest),
            f"at least {sum(held) + size} bytes over all workers are needed for variables alone, "
            f"{max([size, *(bytes_of(v) for v in largest)])} of them on one",
        ]
        return "\n  ".join(lines)

    # --- moving -----------------------------------------------------------------------------------

    def move(self, assignments: Iterable[tuple[tf.Variable, str]]) -> int:
        """Brings each (variable, device string) to its device; returns the number of moves.

        Moves go one at a time. Each needs room for one copy at its target, which the variable takes
        there afterwards anyway; the source is emptied at once. Moves are ordered so that no worker
        passes its limit. Where all that are left wait for each other, one variable steps aside to
        a third worker first. Raises NotEnoughMemory when nothing has room. Functions placed
        before hold the old handles and must be built again.
        """
        pending = [(v, device) for v, device in assignments if v.device != device]
        moved, detours = 0, _DETOURS_PER_MOVE * len(pending)
        free = {device: self.free(i) for i, device in enumerate(self._devices)}
        pending.sort(key=lambda move: -bytes_of(move[0]))
        while pending:
            fits = (i for i, m in enumerate(pending) if bytes_of(m[0]) <= _free(free, m[1]))
            first = next(fits, None)
            if first is not None:
                chosen = pending.pop(first)
            else:
                detours -= 1
                aside = _step_aside(pending, free) if detours >= 0 else None
                if aside is None:
                    raise NotEnoughMemory(_stuck(pending, free))
                chosen = aside
            self._move_one(*chosen, free)
            moved += 1
        return moved

    def compact(self) -> None:
        """Leaves the free memory of each worker in one piece.

        Variables that came and went leave holes between those that stay, and the allocator gives a
        hole whole to any tensor of more than half its size. So one worker after the other is
        emptied, as far as the others have room for its variables, and filled again, the largest
        first.
        """
        for device in self._devices:
            here = [v for v in self.live() if v.device == device]
            here = sorted((v for v in here if bytes_of(v) > _SCATTERED_BYTES), key=bytes_of)
            free = {d: self.free(i) for i, d in enumerate(self._devices)}
            others = [d for d in self._devices if d != device]
            gone = []
            for variable in reversed(here):
                other = max(others, key=lambda d: free[d], default=device)
                # One at a time: what arrives at a worker that has no room for it ends the worker.
                if other != device and bytes_of(variable) <= free[other] * _PART_LENT:
                    self._move_one(variable, other, free)
                    gone.append(variable)
            for variable in gone:
                self._move_one(variable, device, free)

    def _move_one(self, variable: tf.Variable, device: str, free: dict[str, float]) -> None:
        source = variable.device
        compat_state.give_handle(variable, device)
        _LOG.debug("moved %s from %s to %s", variable.name, source, device)
        for number, name in enumerate(self._devices):
            if name in (source, device):
                # Asked, not counted: the allocator gives some variables more than they need.
                free[name] = self._cluster.room(number)


def _free(free: dict[str, float], device: str) -> float:
    return free.get(device, math.inf)


def _step_aside(
    pending: Sequence[tuple[tf.Variable, str]], free: dict[str, float]
) -> tuple[tf.Variable, str] | None:
    """A (variable, third worker) that makes room where another pending variable wants to go."""
    wanted = {device for _, device in pending}
    for variable, target in sorted(pending, key=lambda move: bytes_of(move[0])):
        if variable.device not in wanted:
            continue
        for device in sorted(free, key=lambda d: -free[d]):
            if device not in (variable.device, target) and bytes_of(variable) <= free[device]:
                return variable, device
    return None


def _stuck(pending: Sequence[tuple[tf.Variable, str]], free: dict[str, float]) -> str:
    variable, device = pending[-1]
    return (
        f"{len(pending)} variables cannot be brought to their planned workers: the smallest, "
        f"{variable.name.removesuffix(':0')}, has {bytes_of(variable)} bytes, and {device} has "
        f"room for {max(0, int(_free(free, device)))}; "
        "a larger --memory or a --margin leaves room to move"
    )


class _Initial:
    """What Keras gives tf.Variable as initial value, with its size known before it is computed."""

    def __init__(self, initializer: Callable[..., Any], shape: Any, dtype: Any) -> None:
        self._initializer = initializer
        self.shape = shape
        self.dtype = dtype

    def __call__(self) -> Any:
        return self._initializer(self.shape, dtype=self.dtype)

    def untouched(self) -> Any:
        """A value of the right shape whose pages nobody has written: it takes no memory."""
        return tf.raw_ops.Empty(shape=self.shape, dtype=tf.as_dtype(self.dtype), init=False)

    def computes(self) -> bool:
        """Whether more than one operation is behind the value. A constant is best made eagerly:
        inside a function it would be folded, which takes its bytes twice."""
        initializers = tf.keras.initializers
        constants = (initializers.Zeros, initializers.Ones, initializers.Constant)
        return tf.executing_eagerly() and not isinstance(self._initializer, constants)


def _announced_bytes(initial: Any, arguments: dict[str, Any]) -> int:
    """Bytes a variable will have; 0 when only computing the initial value would tell."""
    shape = arguments.get("shape")
    shape = getattr(initial, "shape", None) if shape is None else shape
    dtype = arguments.get("dtype") or getattr(initial, "dtype", None)
    return 0 if shape is None or dtype is None else _bytes(shape, dtype)


def _in_one_function(initial: Callable[[], Any]) -> Any:
    """The initial value, its intermediate values overwritten in place where TensorFlow can.

    An initializer that cannot be traced (one that reads numpy values) runs as usual.
    """

    def pardnn_initial_value() -> Any:
        return tf.convert_to_tensor(initial())

    function = tf.function(pardnn_initial_value, autograph=False, jit_compile=False)
    try:
        concrete = function.get_concrete_function()
    except Exception as error:  # noqa: BLE001  any: the user's initializer decides what it raises
        _LOG.info("an initial value is computed eagerly: %s", error)
        return initial()
    return concrete()


_installed: Variables | None = None


def install(cluster: Cluster, *, values: bool = True) -> Variables:
    """Creates all further variables of this process on the cluster's workers.

    With ``values=False`` they get memory that is never touched instead of initial values, so that
    a model larger than this machine can be looked at.
    """
    global _installed
    uninstall()
    _installed = Variables(cluster, values=values)
    _installed.install()
    return _installed


def uninstall() -> None:
    """Undoes ``install``."""
    global _installed
    if _installed is not None:
        _installed.uninstall()
        _installed = None


@contextmanager
def installed(cluster: Cluster) -> Iterator[Variables]:
    """``install`` for the length of a block."""
    found = install(cluster)
    try:
        yield found
    finally:
        uninstall()


def _current() -> Variables:
    if _installed is None:
        raise RuntimeError("pardnn.tensorflow.variables.install(cluster) was not called")
    return _installed


def live_variables() -> list[tf.Variable]:
    """The variables created on workers that still exist, in order of creation."""
    return _current().live()


def bytes_on(number: int) -> int:
    """Bytes of the variables on worker ``number``."""
    return _current().bytes_on(number)


def compact() -> None:
    """Leaves each worker's free memory in one piece; see ``Variables.compact``."""
    _current().compact()


def move(assignments: Iterable[tuple[tf.Variable, str]]) -> int:
    """Brings variables to devices; see ``Variables.move``."""
    return _current().move(assignments)

"""Runs single ops alone inside a worker and says how long each takes and what it needs besides.

This is the worker's half of `costs`: it is called through the control socket, runs eagerly on the
worker's own processor, with the worker's allocator and number of threads, and so sees the kernels
that a step will run there without any message between processes.
"""

from __future__ import annotations

import base64
import time
from typing import Any

import numpy as np
import tensorflow as tf

from pardnn.tensorflow import compat

# One op is run until it has taken this long in all, at least twice and at most this often.
_ENOUGH_NS = 20_000_000
_MOST_RUNS = 6
_CHAIN = 200
# So little is free on every worker; its allocator lets an op that is refused memory wait for ten
# seconds, in which the worker answers nobody.
_ALWAYS_BYTES = 16 * 1024


def measure(request: dict[str, Any]) -> dict[str, Any]:
    """Time and workspace of each op in `request["ops"]`, in order.

    An op is {node: base64 of a NodeDef, inputs: [[dtype, shape, base64 of the value or null]],
    outputs: n, bytes: of inputs and outputs}. No op is started after `request["seconds"]`, and none
    that needs more than `request["memory_bytes"]` (null: no limit). The answer is {seconds, ops:
    [{ns, workspace} or {error}]}, an error with `late` for an op not tried; times include the start
    of an op, see `floors`.
    """
    start = time.monotonic()
    deadline = start + float(request["seconds"])
    limit = request.get("memory_bytes")
    inputs = _Inputs()
    answers: list[dict[str, Any]] = []
    for op in request["ops"]:
        if time.monotonic() > deadline:
            answers.append({"error": "no time left", "late": True})
        elif limit is not None and _need_bytes(op, inputs) > max(limit, _ALWAYS_BYTES):
            answers.append({"error": "no room on the worker", "late": True, "room": True})
        else:
            if limit is not None and _need_bytes(op, inputs) + inputs.held_bytes() > limit:
                inputs.clear()
            answers.append(_measured(op, inputs))
    return {"seconds": time.monotonic() - start, "ops": answers}


def _need_bytes(op: dict[str, Any], inputs: _Inputs) -> int:
    """Memory that must be free for an op: making its inputs takes some, its results do, and not all
    that is free is in one piece.
    """
    return max(inputs.bytes_of(op) * 3, int(op["bytes"]) * 3 // 2)


def floors(request: dict[str, Any]) -> dict[str, int]:
    """What starting an op costs: {eager_ns, graph_ns}, alone and as one of many in a function."""
    one = tf.constant(1.0)
    add = compat.node_def("AddV2", {"T": tf.float32})
    eager = min(_timed(lambda: compat.run_op(add, [one, one], 1)) for _ in range(50))

    @tf.function(autograph=False, jit_compile=False)
    def chain(x: Any) -> Any:
        for _ in range(_CHAIN):
            x = x + one
        return x

    chain(one)
    whole = min(_timed(lambda: chain(one)) for _ in range(10))
    return {"eager_ns": eager, "graph_ns": max(1, (whole - eager) // _CHAIN)}


def _timed(run: Any) -> int:
    start = time.perf_counter_ns()
    run()
    return time.perf_counter_ns() - start


def _measured(op: dict[str, Any], inputs: _Inputs) -> dict[str, Any]:
    node = tf.compat.v1.NodeDef.FromString(base64.b64decode(op["node"]))
    try:
        given = [inputs.get(*described) for described in op["inputs"]]
        best, workspace, spent = None, 0, 0
        for run in range(_MOST_RUNS):
            tf.config.experimental.reset_memory_stats("CPU:0")
            start = time.perf_counter_ns()
            outputs = compat.run_op(node, given, op["outputs"])
            taken = time.perf_counter_ns() - start
            held = tf.config.experimental.get_memory_info("CPU:0")
            # The first run also sets up the kernel; what it takes for itself is no workspace.
            workspace = held["peak"] - held["current"]
            del outputs
            best = taken if best is None else min(best, taken)
            spent += taken
            if run and spent > _ENOUGH_NS:
                break
    except (tf.errors.OpError, ValueError, TypeError, AttributeError) as error:
        return {"error": f"{type(error).__name__}: {str(error)[:200]}"}
    return {"ns": best, "workspace": int(workspace)}


class _Inputs:
    """Input tensors, kept while the next op uses the same ones."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], tf.Tensor] = {}

    def bytes_of(self, op: dict[str, Any]) -> int:
        """Bytes of all inputs of an op."""
        return sum(
            int(np.prod(shape, dtype=np.int64)) * tf.as_dtype(dtype).size
            for dtype, shape, _ in op["inputs"]
        )

    def held_bytes(self) -> int:
        """Bytes of the inputs kept."""
        return sum(t.shape.num_elements() * t.dtype.size for t in self._known.values())

    def clear(self) -> None:
        """Keep none any more."""
        self._known.clear()

    def get(self, dtype: int, shape: list[int], value: str | None) -> tf.Tensor:
        key = (dtype, tuple(shape), value)
        if key not in self._known:
            if sum(t.shape.num_elements() for t in self._known.values()) > 1 << 20:
                self._known.clear()
            self._known[key] = _tensor(tf.as_dtype(dtype), shape, value)
        return self._known[key]


def _tensor(dtype: tf.DType, shape: list[int], value: str | None) -> tf.Tensor:
    """The given value, or one that no kernel refuses: indices 0, fractions around a half."""
    kind = dtype.as_numpy_dtype
    with tf.device("/device:CPU:0"):
        if value is not None:
            array = np.frombuffer(base64.b64decode(value), kind).reshape(shape)
        elif dtype.is_floating or dtype.is_complex:
            array = np.random.default_rng(1).random(shape, np.float32).astype(kind)
        else:
            array = np.ones(shape, kind) if dtype == tf.bool else np.zeros(shape, kind)
        return tf.identity(tf.constant(array, dtype))

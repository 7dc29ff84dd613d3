"""How fast workers send to each other: bandwidth, overhead and latency, measured once for a run.

What is measured is what a step will do: tensors that leave one worker's graph and enter another's
through TensorFlow's own transport, processing on both sides included. The way from the chief to the
workers carries inputs and results only and is not measured.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, Protocol

import tensorflow as tf

_LOG = logging.getLogger(__name__)

_HOPS = 8
_TENSORS = 32
_LARGE_BYTES = 2 << 20
_RUNS = 4
# A busy machine can make many tensors look as fast as one; no message is free.
_LEAST_OVERHEAD_NS = 20_000.0
_LEAST_MESSAGE_NS = 50_000.0
_MOST_BYTES_PER_S = 20_000_000_000


class Workers(Protocol):
    """The part of a cluster that is needed here."""

    device_strings: list[str]


def measure(workers: Workers) -> dict[str, int]:
    """{bandwidth: bytes per second, overhead: ns, latency: ns} of a link between two workers.

    All links are taken to be like the one from worker 0 to worker 1, both ways. Empty for one
    worker. Takes about half a second and holds a few MB on two workers meanwhile.
    """
    if len(workers.device_strings) < 2:
        return {}
    here, there = workers.device_strings[:2]
    still, moving, many = (
        tf.function(f, autograph=False, jit_compile=False)
        for f in (
            _to_and_fro(here, there, 0),
            _to_and_fro(here, there, _HOPS),
            _at_once(here, there),
        )
    )
    one = tf.constant(1)
    large = tf.constant(_LARGE_BYTES // 4)
    nothing = _best(lambda: still(one))
    small = max(_LEAST_MESSAGE_NS, (_best(lambda: moving(one)) - nothing) / _HOPS)
    full = (_best(lambda: moving(large)) - _best(lambda: still(large))) / _HOPS
    each = (_best(lambda: many(one)) - nothing - small) / (_TENSORS - 1)
    overhead = min(small, max(each, _LEAST_OVERHEAD_NS))
    found = {
        "bandwidth": min(_MOST_BYTES_PER_S, int(_LARGE_BYTES * 1e9 / max(full - small, 1.0))),
        "overhead": int(overhead),
        "latency": int(small - overhead),
    }
    _LOG.info("links: %s", found)
    return found


def _best(run: Callable[[], Any]) -> int:
    """Nanoseconds of the fastest of a few runs, after one that sets the function up."""
    run().numpy()
    times = []
    for _ in range(_RUNS):
        start = time.perf_counter_ns()
        run().numpy()
        times.append(time.perf_counter_ns() - start)
    return min(times)


def _to_and_fro(here: str, there: str, hops: int) -> Callable[[tf.Tensor], tf.Tensor]:
    """A function that makes a tensor of so many numbers and sends it back and forth."""

    def run(count: tf.Tensor) -> tf.Tensor:
        with tf.device(here):
            tensor = tf.fill(tf.reshape(count, [1]), 0.0)
        for hop in range(hops):
            with tf.device(here if hop % 2 else there):
                tensor = tf.identity(tensor)
        with tf.device(here if hops % 2 == 0 else there):
            return tensor[0]

    return run


def _at_once(here: str, there: str) -> Callable[[tf.Tensor], tf.Tensor]:
    """A function that sends many small tensors the same way."""

    def run(count: tf.Tensor) -> tf.Tensor:
        with tf.device(here):
            parts = [tf.fill(tf.reshape(count, [1]), float(n)) for n in range(_TENSORS)]
        with tf.device(there):
            return tf.add_n(parts)[0]

    return run

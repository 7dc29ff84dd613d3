"""What to say when a worker refuses memory in a step whose plan promised that it fits."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import tensorflow as tf

from pardnn.errors import Refusal
from pardnn.quantities import show_bytes
from pardnn.tensorflow.steps import Record

_REFUSED = re.compile(
    r"OOM when allocating tensor with shape\[(?P<shape>[\d,]*)\] and type (?P<type>\S+) "
    r"on (?P<device>/job:\S+) by allocator"
)
_NODE = re.compile(r"\{\{node (?P<name>[^}]+)\}\}")


class OutOfMemory(Refusal):
    """A worker refused memory in a placed step."""


def message(error: Exception, record: Record, devices: Sequence[str]) -> str | None:
    """One sentence or two about a ResourceExhaustedError; None if no worker's allocator raised it.

    `devices` are TensorFlow's names of the workers in the order of the plan's devices.
    """
    found = _REFUSED.search(str(error))
    if found is None or found["device"] not in devices or record.prediction is None:
        return None
    number = devices.index(found["device"])
    promised = record.prediction
    name = list(promised.limits)[number]
    elements = math.prod(int(side) for side in found["shape"].split(",") if side)
    asked = show_bytes(elements * tf.as_dtype(found["type"]).size)
    node = _NODE.search(str(error))
    reader = f" for {node['name']}" if node else ""
    return (
        f"worker {number} ({name}) refused {asked}{reader} in step {len(record.seconds) + 1} of "
        f"{record.name}: its limit is {show_bytes(promised.limits[name])}, and the plan promised "
        f"to need at most {show_bytes(promised.peaks[name])}. The allocator lost more to gaps than "
        "the plan leaves free; --margin 150 leaves 15 % of each limit free, more --memory helps too"
    )

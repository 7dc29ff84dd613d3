"""The script's own `tf.device` scopes as orders to the planner, for `--respect-devices`.

A script that spreads its model by hand says `with tf.device("/GPU:1")` around some of its layers.
Number k of such a device is worker k. What is on the CPU, which is where a script puts things that
belong to no device, is left to the planner.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

import pardnn
from pardnn.errors import UsageError


def orders_of(graph: Any, devices: Sequence[str]) -> dict[str, str]:
    """The device that the script wants for each op of a FuncGraph for which it wants one.

    `devices` are the machine's, by number. Raises UsageError for a number that is not there.
    """
    found = {}
    for op in graph.get_operations():
        number = _number(op.device)
        if number is None:
            continue
        if number >= len(devices):
            raise UsageError(
                f"--respect-devices: the script wants {op.name} on {op.device}, and this run has "
                f"{len(devices)} devices, numbered from 0"
            )
        found[op.name] = devices[number]
    return found


def _number(device: str) -> int | None:
    """The number of an accelerator, or of a CPU behind the first, in a TensorFlow device string."""
    spec = tf.DeviceSpec.from_string(device)
    if spec.job == "worker" or spec.device_type is None:  # a variable's place, or no device
        return None
    if spec.device_type == "CPU":
        return spec.device_index or None
    return spec.device_index or 0


def builder(orders: dict[str, str]) -> Callable[..., pardnn.Graph]:
    """What makes an empty graph whose ops obey `orders`."""

    class Ordered(pardnn.Graph):
        def op(self, key: str, *rest: Any, every: bool = False, **more: Any) -> None:
            on = (orders[key],) if key in orders and not every else ()
            super().op(key, *rest, every=every, on=on, **more)

    return Ordered

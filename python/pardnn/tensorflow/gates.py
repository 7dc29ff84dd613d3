"""Transfers that keep the plan's time: sent no earlier and let go no later than planned.

TensorFlow sends a tensor as soon as it exists. A device that lags then holds copies its plan has no
room for yet; a link that lags leaves the sender with tensors it should be rid of. Two control edges
around a transfer stop both:

    sender    producer -> gate -> (sent)            next op of the sender
                           ^         |                    ^
                           |         v                    |
    receiver  op before ---+      arrived -> readers -----+

All of them lead forwards in planned time, so they cannot deadlock, and while reality keeps to the
plan nothing waits for them. They cost a small message each, so they are only put where the plan's
peak of a device depends on timing at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from pardnn.tensorflow import compat, passes

GATE_PREFIX = "pardnn_gate"
ARRIVED_PREFIX = "pardnn_arrived"

# A device whose peak can grow by less than this per mille, whatever the timing, needs no gates.
_NEGLIGIBLE_PER_MILLE = 10


@dataclass(frozen=True)
class Gate:
    """One transfer: `tensor` ("node:n") to device `destination`.

    It waits for node `after` of the destination; node `before` of the sender waits for its arrival.
    """

    tensor: str
    destination: str
    after: str | None
    before: str | None


def of_plan(
    plan: Any, keys: list[str], duration_ns: Mapping[str, int], large: frozenset[str], least: int
) -> list[Gate]:
    """Gates for the transfers of at least `least` bytes that could change a device's peak.

    `keys` are the graph's op keys by number, `duration_ns` how long each op takes, `large` the ops
    whose order is enforced. Keys and devices are the plan's.
    """
    starts = dict(zip(keys, plan.starts.tolist(), strict=True))
    lines = {
        device: _Line([key for key in sequence if key in large], starts, duration_ns)
        for device, sequence in plan.sequences.items()
    }
    shaky = {
        device
        for device, peak in plan.peaks.items()
        if plan.any_timing_peaks[device] * 1000 > peak * (1000 + _NEGLIGIBLE_PER_MILLE)
    }
    gates = []
    for key, output, destination, _, start, arrival, size in plan.transfers:
        if output is None or size < least:
            continue
        home = plan.device_of[key]
        after = lines[destination].last_finished(start) if destination in shaky else None
        before = lines[home].first_started(arrival) if home in shaky else None
        if after is not None or before is not None:
            gates.append(Gate(f"{key}:{output}", destination, after, before))
    return gates


class _Line:
    """The large ops of one device by time."""

    def __init__(
        self, keys: list[str], starts: Mapping[str, int], duration_ns: Mapping[str, int]
    ) -> None:
        self._keys = keys
        self._starts = np.array([starts[key] for key in keys], np.int64)
        lengths = np.array([max(1, duration_ns[key]) for key in keys], np.int64)
        self._ends = self._starts + lengths

    def last_finished(self, time_ns: int) -> str | None:
        """The last op that is finished by then."""
        count = int(np.searchsorted(self._ends, time_ns, side="right"))
        return self._keys[count - 1] if count else None

    def first_started(self, time_ns: int) -> str | None:
        """The first op that starts then or later."""
        count = int(np.searchsorted(self._starts, time_ns, side="left"))
        return self._keys[count] if count < len(self._keys) else None


def insert(nodes: Iterable[Any], gates: Iterable[Gate]) -> list[Any]:
    """Placed `nodes` with the gates' nodes and edges; destinations are devices of nodes."""
    result = list(nodes)
    by_name = {node.name: node for node in result}
    arrivals: dict[tuple[str, str], str] = {}
    waits: dict[str, list[str]] = {}
    added = []
    for number, gate in enumerate(gates):
        name, _, output = gate.tensor.partition(":")
        source = by_name[name]
        edge = name if output == "0" else f"{name}:{output}"
        kind = compat.output_type(source, int(output))
        opened, arrived = f"{GATE_PREFIX}/{number}", f"{ARRIVED_PREFIX}/{number}"
        condition = [] if gate.after is None else [f"^{gate.after}"]
        added.append(_identity(opened, [edge, *condition], source.device, kind))
        added.append(_identity(arrived, [opened], gate.destination, kind))
        arrivals[edge, gate.destination] = arrived
        if gate.before is not None:
            waits.setdefault(gate.before, []).append(f"^{arrived}")
    for node in result:
        edges = [arrivals.get((edge, node.device), edge) for edge in node.input]
        edges += waits.get(node.name, [])
        if edges != list(node.input):
            passes.set_edges(node, edges)
    return result + added


def _identity(name: str, edges: list[str], device: str, kind: int) -> Any:
    node = tf.compat.v1.NodeDef(name=name, op="Identity", device=device, input=edges)
    node.attr["T"].type = kind
    return node

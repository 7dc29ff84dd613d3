"""Transfers that keep the plan's time: sent no earlier and let go no later than planned.

TensorFlow sends a tensor as soon as it exists. A device that lags then holds copies its plan has no
room for yet; a link that lags leaves the sender with tensors it should be rid of. Two control edges
around a transfer stop both:

    sender    producer -> gate -> (sent)            next op of the sender
                           ^         |                    ^
                           |         v                    |
    receiver  op before ---+      arrived -> readers -----+

What frees memory of the receiver may also be a tensor that it sends away itself: a copy that is
planned after such a tensor has left waits until it has arrived where it goes.

All of them lead forwards in planned time, so they cannot deadlock, and while reality keeps to the
plan nothing waits for them. They cost a small message each, which is little beside a large tensor.

A large tensor that has just come is held for a moment by the thread that took it off the network.
Whether an op can take over its buffer would be luck, so a hold sees to it that none does.
"""

from __future__ import annotations

import bisect
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from pardnn.tensorflow import compat, passes

GATE_PREFIX = "pardnn_gate"
HOLD_PREFIX = "pardnn_hold"
ARRIVED_PREFIX = "pardnn_arrived"

# Copies below this may be taken over or not: it makes no difference.
LEAST_HELD_BYTES = 64 * 1024


@dataclass(frozen=True)
class Gate:
    """One transfer: `tensor` ("node:n") to device `destination`.

    It waits for node `after` of the destination, and for the arrival of what the destination sends
    away before: `gone` holds (tensor, destination) of other gates. Node `before` of the sender
    waits for its arrival.
    """

    tensor: str
    destination: str
    after: str | None
    before: str | None
    gone: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Hold:
    """Keeps a copy of `tensor` on `destination` from being taken over by node `reader`: something
    else reads it until then, and node `next` waits for that.
    """

    tensor: str
    destination: str
    reader: str
    next: str


def holds_of_plan(
    plan: Any,
    takers: Mapping[str, Sequence[tuple[str, int]]],
    large: frozenset[str],
    conditional: Collection[str] = (),
) -> list[Hold]:
    """Holds for large copies that an op could take over.

    `takers` are outputs of ops that may take over a tensor, `large` the ops whose order is
    enforced. None waits for one of `conditional`, which may never run.
    """
    homes = plan.device_of  # made anew each time it is asked for
    after: dict[str, str] = {}
    for sequence in plan.sequences.values():
        line = [key for key in sequence if key in large]
        pairs = zip(line, line[1:], strict=False)
        after.update(
            (reader, following) for reader, following in pairs if reader not in conditional
        )
    return [
        Hold(f"{key}:{output}", destination, reader, after[reader])
        for key, output, destination, *_, size in plan.transfers
        if output is not None and size >= LEAST_HELD_BYTES
        for reader, _ in takers.get(f"{key}:{output}", ())
        if homes[reader] == destination and reader in after
    ]


def of_plan(
    plan: Any,
    keys: list[str],
    duration_ns: Mapping[str, int],
    large: frozenset[str],
    least: int,
    takers: Collection[str] = (),
    conditional: Collection[str] = (),
) -> list[Gate]:
    """Gates for the transfers of at least `least` bytes.

    Outputs of `takers` ("key:n") take over the buffer of an input, but for TensorFlow not if they
    are sent as they are: what is read by a send must be allocated for the network. A gate between
    the two reads it then.
    `keys` are the graph's op keys by number, `duration_ns` how long each op takes, `large` the ops
    whose order is enforced; ops of `conditional` may never run, so that they may wait but nothing
    waits for them. Keys and devices are the plan's.
    """
    starts = dict(zip(keys, plan.starts.tolist(), strict=True))

    def lines_of(wanted: Collection[str]) -> dict[str, _Line]:
        return {
            device: _Line([key for key in sequence if key in wanted], starts, duration_ns)
            for device, sequence in plan.sequences.items()
        }

    waiting, lines = lines_of(large), lines_of(large.difference(conditional))
    homes = plan.device_of  # made anew each time it is asked for
    timed = [
        _Timed(f"{key}:{output}", homes[key], destination, start, arrival)
        for key, output, destination, _, start, arrival, size in plan.transfers
        if output is not None and size >= least
    ]
    leaving: dict[str, list[_Timed]] = {device: [] for device in plan.sequences}
    for transfer in sorted(timed, key=lambda t: t.arrival_ns):
        leaving[transfer.home].append(transfer)
    gates = []
    for transfer in timed:
        line = lines[transfer.destination]
        last_ns = line.start_of_last_finished(transfer.start_ns)
        gates.append(
            Gate(
                transfer.tensor,
                transfer.destination,
                after=line.last_finished(transfer.start_ns),
                before=waiting[transfer.home].first_started(transfer.arrival_ns),
                gone=_gone(leaving[transfer.destination], last_ns, transfer.start_ns),
            )
        )
    awaited = {name for gate in gates for name in gate.gone}
    return [
        gate
        for gate in gates
        if gate.after is not None
        or gate.before is not None
        or gate.gone
        or (gate.tensor, gate.destination) in awaited
        or gate.tensor in takers
    ]


@dataclass(frozen=True)
class _Timed:
    """One transfer of a plan."""

    tensor: str
    home: str
    destination: str
    start_ns: int
    arrival_ns: int


def _gone(leaving: Sequence[_Timed], after_ns: int, until_ns: int) -> tuple[tuple[str, str], ...]:
    """What of `leaving`, by arrival, arrives after an instant and no later than another.

    What arrives before the last finished op began has been waited for by that op.
    """
    first = bisect.bisect_right(leaving, after_ns, key=lambda t: t.arrival_ns)
    last = bisect.bisect_right(leaving, until_ns, key=lambda t: t.arrival_ns)
    return tuple((t.tensor, t.destination) for t in leaving[first:last])


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

    def start_of_last_finished(self, time_ns: int) -> int:
        """When the last op began that is finished by then; before the step if there is none."""
        count = int(np.searchsorted(self._ends, time_ns, side="right"))
        return int(self._starts[count - 1]) if count else -1

    def first_started(self, time_ns: int) -> str | None:
        """The first op that starts then or later."""
        count = int(np.searchsorted(self._starts, time_ns, side="left"))
        return self._keys[count] if count < len(self._keys) else None


def insert(nodes: Iterable[Any], gates: Iterable[Gate], holds: Iterable[Hold] = ()) -> list[Any]:
    """Placed `nodes` with the nodes and edges of gates and holds, which name devices of nodes."""
    result, gates = list(nodes), list(gates)
    by_name = {node.name: node for node in result}
    arrivals = {
        (_edge(gate.tensor), gate.destination): f"{ARRIVED_PREFIX}/{number}"
        for number, gate in enumerate(gates)
    }
    waits: dict[str, list[str]] = {}
    added = []
    for number, gate in enumerate(gates):
        name, _, output = gate.tensor.partition(":")
        source, edge = by_name[name], _edge(gate.tensor)
        kind = compat.output_type(source, int(output))
        opened, arrived = f"{GATE_PREFIX}/{number}", arrivals[edge, gate.destination]
        conditions = [] if gate.after is None else [f"^{gate.after}"]
        conditions += [f"^{arrivals[_edge(tensor), device]}" for tensor, device in gate.gone]
        added.append(_identity(opened, [edge, *conditions], source.device, kind))
        added.append(_identity(arrived, [opened], gate.destination, kind))
        if gate.before is not None:
            waits.setdefault(gate.before, []).append(f"^{arrived}")
    for number, hold in enumerate(holds):
        name, _, output = hold.tensor.partition(":")
        kind = compat.output_type(by_name[name], int(output))
        edge = arrivals.get((_edge(hold.tensor), hold.destination), _edge(hold.tensor))
        held = f"{HOLD_PREFIX}/{number}"
        added.append(_identity(held, [edge, f"^{hold.reader}"], hold.destination, kind))
        waits.setdefault(hold.next, []).append(f"^{held}")
    for node in result:
        edges = [arrivals.get((edge, node.device), edge) for edge in node.input]
        edges += waits.get(node.name, [])
        if edges != list(node.input):
            passes.set_edges(node, edges)
    return result + added


def _edge(tensor: str) -> str:
    """How a NodeDef names the tensor "node:n" among its inputs."""
    return tensor.removesuffix(":0")


def _identity(name: str, edges: list[str], device: str, kind: int) -> Any:
    node = tf.compat.v1.NodeDef(name=name, op="Identity", device=device, input=edges)
    node.attr["T"].type = kind
    return node

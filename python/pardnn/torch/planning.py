"""Plans for processes of one machine, whose messages cost time of the cores that compute."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import psutil

import pardnn

# What gloo over loopback reaches: bytes a second, ns for each message.
_BANDWIDTH, _OVERHEAD_NS = 1_000_000_000, 200_000
# Time of a core that a message takes on both sides, which the planner's machine cannot say.
_CORE_NS, _CORE_NS_A_BYTE = 100_000, 0.5
# Plans are also made as if links were slower by this, so that some send less.
_SLOWER = (1, 4, 20)
# Besides its tensors a worker needs room for what torch's kernels, gloo and Python allocate.
RESERVE_BYTES = 16 << 20
_MARGIN = 30


def uniform_machine(limits: Sequence[int | None], slower: int = 1) -> pardnn.Machine:
    """Equal links as fast as gloo's over loopback; a device without limit may hold everything."""
    everything = psutil.virtual_memory().total
    return pardnn.Machine.uniform(
        devices=len(limits),
        memory=[everything if limit is None else limit for limit in limits],
        kind="cpu",
        bandwidth=_BANDWIDTH // slower,
        overhead=_OVERHEAD_NS,
        granularity=64,
        reserve=RESERVE_BYTES,
    )


def plan_of(graph: pardnn.Graph, machine: pardnn.Machine) -> pardnn.Plan:
    """The planner's answer for a machine of the user's."""
    return pardnn.plan(graph, machine, sequence="given", margin=_MARGIN)


def plan_for_workers(graph: pardnn.Graph, limits: Sequence[int | None]) -> pardnn.Plan:
    """The best of some plans for processes with these limits of bytes."""
    machine = uniform_machine(limits)
    first = plan_of(graph, machine)
    if len(limits) == 1:
        return first
    plans = [first]
    for slower in _SLOWER[1:]:
        found = plan_of(graph, uniform_machine(limits, slower))
        again = pardnn.simulate(
            graph,
            machine,
            found.device_of,
            found.sequences,
            sequence="given",
            margin=_MARGIN,
        )
        plans.append(again)
    fitting = [plan for plan in plans if plan.fits]
    return min(fitting, key=_step_ns) if fitting else first


def _step_ns(plan: pardnn.Plan) -> float:
    """The predicted step, and the time of its cores that messages take."""
    core_ns: dict[str, float] = defaultdict(float)
    for key, output, reader, *_, size in plan.transfers:
        if output is not None:
            for device in (plan.device_of[key], reader):
                core_ns[device] += _CORE_NS + size * _CORE_NS_A_BYTE
    return plan.step_ns + max(core_ns.values(), default=0.0)

"""A step as the planner sees it, and what its plan means for TensorFlow's nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pardnn.tensorflow import gates, order
from pardnn.tensorflow.branches import Branches
from pardnn.tensorflow.place import StepPlacement

# Tensors below this are left out of the enforced order and of the rules about reads and updates.
LARGE_BYTES = 64 * 1024


@dataclass
class StepGraph:
    """A step as the planner sees it, and the way back to TensorFlow's nodes."""

    graph: Any
    node_of: dict[str, str]
    variable_of: dict[str, Any]
    every: frozenset[str]
    clone: frozenset[str]
    values: dict[str, Any] = field(default_factory=dict)
    """Tensors whose value is known before the step runs, by name, that the step's ops read."""
    large: frozenset[str] = frozenset()
    """Keys of ops that hold or read large buffers: those whose order is enforced."""
    added_edges: list[tuple[str, str]] = field(default_factory=list)
    duration_ns: dict[str, int] = field(default_factory=dict)
    takers: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    """Tensor ("key:n", n also if 0) -> outputs of ops that may take over its buffer."""
    taken_from: dict[str, list[str]] = field(default_factory=dict)
    """The other way round: tensors whose buffer an output may take over, the stated one first."""
    assigned: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Assignment of a whole variable -> variable, and the tensor whose buffer it gets."""
    shared_reads: frozenset[str] = frozenset()
    """Reads of small variables: stated as copies, but really in the variable's buffer."""
    input_readers: dict[str, list[str]] = field(default_factory=dict)
    """Input given at each call -> the ops that read it or an alias of it."""
    branches: Branches = field(default_factory=dict)
    """Ops that run only when a branch of a conditional is taken."""
    conditional: frozenset[str] = frozenset()
    """Ops whose results may never come: those, and where the branches begin."""


def step_placement(step: StepGraph, plan: Any, device_strings: Mapping[str, str]) -> StepPlacement:
    """Devices and enforced order of the step's nodes under `plan`.

    `device_strings` maps the machine's device names to TensorFlow device strings.
    """
    homes = plan.device_of  # made anew each time it is asked for
    devices = {
        node: device_strings[homes[key]]
        for key, node in step.node_of.items()
        if key not in step.every
    }
    edges = [*step.added_edges, *order.chain(plan.sequences, step.large, step.branches)]
    named = [
        (step.node_of[first], step.node_of[second])
        for first, second in edges
        # An op that waits for one in a branch is skipped together with the branch.
        if step.branches.get(first, frozenset()) <= step.branches.get(second, frozenset())
    ]
    keys = list(step.graph.op_keys)
    takers = {f"{key}:{output}" for found in step.takers.values() for key, output in found}
    timed = gates.of_plan(
        plan, keys, step.duration_ns, step.large, LARGE_BYTES, takers, step.branches
    )
    timed = [gate for gate in timed if not _may_not_come(gate.tensor, step)]
    return StepPlacement(
        devices=devices,
        control_edges=named,
        clone=step.clone,
        values=step.values,
        gates=[
            replace(
                gate,
                destination=device_strings[gate.destination],
                gone=tuple(
                    (tensor, device_strings[device])
                    for tensor, device in gate.gone
                    if not _may_not_come(tensor, step)
                ),
            )
            for gate in timed
        ],
        holds=[
            replace(hold, destination=device_strings[hold.destination])
            for hold in gates.holds_of_plan(plan, step.takers, step.large, step.branches)
            if not _may_not_come(hold.tensor, step)
        ],
    )


def _may_not_come(tensor: str, step: StepGraph) -> bool:
    """Whether a branch of a conditional decides about the tensor: nothing may wait for it."""
    return tensor.partition(":")[0] in step.conditional

"""What each worker holds and runs under a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import nn

import pardnn
from pardnn.errors import UsageError
from pardnn.quantities import parse_bytes
from pardnn.torch import here, optimizers
from pardnn.torch.gradients import gradient_rows
from pardnn.torch.nodes import Value
from pardnn.torch.programs import Placement, Program, Programs
from pardnn.torch.step_graph import StepGraph, key_of, key_of_item, variable_key
from pardnn.torch.tracing import Trace
from pardnn.torch.worker import Setup

Memory = int | str | Sequence[int | str] | None


@dataclass
class Placed:
    """Where everything is.

    ``names``: each name that the model's state has -> the one that its tensor goes by. ``homes``:
    of each parameter and buffer, where all devices are in this process. ``limits``, ``peaks``:
    bytes that each process may hold, and will by the plan.
    """

    programs: list[Program]
    device_of: dict[str, int]
    names: dict[str, str]
    trained: frozenset[str]
    is_random: bool
    homes: dict[str, torch.device]
    limits: list[int | None]
    peaks: list[int]


def limits_of(devices: int, memory: Memory) -> list[int | None]:
    """Bytes of each device; None where there is no limit. Raises UsageError."""
    if memory is None:
        return [None] * devices
    stated = [memory] * devices if isinstance(memory, (int, str)) else list(memory)
    if len(stated) != devices:
        raise UsageError(f"memory names {len(stated)} limits for {devices} devices")
    return [parse_bytes(each) if isinstance(each, str) else each for each in stated]


def placement_of(step: StepGraph, plan: pardnn.Plan, numbers: Mapping[str, int]) -> Placement:
    """A plan in numbers of devices. Raises UsageError where it changes the program's order."""
    nodes = [*(op.node for op in step.ops), *step.trace.placeholders]
    key_of_node = {node: key_of(node) for node in nodes}
    devices = plan.device_of
    device_of = {n: numbers[devices[k]] for n, k in key_of_node.items() if k in devices}
    starts = dict(zip(step.graph.op_keys, plan.starts.tolist(), strict=True))
    keys = [key_of_item(item) for item in step.order]
    now = dict.fromkeys(devices.values(), 0)
    for key in keys:
        if key in devices:
            if starts[key] < now[devices[key]]:
                raise UsageError(
                    f"the plan has {key} start before what stands before it in the program; make "
                    "it with sequence='given'"
                )
            now[devices[key]] = starts[key]
    node_of = {key: node for node, key in key_of_node.items()}
    transfer_ns = {
        (Value(node_of[key], output), numbers[reader]): (begin, end)
        for key, output, reader, _, begin, end, _ in plan.transfers
        if key in node_of and output is not None
    }
    return Placement(len(numbers), device_of, [starts[key] for key in keys], transfer_ns)


def place(
    step: StepGraph,
    plan: pardnn.Plan,
    model: nn.Module,
    numbers: Mapping[str, int],
    limits: Sequence[int | None],
    on: Sequence[torch.device] | None = None,
) -> Placed:
    """Where everything goes.

    ``numbers``: of the machine's devices by name. ``limits``: bytes that workers are held to.
    ``on``: the devices, where they are all in this process.
    """
    traced = step.trace
    of = plan.device_of
    programs = Programs(step, placement_of(step, plan, numbers))
    names = [*traced.parameters, *traced.buffers]
    device_of = {name: numbers[of[variable_key(name)]] for name in names}
    peaks = [plan.peaks[name] for name in numbers]
    homes = {}
    if on is None:
        written = [programs.program(number) for number in range(len(numbers))]
    else:
        written = [here.program_of(programs, on)]
        homes = {name: on[number] for name, number in device_of.items()}
        limits, peaks, device_of = [None], [0], dict.fromkeys(names, 0)
    first = {id(t): n for n, t in (*model.named_parameters(), *model.named_buffers())}
    kept = model.state_dict(keep_vars=True).items()
    return Placed(
        programs=written,
        device_of=device_of,
        names={name: first[id(tensor)] for name, tensor in kept if id(tensor) in first},
        trained=frozenset(traced.trained),
        is_random=any(op.is_random for op in step.ops),
        homes=homes,
        limits=list(limits),
        peaks=peaks,
    )


def setups_of(
    placed: Placed,
    trace: Trace,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    threads: int,
    metered: bool,
) -> Callable[[int, str], Setup]:
    """What each worker is told: `setup_of(number, store)`."""
    name_of = {id(p): n for n, p in model.named_parameters()}
    settings = optimizers.settings_of(optimizer)
    groups = optimizers.group_settings(optimizer)
    names = [
        [name_of[id(p)] for p in g["params"] if p.requires_grad] for g in optimizer.param_groups
    ]
    rows_of = gradient_rows(trace)
    sparse = [any(rows_of.get(name) is not None for name in group) for group in names]

    def setup_of(number: int, store: str) -> Setup:
        return Setup(
            number=number,
            count=len(placed.programs),
            store=store,
            threads=threads,
            limit=placed.limits[number],
            peak=placed.peaks[number],
            program=placed.programs[number],
            optimizer=type(optimizer),
            settings=settings,
            groups=groups,
            trained=[[n for n in group if placed.device_of[n] == number] for group in names],
            sparse=sparse,
            metered=metered,
        )

    return setup_of

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
from pardnn.torch.worker import Setup

Memory = int | str | Sequence[int | str] | None


@dataclass
class Placed:
    """Where everything is.

    ``names``: each name that the model's state has -> the one that its tensor goes by. ``homes``:
    of each parameter and buffer, where all devices are in this process.
    """

    programs: list[Program]
    device_of: dict[str, int]
    names: dict[str, str]
    trained: frozenset[str]
    is_random: bool
    homes: dict[str, torch.device]


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
    optimizer: torch.optim.Optimizer,
    numbers: Mapping[str, int],
    limits: Sequence[int | None],
    *,
    threads: int,
    metered: bool,
    on: Sequence[torch.device] | None = None,
) -> tuple[Placed, Callable[[int, str], Setup]]:
    """Where everything goes, and what each worker is told: `setup_of(number, store)`.

    ``numbers``: of the machine's devices by name. ``limits``: bytes that workers are held to.
    ``on``: the devices, where they are all in this process.
    """
    traced = step.trace
    of = plan.device_of
    count = len(numbers)
    programs = Programs(step, placement_of(step, plan, numbers))
    names = [*traced.parameters, *traced.buffers]
    device_of = {name: numbers[of[variable_key(name)]] for name in names}
    peaks = [plan.peaks[name] for name in numbers]
    homes = {}
    if on is None:
        written = [programs.program(number) for number in range(count)]
    else:
        written = [here.program_of(programs, on)]
        homes = {name: on[number] for name, number in device_of.items()}
        count, limits, peaks, device_of = 1, [None], [0], dict.fromkeys(names, 0)
    first = {id(t): n for n, t in (*model.named_parameters(), *model.named_buffers())}
    kept = model.state_dict(keep_vars=True).items()
    all_names = {name: first[id(tensor)] for name, tensor in kept if id(tensor) in first}
    is_random = any(op.is_random for op in step.ops)
    trained = frozenset(traced.trained)
    placed = Placed(written, device_of, all_names, trained, is_random, homes)
    name_of = {id(p): n for n, p in model.named_parameters()}
    settings = optimizers.settings_of(optimizer)
    groups = optimizers.group_settings(optimizer)

    rows_of = gradient_rows(traced)
    sparse = [
        any(rows_of.get(name_of[id(p)]) is not None for p in group["params"])
        for group in optimizer.param_groups
    ]

    def setup_of(number: int, store: str) -> Setup:
        held = [
            [
                name_of[id(p)]
                for p in group["params"]
                if p.requires_grad and device_of[name_of[id(p)]] == number
            ]
            for group in optimizer.param_groups
        ]
        program, kind = written[number], type(optimizer)
        return Setup(
            number=number,
            count=count,
            store=store,
            threads=threads,
            limit=limits[number],
            peak=peaks[number],
            program=program,
            optimizer=kind,
            settings=settings,
            groups=groups,
            trained=held,
            sparse=sparse,
            metered=metered,
        )

    return placed, setup_of

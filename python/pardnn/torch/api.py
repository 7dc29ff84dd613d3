"""What a program calls: `capture` for the graph of a step, `compile` for a step over devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import torch
import torch.distributed as dist
from torch import nn

import pardnn
from pardnn.errors import Refusal, UsageError
from pardnn.torch import ranks
from pardnn.torch.capturing import Captured, capture, capture_with
from pardnn.torch.deferring import Recipe, recipe_of
from pardnn.torch.here import Here
from pardnn.torch.placing import Memory, Placed, limits_of, place, setups_of
from pardnn.torch.planning import plan_for_workers, plan_of, uniform_machine
from pardnn.torch.step import AnyWorkers, Options, Step
from pardnn.torch.worker import Setup
from pardnn.torch.workers import WorkerError, Workers

Devices: TypeAlias = int | Literal["ranks"] | Sequence[str] | None


def compile(  # noqa: A001  as torch.compile
    model: nn.Module,
    loss_fn: Callable[[Any, Any], torch.Tensor],
    optimizer: torch.optim.Optimizer,
    example_batch: tuple[Any, Any],
    *,
    devices: Devices = None,
    memory: Memory = None,
    machine: pardnn.Machine | None = None,
    plan: pardnn.Plan | None = None,
    accumulate: int = 1,
    clip_grad_norm: float | None = None,
    threads: int = 1,
    metered: bool = False,
) -> Step:
    """A training step that runs over ``devices`` processes of this machine, two if not said, or
    over the ranks of a job of torchrun's where it is "ranks"; then every rank calls this and the
    step with the same. A list of devices, such as ["cpu", "cpu"], has all of them in this process;
    then ``memory`` is planned for and not enforced.

    ``memory``: bytes, or a text like "700MiB", that each may hold, one or one per device; a process
    that would need more is refused it by the system. ``machine``: devices, memory and links; let it
    reserve 16 MiB of each device for messages and torch itself. ``plan``: one made for `capture`'s
    graph instead of one made now. ``accumulate``: calls whose gradients are added
    up before an update. ``clip_grad_norm``: the largest norm of all gradients together.
    ``threads``: of each process; with one, losses are bit for bit those of an ordinary run with one
    thread. ``metered``: for `Step.measured_peaks`; freed memory goes back to the system, slowly.

    Raises Refusal for what cannot be captured or does not fit, WorkerError when a worker fails.
    """
    if accumulate < 1:
        raise UsageError(f"accumulate={accumulate}: expected at least 1")
    where = _where(devices, machine)
    batch = example_batch
    captured = capture_with(where.shared, model, loss_fn, optimizer, batch, True, accumulate)
    if captured.sparse and clip_grad_norm is not None:
        raise Refusal(f"{captured.sparse[0]} has sparse gradients, whose norm torch cannot take")
    limits = limits_of(where.count, memory) if machine is None else list(machine.memory)
    if plan is None:
        plan = where.plan(captured.graph, lambda: _planned(captured.graph, machine, limits))
    if not plan.fits:
        raise Refusal(f"the step does not fit: {plan.why}")
    recipe = _recipe_of(model)
    names = (machine or uniform_machine(limits)).device_names
    numbers = {name: number for number, name in enumerate(names)}
    placed = place(captured.step, plan, model, numbers, limits, where.on)
    setup_of = setups_of(placed, captured.trace, model, optimizer, threads, metered)
    workers = where.workers(setup_of, placed)
    step = Step(captured, plan, optimizer, workers, placed, Options(accumulate, clip_grad_norm))
    try:
        step.fill(model, recipe)
    except BaseException:
        step.close()
        raise
    return step


@dataclass(frozen=True)
class _Where:
    """Where ``count`` devices are: processes of this machine, the ranks of a job, or ``on`` devices
    of this process.
    """

    count: int
    is_job: bool = False
    on: Sequence[torch.device] | None = None

    def shared(self, make: Callable[[], Any]) -> Any:
        """What has to be the same for all who compile the step."""
        return ranks.of_first(make) if self.is_job else make()

    def plan(self, graph: pardnn.Graph, make: Callable[[], pardnn.Plan]) -> pardnn.Plan:
        """The plan of whoever makes it."""
        return ranks.plan_of_first(graph, make) if self.is_job else make()

    def workers(self, setup_of: Callable[[int, str], Setup], placed: Placed) -> AnyWorkers:
        """Whatever runs the programs, started."""
        if self.on is not None:
            return Here(setup_of(0, ""), placed.homes)
        if self.is_job:
            return ranks.Ranks(setup_of(dist.get_rank(), ""))
        return Workers.start(setup_of, self.count)


def _where(devices: Devices, machine: pardnn.Machine | None) -> _Where:
    """Raises UsageError where both say how many devices there are, and differ."""
    named = None if machine is None else len(machine.device_names)
    if devices == "ranks":
        found = _Where(ranks.join(), is_job=True)
    elif devices is None or isinstance(devices, int):
        found = _Where(devices or named or 2)
    else:
        on = _own_devices(devices)
        found = _Where(len(on), on=on)
    if named not in (None, found.count):
        raise UsageError(
            f"devices={devices!r} are {found.count} and machine has {named}; give as many of both"
        )
    return found


def _own_devices(names: Sequence[str]) -> list[torch.device]:
    """Devices of this process. Raises UsageError for those on which no step runs."""
    devices = [torch.device(name) for name in names]
    if any(device.type != "cpu" for device in devices):
        raise UsageError(f"devices={list(names)}: steps run on CPUs only yet")
    return devices


def _planned(
    graph: pardnn.Graph, machine: pardnn.Machine | None, limits: Sequence[int | None]
) -> pardnn.Plan:
    return plan_for_workers(graph, limits) if machine is None else plan_of(graph, machine)


def _recipe_of(model: nn.Module) -> Recipe | None:
    """How a deferred model is made; None for one that has its values. Raises Refusal."""
    recipe = recipe_of(model)
    if recipe is None and any(t.is_meta for t in [*model.parameters(), *model.buffers()]):
        raise Refusal(
            "the model is on the meta device and says nothing of its values; build it inside of "
            "pardnn.torch.deferred()"
        )
    return recipe


__all__ = ["Captured", "Step", "WorkerError", "capture", "compile"]

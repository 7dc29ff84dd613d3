"""What a program calls: `capture` for the graph of a step, `compile` for a step over devices."""

from __future__ import annotations

import atexit
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.modules.module import _IncompatibleKeys
from torch.utils import _pytree as pytree

import pardnn
from pardnn.errors import Refusal, UsageError
from pardnn.quantities import show_bytes
from pardnn.torch import optimizers, ranks
from pardnn.torch.costs import Cost, costs_of
from pardnn.torch.deferring import Recipe, recipe_of
from pardnn.torch.gradients import gradient_rows
from pardnn.torch.here import Here
from pardnn.torch.nodes import ops_of
from pardnn.torch.placing import Memory, Placed, limits_of, place
from pardnn.torch.planning import RESERVE_BYTES, plan_for_workers, plan_of, uniform_machine
from pardnn.torch.step_graph import StepGraph, step_graph, variable_key
from pardnn.torch.tensors import Packed
from pardnn.torch.tracing import Trace, trace
from pardnn.torch.workers import WorkerError, Workers

AnyWorkers: TypeAlias = Workers | ranks.Ranks | Here


@dataclass
class Captured:
    """The training step of a model as a graph: what `pardnn.plan` takes.

    ``graph``: forward, loss, backward, new buffers and the optimizer's updates, with costs in ns
    of one thread of this machine and all sizes in bytes; its ops carry the program's order.
    """

    graph: pardnn.Graph
    step: StepGraph
    updates: list[optimizers.Update]

    @property
    def trace(self) -> Trace:
        """The step in torch's terms."""
        return self.step.trace

    def write(self, path: str) -> None:
        """Write the graph file; a name ending in .gz is compressed."""
        self.graph.write(path)


def capture(
    model: nn.Module,
    loss_fn: Callable[[Any, Any], torch.Tensor],
    optimizer: torch.optim.Optimizer,
    example_batch: tuple[Any, Any],
    *,
    measure: bool = True,
    accumulate: int = 1,
) -> Captured:
    """The graph of one training step: ``loss_fn(model(x), y)``, backward, ``optimizer.step()``.

    ``example_batch`` is ``(x, y)`` with the shapes of the real ones; ``x`` may be a tensor, a tuple
    of positional or a dictionary of keyword arguments. Nothing of the model's size is allocated:
    the model may be on the meta device or built inside of `deferred()`. Without ``measure`` costs
    are estimated from arithmetic and bytes. ``accumulate``: calls whose gradients are added up;
    with more than one, gradients are held all the time. Raises Refusal, naming the user's line, for
    what no graph can hold, such as sizes or branches that depend on values.
    """
    return _capture(model, loss_fn, optimizer, example_batch, measure, accumulate, _made_here)


def _capture(
    model: nn.Module,
    loss_fn: Callable[[Any, Any], torch.Tensor],
    optimizer: torch.optim.Optimizer,
    example_batch: tuple[Any, Any],
    measure: bool,
    accumulate: int,
    shared: Callable[[Callable[[], Any]], Any],
) -> Captured:
    """``shared``: makes what has to be the same for all who capture this."""
    traced = trace(model, loss_fn, optimizer, example_batch)
    ops = ops_of(traced)
    rows_of = gradient_rows(traced)
    sparse = [name for name, rows in rows_of.items() if rows is not None]
    if sparse and accumulate > 1:
        raise Refusal(
            f"{sparse[0]} has sparse gradients, which are not added up over calls; "
            "use accumulate=1, or sparse=False"
        )

    def measured() -> tuple[list[Cost], list[optimizers.Update]]:
        found = costs_of(ops, measure)
        updates = optimizers.updates_of(optimizer, model, rows_of)
        return [found[op.node] for op in ops], updates

    costs, updates = shared(measured)
    cost_of = {op.node: cost for op, cost in zip(ops, costs, strict=True)}
    step = step_graph(traced, cost_of, updates, ops, accumulate > 1)
    return Captured(step.graph, step, updates)


class Step:
    """A training step over devices: ``loss = step(x, y)``.

    Each call computes loss and gradients and, every ``accumulate`` calls, updates the parameters
    with the optimizer's settings of that moment, so schedulers work as usual. Parameters, buffers
    and the optimizer's state live in the workers; the model given to `compile` keeps the values it
    had. ``plan``: the plan in use.
    """

    def __init__(
        self,
        captured: Captured,
        plan: pardnn.Plan,
        optimizer: torch.optim.Optimizer,
        workers: AnyWorkers,
        placed: Placed,
        options: _Options,
    ) -> None:
        self.plan = plan
        self._captured = captured
        self._optimizer = optimizer
        self._workers = workers
        self._placed = placed
        self._options = options
        self._calls = 0

    def __call__(self, x: Any, y: Any) -> torch.Tensor:
        """The loss of one batch; shapes are those of the example. Raises WorkerError."""
        leaves, spec = pytree.tree_flatten((x, y))
        self._expect_known(leaves, spec)
        generator = Packed.of(torch.get_rng_state()) if self._placed.is_random else None
        self._calls += 1
        is_due = self._calls % self._options.accumulate == 0
        is_clipped = is_due and self._options.clip_grad_norm is not None
        groups = optimizers.group_settings(self._optimizer) if is_due else None
        request = (generator, groups, is_clipped)
        answers = self._workers.step(
            [request] * len(self._placed.programs),
            [[leaves[i] for i in program.reads_batch] for program in self._placed.programs],
        )
        loss, state, _ = next(answer for answer in answers if answer[0] is not None)
        if state is not None:
            torch.set_rng_state(state.tensor())
        if is_clipped:
            factor = Packed.of(self._clipping([norms for *_, norms in answers]))
            self._workers.ask_all("update", lambda n: (groups, factor))
        if is_due:
            self._optimizer._opt_called = True  # what schedulers ask
        return loss.tensor()

    def _expect_known(self, leaves: Sequence[Any], spec: Any) -> None:
        traced = self._captured.trace
        known = traced.placeholders[len(traced.placeholders) - traced.inputs :]
        if spec != traced.spec:
            raise UsageError("this batch is built otherwise than example_batch was")
        for leaf, node in zip(leaves, known, strict=True):
            like = node.meta["val"]
            if leaf.shape != like.shape or leaf.dtype != like.dtype:
                raise UsageError(
                    f"a tensor of this batch is {leaf.dtype} {tuple(leaf.shape)}; the step was "
                    f"compiled for {like.dtype} {tuple(like.shape)}: compile one more step for it, "
                    "or drop the last, smaller batch (DataLoader(drop_last=True))"
                )
            if leaf.stride() != like.stride():
                raise UsageError(
                    f"a tensor of this batch has strides {leaf.stride()}, the example had "
                    f"{like.stride()}; give both alike, as .contiguous() does"
                )

    def _clipping(self, found: Sequence[Any]) -> torch.Tensor:
        """The factor of torch.nn.utils.clip_grad_norm_ over all gradients, wherever they are."""
        norm_of: dict[str, torch.Tensor] = {}
        for names, norms in found:
            norm_of.update(zip(names, norms.tensor().unbind() if norms else (), strict=True))
        norms = [norm_of[name] for name in self._captured.trace.parameters if name in norm_of]
        total = torch.linalg.vector_norm(torch.stack(norms), 2.0)
        most = self._options.clip_grad_norm
        assert most is not None
        return torch.clamp(most / (total + 1e-6), max=1.0)

    def state_dict(self) -> dict[str, torch.Tensor]:
        """All that the model's own state_dict() has, under the same names, in the same order."""
        return dict(self.tensors())

    def tensors(self) -> Iterator[tuple[str, torch.Tensor]]:
        """The same one after another, so that no more than one need be in memory."""
        for name, first in self._placed.names.items():
            yield name, self._workers.get(self._placed.device_of[first], first)

    def load_state_dict(
        self, state: Mapping[str, torch.Tensor], strict: bool = True
    ) -> _IncompatibleKeys:
        """New values of parameters and buffers, as nn.Module has it: answers the names that are
        missing and those that the model has not. Raises UsageError for either where ``strict``, and
        for a tensor of another shape; then nothing is changed.
        """
        names = self._placed.names
        missing = [name for name in names if name not in state]
        unexpected = [name for name in state if name not in names]
        if strict and (missing or unexpected):
            raise UsageError(
                f"the state misses {', '.join(missing) or 'nothing'} and has "
                f"{', '.join(unexpected) or 'nothing'} that the model has not"
            )
        shapes = self._captured.trace.shapes
        present = {name: first for name, first in names.items() if name in state}
        for name, first in present.items():
            if state[name].shape != shapes[first]:
                raise UsageError(
                    f"{name} has shape {tuple(state[name].shape)} in the state and "
                    f"{tuple(shapes[first])} in the model"
                )
        for name, first in present.items():
            self._put(first, state[name])
        return _IncompatibleKeys(missing, unexpected)

    def _put(self, name: str, tensor: torch.Tensor) -> None:
        trained = name in self._placed.trained
        self._workers.put(self._placed.device_of[name], name, tensor.detach(), trained)

    def optimizer_state(self) -> dict[str, dict[str, Any]]:
        """The optimizer's state of each trained parameter, by name."""
        return {
            name: self._workers.ask(self._placed.device_of[name], "state_of", name)
            for name in self._captured.trace.trained
        }

    def load_optimizer_state(self, state: Mapping[str, Mapping[str, Any]]) -> None:
        """The other way round."""
        for name, held in state.items():
            self._workers.ask(self._placed.device_of[name], "set_state_of", name, dict(held))

    @property
    def reserve_bytes(self) -> int:
        """Bytes of each device that plans leave for messages and for torch itself."""
        return RESERVE_BYTES

    @property
    def worker_pids(self) -> list[int]:
        """Of the processes that train."""
        return self._workers.pids

    def measured_peaks(self) -> dict[str, int]:
        """The most bytes in use on each device in the last step, compiled with ``metered=True``."""
        answers = self._workers.ask_all("most_bytes", lambda n: ())
        return dict(zip(self.plan.limits, answers, strict=True))

    def report(self) -> str:
        """Where things are, in a few lines."""
        plan = self.plan
        of = plan.device_of
        lines = [
            f"step {plan.step_ns / 1e6:.1f} ms predicted, {len(plan.transfers)} transfers of "
            f"{show_bytes(plan.bytes_sent)}, found by {plan.algorithm}"
        ]
        for device, peak in plan.peaks.items():
            held = sum(of[variable_key(n)] == device for n in self._captured.trace.parameters)
            ops = sum(where == device for where in of.values())
            lines.append(
                f"{device}: {show_bytes(peak)} of {show_bytes(plan.limits[device])}, {held} "
                f"parameters, {ops} ops and variables"
            )
        return "\n".join(lines)

    def close(self) -> None:
        """Ends the workers; what they hold is gone."""
        self._workers.end()

    def __enter__(self) -> Step:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


@dataclass(frozen=True)
class _Options:
    accumulate: int
    clip_grad_norm: float | None


def compile(  # noqa: A001  as torch.compile
    model: nn.Module,
    loss_fn: Callable[[Any, Any], torch.Tensor],
    optimizer: torch.optim.Optimizer,
    example_batch: tuple[Any, Any],
    *,
    devices: int | Literal["ranks"] | Sequence[str] = 2,
    memory: Memory = None,
    machine: pardnn.Machine | None = None,
    plan: pardnn.Plan | None = None,
    accumulate: int = 1,
    clip_grad_norm: float | None = None,
    threads: int = 1,
    metered: bool = False,
) -> Step:
    """A training step that runs over ``devices`` processes of this machine, or over the ranks of a
    job of torchrun's where it is "ranks"; then every rank calls this and the step with the same. A
    list of devices, such as ["cpu", "cpu"], has all of them in this process; then ``memory`` is
    planned for and not enforced.

    ``memory``: bytes, or a text like "700MiB", that each may hold, one or one per device; a process
    that would need more is refused it by the system. ``machine``: devices, memory and links instead
    of both; let it reserve 16 MiB of each device for messages and torch itself. ``plan``: one made
    for `capture`'s graph instead of one made now. ``accumulate``: calls whose gradients are added
    up before an update. ``clip_grad_norm``: the largest norm of all gradients together.
    ``threads``: of each process; with one, losses are bit for bit those of an ordinary run with one
    thread. ``metered``: for `Step.measured_peaks`; freed memory goes back to the system, slowly.

    Raises Refusal for what cannot be captured or does not fit, WorkerError when a worker fails.
    """
    if accumulate < 1:
        raise UsageError(f"accumulate={accumulate}: expected at least 1")
    on = None if devices == "ranks" or isinstance(devices, int) else _own_devices(devices)
    if devices == "ranks":
        shared, count = ranks.of_first, ranks.join()
    else:
        shared, count = _made_here, devices if isinstance(devices, int) else len(devices)
    captured = _capture(model, loss_fn, optimizer, example_batch, True, accumulate, shared)
    limits = limits_of(count, memory) if machine is None else list(machine.memory)
    if plan is None:
        plan = _planned(captured, machine, limits, shared)
    machine = machine or uniform_machine(limits)
    if not plan.fits:
        raise Refusal(f"the step does not fit: {plan.why}")
    recipe = recipe_of(model)
    if recipe is None and any(t.is_meta for t in [*model.parameters(), *model.buffers()]):
        raise Refusal(
            "the model is on the meta device and says nothing of its values; build it inside of "
            "pardnn.torch.deferred()"
        )
    numbers = {name: number for number, name in enumerate(machine.device_names)}
    options: Any = {"threads": threads, "metered": metered, "on": on}
    placed, setup_of = place(captured.step, plan, model, optimizer, numbers, limits, **options)
    workers: AnyWorkers
    if on is not None:
        workers = Here(setup_of(0, ""), placed.homes)
    elif devices == "ranks":
        workers = ranks.Ranks(setup_of(dist.get_rank(), ""))
    else:
        workers = Workers.start(setup_of, len(numbers))
    step = Step(captured, plan, optimizer, workers, placed, _Options(accumulate, clip_grad_norm))
    _end_with(step, workers)
    try:
        _fill(step, model, recipe, optimizer)
    except BaseException:
        step.close()
        raise
    return step


def _own_devices(names: Sequence[str]) -> list[torch.device]:
    """Devices of this process. Raises UsageError for those on which no step runs."""
    devices = [torch.device(name) for name in names]
    if any(device.type != "cpu" for device in devices):
        raise UsageError(f"devices={list(names)}: steps run on CPUs only yet")
    return devices


def _made_here(make: Callable[[], Any]) -> Any:
    return make()


def _planned(
    captured: Captured,
    machine: pardnn.Machine | None,
    limits: Sequence[int | None],
    shared: Callable[[Callable[[], Any]], Any],
) -> pardnn.Plan:
    """The plan of whoever makes it, by way of its file."""

    def text() -> bytes:
        graph = captured.graph
        plan = plan_for_workers(graph, limits) if machine is None else plan_of(graph, machine)
        with tempfile.TemporaryDirectory() as folder:
            plan.write(f"{folder}/plan.json")
            return Path(folder, "plan.json").read_bytes()

    content = shared(text)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "plan.json").write_bytes(content)
        return pardnn.Plan.read(f"{folder}/plan.json", captured.graph)


def _fill(
    step: Step, model: nn.Module, recipe: Recipe | None, optimizer: torch.optim.Optimizer
) -> None:
    """Parameters, buffers and the optimizer's state go to the workers."""
    placed, workers = step._placed, step._workers
    if recipe is not None:
        wanted: list[dict[str, bool]] = [{} for _ in placed.programs]
        for name, device in placed.device_of.items():
            wanted[device][name] = name in placed.trained
        workers.ask_all("make", lambda n: (recipe, wanted[n]))
    else:
        for name, tensor in (*model.named_parameters(), *model.named_buffers()):
            step._put(name, tensor)
    name_of = {id(parameter): name for name, parameter in model.named_parameters()}
    held = {name_of[id(p)]: state for p, state in optimizer.state.items() if id(p) in name_of}
    step.load_optimizer_state({name: state for name, state in held.items() if state})


def _end_with(step: Step, workers: AnyWorkers) -> None:
    """The workers end with the step, or with this process."""
    weakref.finalize(step, workers.end)
    atexit.register(workers.end)


__all__ = ["Captured", "Step", "WorkerError", "capture", "compile"]

"""From a script to a plan: a look ahead, its graph, the planner, the check."""

from __future__ import annotations

import logging
import os
import pickle
import secrets
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

import pardnn
from pardnn import cache
from pardnn.errors import Refusal, UsageError
from pardnn.launch import RunOptions
from pardnn.quantities import show_bytes
from pardnn.torch.script import overheads
from pardnn.torch.script.limits import OWN_BYTES
from pardnn.torch.script.record import Seen
from pardnn.torch.script.step_graph import StepGraph
from pardnn.torch.script.tables import Tables

_LOG = logging.getLogger(__name__)
# Streams of this machine, between two processes that share its cores.
_BANDWIDTH = 1_500_000_000
_OVERHEAD_NS = 30_000
_LATENCY_NS = 30_000
_GRAIN_BYTES = 64
_BUDGET_S = 10.0


class DoesNotFit(Refusal):
    """No plan keeps every rank within its limit; the message says what is missing where."""


@dataclass(frozen=True)
class Prepared:
    """What ranks begin with, and what was promised.

    ``plan``, ``seen``: None where the script did nothing that could be planned. ``limits``: bytes
    of each rank, None without a limit. ``step_ns``: with what ranks take besides ops, which the
    plan does not know. ``variable_bytes``: of each rank. ``random_placement``: a
    seed with which every op goes to any rank instead, None in earnest.
    """

    tables: Tables
    limits: tuple[int | None, ...]
    plan: Any = None
    graph: Any = None
    seen: Seen | None = None
    one_device_ns: int | None = None
    step_ns: int = 0
    variable_bytes: list[int] = field(default_factory=list)
    random_placement: int | None = None


def prepare(options: RunOptions) -> Prepared:
    """Looks at the script and plans it. Raises Refusal."""
    seed = _random_placement()
    if options.devices == 1 or seed is not None:
        return Prepared(Tables(), options.memory, random_placement=seed)
    seen = _look(options)
    if seen is None or seen.end <= seen.begin or seen.parameters == 0:
        return Prepared(Tables(), options.memory)
    step = StepGraph(seen)
    machine = _machine(options)
    plan = _plan_of(step, machine, options)
    if not plan.fits:
        raise DoesNotFit(f"the training step does not fit: {plan.why}")
    problems = pardnn.check(step.graph, plan)
    if problems:
        raise AssertionError(f"the checker does not confirm the plan: {problems[0]}")
    if options.save_plan is not None:
        plan.write(str(options.save_plan))
    devices = {name: number for number, name in enumerate(machine.device_names)}
    held = [0] * options.devices
    placed = plan.device_of
    for key, nbytes in step.variable_sizes().items():
        held[devices[placed[key]]] += nbytes
    where = step.where(plan, devices)
    cores = len(os.sched_getaffinity(0))
    return Prepared(
        step.tables(plan, devices),
        options.memory,
        plan,
        step.graph,
        seen,
        sum(seen.costs_ns[op.kind] for op in seen.ops[seen.begin : seen.end]),
        overheads.predicted_ns(plan.step_ns, seen, where, options.memory, cores),
        held,
    )


def _random_placement() -> int | None:
    text = os.environ.get("PARDNN_RANDOM_PLACEMENT")
    if text is not None and not text.isdecimal():
        raise UsageError(f"PARDNN_RANDOM_PLACEMENT={text}: expected a number")
    return None if text is None else int(text)


def _look(options: RunOptions) -> Seen | None:
    """What the script does in a step; None, and a line, if it ended in an error of its own."""
    from pardnn.torch.script import scout

    with tempfile.TemporaryDirectory(prefix="pardnn-") as folder:
        reading, writing = os.pipe()
        process = os.fork()
        if process == 0:
            os.close(reading)
            scout.look(options, writing, Path(folder), secrets.randbits(62))
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            data = pipe.read()
        _, status = os.waitpid(process, 0)
        log = Path(folder, "ahead.log")
        words = log.read_text(errors="replace") if log.exists() else ""
    if not data:
        code = os.waitstatus_to_exitcode(status)
        _LOG.warning(
            "the script could not be looked at in advance (its process ended with status %d): ops "
            "follow parameters, which go round%s",
            code,
            "".join(f"\n    {line}" for line in words.splitlines()[-6:]),
        )
        return None
    found: Any = pickle.loads(data)
    if isinstance(found, Seen):
        return found
    kind, text = found if found is not None else ("failed", "it ran no step")
    if kind == "refused":
        raise Refusal(text)
    _LOG.warning(
        "the script could not be looked at in advance (%s): ops follow parameters, which go round",
        text,
    )
    return None


def _machine(options: RunOptions) -> Any:
    if options.machine is not None:
        return pardnn.Machine.read(str(options.machine))
    everything = psutil.virtual_memory().total
    least = min((limit for limit in options.memory if limit is not None), default=None)
    if least is not None and least < 2 * OWN_BYTES:
        raise UsageError(
            f"--memory {show_bytes(least)}: a rank needs {show_bytes(OWN_BYTES)} besides tensors; "
            f"give at least {show_bytes(2 * OWN_BYTES)}"
        )
    return pardnn.Machine.uniform(
        devices=options.devices,
        memory=[everything if limit is None else limit - OWN_BYTES for limit in options.memory],
        kind="cpu",
        bandwidth=_BANDWIDTH,
        overhead=_OVERHEAD_NS,
        latency=_LATENCY_NS,
        granularity=_GRAIN_BYTES,
    )


def _plan_of(step: StepGraph, machine: Any, options: RunOptions) -> Any:
    """The plan given by --plan, or remembered from an earlier run, or made now."""
    if options.plan is not None:
        try:
            return pardnn.Plan.read(str(options.plan), step.graph)
        except pardnn.Error as error:
            raise UsageError(f"--plan {options.plan}: {error}") from None
    folder = cache.folder("plans")
    parts = [pardnn.__version__, step.graph.hash, machine.text(), options.algorithm]
    key = cache.key(*parts, str(options.margin), "given")
    path = None if folder is None else folder / f"{key}.json"
    if path is not None and path.is_file():
        try:
            return pardnn.Plan.read(str(path), step.graph)
        except pardnn.Error as error:
            _LOG.info("a remembered plan is not used: %s", error)
    plan = pardnn.plan(
        step.graph,
        machine,
        algorithm=options.algorithm,
        margin=options.margin,
        sequence="given",
        guarantee="any-timing" if any(options.memory) else None,
        budget=_BUDGET_S,
    )
    if path is not None and plan.fits:
        plan.write(str(path))
    return plan

"""From a captured step to a plan: costs, graph, machine, planner, check; remembered on disk for the
next run.
"""

from __future__ import annotations

import functools
import json
import logging
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import psutil

import pardnn
from pardnn import cache
from pardnn.errors import Refusal, UsageError
from pardnn.launch import RunOptions
from pardnn.quantities import show_bytes
from pardnn.tensorflow import costs, links, scopes, step_graph, translate
from pardnn.tensorflow.allocator import GRAIN_BYTES
from pardnn.tensorflow.loops import regions_of
from pardnn.tensorflow.place import base_graph
from pardnn.tensorflow.replay import Replay
from pardnn.tensorflow.small_tensors import FIRST_REGION_BYTES
from pardnn.tensorflow.steps import PlannedStep, Prediction, Request
from pardnn.tensorflow.tracing import Capture
from pardnn.tensorflow.variables import bytes_of

_LOG = logging.getLogger(__name__)

# What is set aside of each limit for gaps between tensors, where playing the plan through the
# allocator's rules does not ask for more: orders of small tensors are not enforced.
_LEAST_GAPS_BYTES = 256 * 1024
# How often to plan, each time with larger gaps, before the best plan is taken as it is; how long to
# look for one with some room to spare, and for one that allocators can keep at all.
_MOST_ROUNDS = 40
_SEARCH_S = 8.0
_LONGEST_SEARCH_S = 60.0
_PART_TO_SPARE = 12
# Margins that are tried beyond the one asked for, and how much longer a step may get for them.
_MARGINS_PER_MILLE = (250, 150, 80)
_SLOWER_PER_MILLE = 30


class DoesNotFit(Refusal):
    """No plan keeps every device within its limit; the message says what is missing where."""


class Workers(costs.Workers, links.Workers, Protocol):
    """What measures ops and links."""


class CorePlanner:
    """Plans steps with pardnn's core on and for workers, as `options` say."""

    def __init__(
        self, options: RunOptions, workers: Workers, machine: pardnn.Machine | None = None
    ) -> None:
        """`machine` is what to plan for, if not what `options` say."""
        self._options = options
        self._workers = workers
        self._given_machine = None if machine is None else _as_allocated(machine)
        self._given = options.plan
        self._save_to = options.save_plan

    def plan(
        self, name: str, capture: Capture, shapes: Sequence[Any], request: Request
    ) -> PlannedStep:
        """A plan that the checker agreed with. Raises DoesNotFit, or Refusal for files."""
        return self.planned(*self.find(name, capture, shapes, request))

    def find(
        self, name: str, capture: Capture, shapes: Sequence[Any], request: Request
    ) -> tuple[step_graph.StepGraph, pardnn.Plan]:
        """The step as the core sees it, and its plan."""
        names = {string: name for name, string in self.device_strings().items()}
        step = self._state(capture, shapes, request, names)
        plan = self._plan_of(step, request)
        if not plan.fits:
            raise DoesNotFit(f"{name} does not fit: {plan.why}")
        problems = pardnn.check(step.graph, plan)
        if problems:
            raise AssertionError(_disagreement(name, step.graph, plan, problems))
        if request.training and self._save_to is not None:
            plan.write(str(self._save_to))
            self._save_to = None
        return step, plan

    def planned(self, step: step_graph.StepGraph, plan: pardnn.Plan) -> PlannedStep:
        """A plan in TensorFlow's terms."""
        strings = self.device_strings()
        device_of = plan.device_of  # made anew each time it is asked for
        homes = [(v, strings[device_of[key]]) for key, v in step.variable_of.items()]
        placement = step_graph.step_placement(step, plan, strings)
        return PlannedStep(placement, homes, self._prediction(step, plan))

    def device_strings(self) -> dict[str, str]:
        """TensorFlow's names of the devices; in a dry run those workers need not exist."""
        names = self._machine.device_names
        return {
            name: f"/job:worker/replica:0/task:{number}/device:CPU:0"
            for number, name in enumerate(names)
        }

    def _state(
        self, capture: Capture, shapes: Sequence[Any], request: Request, names: dict[str, str]
    ) -> Any:
        """The step as a graph to plan, fixed variables pinned, the memory of others taken."""
        graph = base_graph(capture, shapes)
        if request.measure:
            table = costs.measure(graph, self._workers, cache.folder("costs"))
        else:
            table = costs.CostTable(regions_of(graph))
        builder = None
        if self._options.respect_devices:
            builder = scopes.builder(scopes.orders_of(graph, list(names.values())))
        step = translate.translate(
            graph,
            capture,
            table,
            granularity=GRAIN_BYTES,
            pins=names,
            fixed=frozenset(request.fixed),
            builder=builder,
        )
        for number, (device, size) in enumerate(sorted(request.residents.items())):
            if size:
                # Variables of other functions; each counts with its own rounding already.
                step.graph.var(
                    f"pardnn_resident_{number}",
                    size,
                    on=(names[device],),
                    name="variables of other functions",
                )
        return step

    @functools.cached_property
    def _machine(self) -> Any:
        """The devices and their limits, without what is measured: it names a plan to remember."""
        if self._given_machine is not None:
            return self._given_machine
        if self._options.machine is not None:
            return _as_allocated(pardnn.Machine.read(str(self._options.machine)))
        return self._uniform({})

    def prepare(self) -> None:
        """Measure links while the workers are empty: later they may have no room for it."""
        if not self._options.dry_run:
            _ = self._measured_machine

    @functools.cached_property
    def _measured_machine(self) -> Any:
        if self._given_machine is not None or self._options.machine is not None:
            return self._machine
        folder = cache.folder("links")
        path = None if folder is None else folder / "loopback.json"
        if not self._options.dry_run:
            found = links.measure(self._workers)
            if path is not None and found:
                cache.write(path, json.dumps(found))
            return self._uniform(found)
        # The workers to plan for are not here: as fast as the last ones that were.
        known = path is not None and path.is_file()
        return self._uniform(json.loads(path.read_text()) if known and path else {})

    def _uniform(self, rates: dict[str, Any]) -> Any:
        limits = self._options.memory if self._options.dry_run else self._workers.limits
        everything = psutil.virtual_memory().total
        return pardnn.Machine.uniform(
            devices=self._options.devices,
            memory=[everything if limit is None else limit for limit in limits],
            kind="cpu",
            granularity=GRAIN_BYTES,
            **rates,
        )

    def _plan_of(self, step: Any, request: Request) -> Any:
        """The plan given by --plan, or remembered from an earlier run, or made now."""
        if request.training and self._given is not None:
            path, self._given = self._given, None
            return self._given_plan(path, step)
        folder = cache.folder("plans")
        options = [self._options.algorithm, str(self._options.margin)]
        key = cache.key(pardnn.__version__, step.graph.hash, self._machine.text(), *options)
        if folder is not None and (folder / f"{key}.json").is_file():
            try:
                return pardnn.Plan.read(str(folder / f"{key}.json"), step.graph)
            except pardnn.Error as error:
                _LOG.info("a remembered plan is not used: %s", error)
        plan = self._allocatable(step)
        if folder is not None and plan.fits:
            plan.write(str(folder / f"{key}.json"))
        return plan

    def _allocatable(self, step: Any) -> Any:
        """A plan that the workers' allocators can keep, gaps between tensors included.

        Plans are played through the allocator's rules. Where none of several works, others are
        made that leave what is missing alone, and in the end the one that lacks least is taken.
        """
        gaps = dict.fromkeys(self._machine.device_names, _LEAST_GAPS_BYTES)
        regions = self._regions()
        margins: Sequence[int] = _MARGINS_PER_MILLE
        # Reality is never quite the plan, and a chunk more or less decides: some room to spare.
        spare = {device: size - size // _PART_TO_SPARE for device, size in regions.items()}
        best: tuple[tuple[int, int], Any] | None = None
        begin = time.monotonic()
        for seed in range(_MOST_ROUNDS):
            if best is not None:
                keepable = best[0][0] == 0
                patience_s = _SEARCH_S if keepable else _LONGEST_SEARCH_S
                if best[0] == (0, 0) or time.monotonic() - begin > patience_s:
                    break
            plans = self._plans(graph=step.graph, gaps=gaps, margins=margins, seed=seed)
            if not plans[0].fits:
                if best is None:
                    return plans[0]
                gaps = {device: size // 2 for device, size in gaps.items()}
                continue
            missing = [_missing(plan, step, regions, spare) for plan in plans]
            lacks = [(sum(now.values()), sum(later.values())) for now, later in missing]
            least = min(lacks)
            chosen = [n for n, lack in enumerate(lacks) if lack == least]
            plan = _roomiest([plans[n] for n in chosen])
            lacking = missing[plans.index(plan)][1]
            if best is None or least < best[0]:
                best = least, plan
            _LOG.info("plan %d: allocators lack %s bytes of room to spare", seed, lacking)
            for device, size in lacking.items():
                unused = plan.limits[device] - plan.peaks[device]
                gaps[device] += unused + size + _LEAST_GAPS_BYTES
            margins = _MARGINS_PER_MILLE[-1:]
        assert best is not None
        if best[0][0]:
            _LOG.warning(
                "no plan was found that surely leaves the allocators room: the best may lack %s at "
                "some moment; a larger --memory helps",
                show_bytes(best[0][0]),
            )
        return best[1]

    def _plans(
        self, graph: Any, gaps: dict[str, int], margins: Sequence[int], seed: int
    ) -> list[Any]:
        """Plans that leave `gaps` alone: one with the margin asked for, those that fit with more.

        Real op times differ from costs and an allocator does not use every byte, so a plan that is
        further from the limits is the better one where it is nearly as fast.
        """
        machine = _with_reserves(self._measured_machine, gaps)
        least = self._options.margin
        plans: list[Any] = []
        for margin in (least, *sorted(m for m in margins if m > least)):
            # Without the core's search: a round here plans many times.
            plan = pardnn.plan(
                graph,
                machine,
                algorithm=self._options.algorithm,
                margin=margin,
                seed=seed,
                steps=0,
            )
            if plans and not plan.fits:
                break
            plans.append(plan)
            if not plan.fits:
                break
        return plans

    def _regions(self) -> dict[str, int]:
        """Bytes that plans may use of the one large region of each worker's allocator."""
        stated = json.loads(self._machine.text())["devices"]
        limits = {d["name"]: d["memory"] - d.get("reserve", 0) for d in stated}
        return {
            name: limit - limit * self._options.margin // 1000 - FIRST_REGION_BYTES
            for name, limit in limits.items()
        }

    def _given_plan(self, path: Path, step: Any) -> Any:
        try:
            plan = pardnn.Plan.read(str(path), step.graph)
        except pardnn.Error as error:
            raise UsageError(f"--plan {path}: {error}") from None
        used = set(plan.device_of.values())
        if not used <= set(self._machine.device_names):
            raise UsageError(
                f"--plan {path}: it uses {', '.join(sorted(used))}; this run has "
                + ", ".join(self._machine.device_names)
            )
        limits = zip(self._machine.device_names, self._machine.memory, strict=True)
        for device, limit in limits:
            peak = plan.peaks.get(device, 0)
            if peak > limit:
                raise UsageError(
                    f"--plan {path}: it needs {show_bytes(peak)} on {device}, which has "
                    f"{show_bytes(limit)} in this run"
                )
        return plan

    def _prediction(self, step: Any, plan: Any) -> Prediction:
        one = pardnn.plan(step.graph, self._measured_machine, algorithm="one-device")
        held = dict.fromkeys(self._machine.device_names, 0)
        device_of = plan.device_of  # made anew each time it is asked for
        for key, variable in step.variable_of.items():
            held[device_of[key]] += bytes_of(variable)
        peaks = Replay(plan, step).peaks()
        return Prediction(
            algorithm=plan.algorithm,
            limits=dict(zip(self._machine.device_names, self._machine.memory, strict=True)),
            variables=held,
            peaks=peaks,
            any_timing_peaks={
                device: peak + peaks[device] - plan.peaks[device]
                for device, peak in plan.any_timing_peaks.items()
            },
            step_ns=plan.step_ns,
            bound_ns=plan.bound_ns,
            one_device_ns=one.step_ns,
            bytes_sent=plan.bytes_sent,
        )


def _missing(
    plan: Any, step: Any, regions: dict[str, int], spare: dict[str, int]
) -> tuple[dict[str, int], dict[str, int]]:
    """What the allocators lack for a plan, with their whole regions and with some to spare."""
    replay = Replay(plan, step)
    later = replay.missing(spare)
    return (replay.missing(regions) if later else {}), later


def _roomiest(plans: Sequence[Any]) -> Any:
    """The last of `plans`, by margin, that is nearly as fast as the fastest."""
    longest_ns = min(plan.step_ns for plan in plans) * (1000 + _SLOWER_PER_MILLE) // 1000
    return [plan for plan in plans if plan.step_ns <= longest_ns][-1]


def _with_reserves(machine: pardnn.Machine, sizes: dict[str, int]) -> pardnn.Machine:
    """The machine with so many more bytes of each device always in use."""
    stated = json.loads(machine.text())
    for device in stated["devices"]:
        device["reserve"] = device.get("reserve", 0) + sizes[device["name"]]
    return pardnn.Machine.parse(json.dumps(stated))


def _as_allocated(machine: pardnn.Machine) -> pardnn.Machine:
    """The machine with buffers rounded at least as TensorFlow's allocator rounds them."""
    stated = json.loads(machine.text())
    if stated.get("granularity", 1) % GRAIN_BYTES == 0:
        return machine
    return pardnn.Machine.parse(json.dumps({**stated, "granularity": GRAIN_BYTES}))


def _disagreement(name: str, graph: Any, plan: Any, problems: list[str]) -> str:
    """What to say, and to send to us, when the checker does not confirm a plan."""
    where = ""
    folder = cache.folder("disagreements")
    if folder is not None:
        stem = str(folder / graph.hash[:16])
        graph.write(f"{stem}.pdg.gz")
        plan.write(f"{stem}.json")
        where = f"; please report {stem}.pdg.gz and {stem}.json"
    return f"the checker does not confirm the plan of {name}: {problems[0]}{where}"

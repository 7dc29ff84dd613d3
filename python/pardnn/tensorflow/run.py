"""The engine: turns each function a script runs into a planned, placed one, and reports at the end.

At the first batch of a step it is captured, planned, its variables are moved, and it is placed;
later batches of the same shape only run. The engine decides nothing: a `Planner` does.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import tensorflow as tf

from pardnn.errors import Refusal
from pardnn.launch import RunOptions
from pardnn.tensorflow import allocator, hooks, refused, steps, summary, variables
from pardnn.tensorflow.cluster import Cluster
from pardnn.tensorflow.place import base_graph, place
from pardnn.tensorflow.steps import PlannedStep, Record, Request, Version
from pardnn.tensorflow.tracing import Capture

_LOG = logging.getLogger(__name__)

# Peaks are asked for when another function takes over, this many times for each version.
_MEASUREMENTS = 3
_SMALL_RESULT_BYTES = 1024
_ALL_RESULTS = 1 << 62


class WorkerLost(Refusal):
    """A worker died or froze while a step ran; the message names it."""


class Planner(Protocol):
    """Decides where a captured step runs."""

    def prepare(self) -> None:
        """Do what has to be done while the workers are empty."""

    def plan(
        self, name: str, capture: Capture, shapes: Sequence[Any], request: Request
    ) -> PlannedStep:
        """A placement of the step; raises Refusal where there is none."""


class Engine:
    """Runs a script's functions over the workers of `cluster`; `install` before the script,
    `finish` after it.
    """

    def __init__(
        self, options: RunOptions, cluster: Cluster, planner: Planner | None = None
    ) -> None:
        self._options = options
        self._cluster = cluster
        self._planner = planner or _default_planner(options, cluster)
        self._records: list[Record] = []
        self._settled: dict[int, weakref.ref[Any]] = {}
        self._known: tuple[Capture, Any, PlannedStep] | None = None
        self._moves = 0
        self._busy = False
        self._current: Record | None = None
        self._remove: Callable[[], None] | None = None

    # --- life -------------------------------------------------------------------------------------

    def install(self) -> None:
        """From now on functions that use variables on workers are placed.

        Comes before any variable is made, and after `variables.install`.
        """
        with self._at_work():
            self._planner.prepare()
        self._remove = hooks.install(self)

    def uninstall(self) -> None:
        """Leave the script's functions to TensorFlow again; variables stay where they are."""
        if self._remove is not None:
            self._remove()
            self._remove = None

    def finish(self) -> None:
        """Measure what is left to measure, write --json-out, and print the table, if anything was
        planned.
        """
        report = self.report()
        if self._options.json_out is not None:
            _write(self._options.json_out, json.dumps(report, indent=2) + "\n")
        # The script's own results are on standard output.
        sys.stderr.write(summary.table(self._records, self._shared_cores()))
        sys.stderr.flush()

    def _shared_cores(self) -> int | None:
        """How many cores the workers share; None where each has its own or is elsewhere."""
        cores = len(os.sched_getaffinity(0))
        wanted = self._options.devices * self._options.threads
        return None if self._options.addresses or wanted <= cores else cores

    def report(self) -> dict[str, Any]:
        """Promised and measured memory and time of every function so far, as plain data."""
        self._leave(self._current)
        self._current = None
        return summary.report(self._records, self._cluster.device_strings)

    # --- what the hooks ask -----------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether the engine is planning or measuring."""
        return self._busy

    def variables(self) -> Sequence[Any]:
        """The variables that live on workers."""
        return variables.live_variables()

    def on_worker(self, tensor: Any) -> bool:
        """Whether a resource is on one of the workers."""
        return tensor.device in self._cluster.device_strings

    def adopt(
        self, name: str, capture: Capture, *, fetch: bool
    ) -> Callable[[list[Any]], list[Any]]:
        """A function over flat tensors that runs `capture`; each shape has a version of its own."""
        versions: dict[Any, tuple[int, Version]] = {}
        fetch_bytes = _ALL_RESULTS if fetch else _SMALL_RESULT_BYTES

        def run(tensors: list[Any]) -> list[Any]:
            key = steps.signature(tensors)
            moves, version = versions.get(key, (-1, None))
            if version is None or moves != self._moves:
                version = self._ready(name, capture, key, fetch_bytes, version)
                versions[key] = (self._moves, version)
            return self._run(version, tensors)

        return run

    def prepare(self, capture: Capture, shapes: Any, planned: PlannedStep) -> None:
        """Move variables as a plan that is there already wants it, and use it for this step."""
        with self._at_work():
            self._known = (capture, shapes, planned)
            self._move(planned.variables, settle=True)

    # --- planning ---------------------------------------------------------------------------------

    def _ready(
        self, name: str, capture: Capture, shapes: Any, fetch_bytes: int, old: Version | None
    ) -> Version:
        """A version whose plan agrees with where the variables are now, planned anew where it does
        not.
        """
        with self._at_work():
            # Planning measures ops on worker 0, which resets its peak.
            self._leave(self._current)
            self._current = None
            if old is not None and all(v.device == device for v, device in old.planned.variables):
                old.bind(place)
                return old
            training = steps.trains(capture)
            planned = self._known_plan(capture, shapes) or self._planner.plan(
                name, capture, shapes, self._request(capture, training)
            )
            return self._placed(name, capture, shapes, fetch_bytes, planned)

    def _known_plan(self, capture: Capture, shapes: Any) -> PlannedStep | None:
        """What `prepare` was given, if this is the same step."""
        if self._known is None:
            return None
        known, known_shapes, planned = self._known
        same = known_shapes == shapes and known.fingerprint() == capture.fingerprint()
        return planned if same and known.variables() == capture.variables() else None

    def _placed(
        self, name: str, capture: Capture, shapes: Any, fetch_bytes: int, planned: PlannedStep
    ) -> Version:
        """Variables where the plan wants them, and the function over them."""
        self._leave(self._current)
        self._current = None
        training = steps.trains(capture)
        record = Record(name, shapes, training, planned.prediction)
        self._records.append(record)
        if training and self._options.dry_run:
            raise SystemExit(0)
        self._move(planned.variables, training)
        version = Version(capture, shapes, fetch_bytes, planned, record)
        if self._options.dry_run:
            version.pretend(base_graph)
        else:
            version.bind(place)
        return version

    def _request(self, capture: Capture, training: bool) -> Request:
        touched = {id(c.variable): c.variable for c in capture.captured if c.variable is not None}
        # What only assigns (initial values, metrics set to zero) has no say in where variables are.
        works = steps.reads_trainable(capture)
        fixed = {
            number: variable.device
            for number, variable in touched.items()
            if not works or self._is_settled(variable)
        }
        residents = dict.fromkeys(self._cluster.device_strings, 0)
        for variable in self.variables():
            if id(variable) not in touched and variable.device in residents:
                residents[variable.device] += allocator.rounded(variables.bytes_of(variable))
        return Request(fixed, residents, training, measure=works)

    def _is_settled(self, variable: Any) -> bool:
        reference = self._settled.get(id(variable))
        return reference is not None and reference() is variable

    def _move(self, assignments: list[tuple[Any, str]], settle: bool) -> None:
        if variables.move(assignments):
            self._moves += 1
            if settle:
                variables.compact()
        if settle:
            self._settled.update((id(v), weakref.ref(v)) for v, _ in assignments)

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        before, self._busy = self._busy, True
        try:
            yield
        finally:
            self._busy = before

    # --- running ----------------------------------------------------------------------------------

    def _run(self, version: Version, tensors: list[Any]) -> list[Any]:
        if version.record is not self._current:
            self._leave(self._current)
            self._enter(version.record)
        try:
            return version.run(tensors)
        except tf.errors.ResourceExhaustedError as error:
            message = refused.message(error, version.record, self._cluster.device_strings)
            if message is None:
                raise
            raise refused.OutOfMemory(message) from error
        except tf.errors.OpError as error:
            message = self._cluster.failure(_loss_shows_after_s(error))
            if message is None:
                raise
            raise WorkerLost(message) from error

    def _enter(self, record: Record) -> None:
        self._current = record
        if record.measurements < _MEASUREMENTS:
            for number in range(len(self._cluster.device_strings)):
                self._cluster.reset_peak(number)

    def _leave(self, record: Record | None) -> None:
        if record is None or record.measurements >= _MEASUREMENTS or not record.seconds:
            return
        count = len(self._cluster.device_strings)
        record.note_peaks([self._cluster.memory(number)["peak"] for number in range(count)])


def _loss_shows_after_s(error: Exception) -> float:
    """Seconds to wait for a worker's loss to show after `error`; 0 for errors a lost worker does
    not cause.
    """
    lost = (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.CancelledError)
    return 2.0 if isinstance(error, lost) else 0.0


def _default_planner(options: RunOptions, cluster: Cluster) -> Planner:
    from pardnn.tensorflow.planning import CorePlanner

    return CorePlanner(options, cluster)


def _write(path: Path, text: str) -> None:
    """Write a file under a temporary name first, so that nobody ever sees half of it."""
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(text)
    temporary.replace(path)

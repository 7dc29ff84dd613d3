"""One captured function over the life of a run: a version for each batch shape, timed, its peaks
measured.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

from pardnn.tensorflow import compat, passes
from pardnn.tensorflow.place import StepPlacement
from pardnn.tensorflow.tracing import Capture


@dataclass(frozen=True)
class Prediction:
    """What a plan promises, by device name: bytes, and nanoseconds of one step.

    `variables` are the bytes of the step's variables on each device, which its peak holds too.
    `one_device_ns` is the step on one device whatever its limit; `bound_ns` no plan can beat.
    """

    algorithm: str
    limits: dict[str, int]
    variables: dict[str, int]
    peaks: dict[str, int]
    any_timing_peaks: dict[str, int]
    step_ns: int
    bound_ns: int
    one_device_ns: int | None
    bytes_sent: int


@dataclass(frozen=True)
class Request:
    """What a plan has to respect.

    `fixed` maps id(variable) to the device it must stay on; `residents` are bytes by device of
    variables the step does not touch; `training`: the plan decides where variables live; `measure`:
    its costs are worth measuring.
    """

    fixed: dict[int, str]
    residents: dict[str, int]
    training: bool
    measure: bool = True


@dataclass(frozen=True)
class PlannedStep:
    """A placement, where its variables have to be, and what was promised (None: nobody planned)."""

    placement: StepPlacement
    variables: list[tuple[Any, str]]
    prediction: Prediction | None


@dataclass
class Record:
    """What is known of one function for one batch shape after it is gone: it holds no tensor and no
    variable.
    """

    name: str
    shapes: tuple[Any, ...]
    training: bool
    prediction: Prediction | None
    seconds: list[float] = field(default_factory=list)
    peaks: list[int] = field(default_factory=list)
    measurements: int = 0

    def note_peaks(self, peaks: Sequence[int]) -> None:
        """Take measured peaks, by worker, of the calls since the last reset."""
        before = self.peaks or [0] * len(peaks)
        self.peaks = [max(pair) for pair in zip(before, peaks, strict=True)]
        self.measurements += 1

    def median_s(self) -> float | None:
        """Median seconds of a step, without the first two, which also set the function up on the
        workers.
        """
        return statistics.median(self.seconds[2:] or self.seconds) if self.seconds else None


@dataclass
class Version:
    """One captured function for one batch shape, placed."""

    capture: Capture
    shapes: tuple[Any, ...]
    fetch_bytes: int
    planned: PlannedStep
    record: Record
    _call: Callable[[Sequence[Any]], list[Any]] | None = None
    _handles: list[int] = field(default_factory=list)

    def run(self, tensors: list[Any]) -> list[Any]:
        """Run one step and note how long it took, results that come back included."""
        begin = time.perf_counter()
        assert self._call is not None, "bind() comes first"
        results = self._call(tensors)
        self.record.seconds.append(time.perf_counter() - begin)
        return results

    def bind(self, build: Callable[..., Callable[[Sequence[Any]], list[Any]]]) -> None:
        """Build the function with the variables' present handles, unless it already has them."""
        touched = [c.variable for c in self.capture.captured if c.variable is not None]
        handles = [id(compat.handle_of(variable)) for variable in touched]
        if self._call is None or handles != self._handles:
            self._call = build(
                self.capture, self.shapes, self.planned.placement, fetch_bytes=self.fetch_bytes
            )
            self._handles = handles

    def pretend(self, build: Callable[..., Any]) -> None:
        """Return zeros of the right shapes instead of running: in a dry run nothing is computed."""
        graph = build(self.capture, self.shapes)
        shapes = [[d or 1 for d in t.shape] for t in graph.outputs]
        types = [t.dtype for t in graph.outputs]
        self._call = lambda _: [tf.zeros(s, d) for s, d in zip(shapes, types, strict=True)]


def signature(tensors: Sequence[Any]) -> tuple[Any, ...]:
    """Static shapes of given tensors, the key of a version."""
    return tuple(tuple(t.shape) for t in tensors)


def trains(capture: Capture) -> bool:
    """Whether the function reads and updates a trainable variable, so that its plan decides where
    variables live.
    """
    trainable = {
        c.placeholder for c in capture.captured if c.variable is not None and c.variable.trainable
    }
    return bool(passes.updated(capture.graph_def, trainable))


def reads_trainable(capture: Capture) -> bool:
    """Whether the function reads a trainable variable: it is the model at work, not its
    initialisation.
    """
    trainable = {
        c.placeholder for c in capture.captured if c.variable is not None and c.variable.trainable
    }
    return any(
        passes.producer(edge) in trainable
        for node in capture.graph_def.node
        if not node.op.startswith("Assign")
        for edge in node.input
    )

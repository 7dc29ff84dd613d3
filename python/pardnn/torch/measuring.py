"""Times single ops in a process of its own: an op whose inputs mean nothing may crash.

usage: python -m pardnn.torch.measuring DESCRIPTOR
"""

from __future__ import annotations

import logging
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import torch
from torch.utils import _pytree as pytree

from pardnn.torch import children, tensors
from pardnn.torch.calls import Layout, names_of
from pardnn.torch.meter import HighWater, keep_freed, keep_nothing

_LOG = logging.getLogger(__name__)
_BUDGET_S = 0.02  # of one op
_LEAST_RUNS, _MOST_RUNS = 3, 20
# Less cannot be told from what Python and the allocator do.
_LEAST_BYTES = 256 << 10


@dataclass(frozen=True)
class Asked:
    """A call as text over constants ``c`` and tensors ``t`` of these layouts."""

    call: str
    constants: list[Any]
    layouts: list[Layout]


class Found(NamedTuple):
    """Of a call: the median time in ns, on one thread, the bytes of each tensor it answers, and the
    bytes it needs besides while it runs.
    """

    ns: int
    bytes: list[int]
    workspace: int


def measured(asked: Mapping[str, Asked]) -> Iterator[tuple[str, Found]]:
    """What was found of each call; those that fail are left out."""
    memory = dict(_answers(asked, "memory"))
    times = _answers({key: call for key, call in asked.items() if key in memory}, "time")
    for key, ns in times:
        yield key, Found(ns, *memory[key])


def _answers(asked: Mapping[str, Asked], what: str) -> Iterator[tuple[str, Any]]:
    left = list(asked.items())
    while left:
        with _Child(what) as child:
            while left:
                key, call = left.pop(0)
                try:
                    answer = child.ask(call)
                except (EOFError, ConnectionError):
                    _LOG.info("%s cannot be measured alone: it crashes", key)
                    break
                if isinstance(answer, str):
                    _LOG.info("%s cannot be measured alone: %s", key, answer)
                else:
                    yield key, answer


class _Child:
    """The process that measures: "time" or "memory"."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> _Child:
        self._process, self._connection = children.start(
            "pardnn.torch.measuring", variables=children.WORKER
        )
        tensors.send_object(self._connection, self._what)
        return self

    def ask(self, call: Asked) -> Any:
        """What was found, or as a text what went wrong."""
        tensors.send_object(self._connection, call)
        return tensors.receive_object(self._connection)

    def __exit__(self, *error: object) -> None:
        self._connection.close()  # which ends it
        self._process.wait()


def _measure(asked: Asked, measure: Callable[[Callable[[], Any]], Any]) -> Any:
    try:
        names = {**names_of(asked.constants), "t": [_made(layout) for layout in asked.layouts]}
        call = eval(f"lambda: {asked.call}", names)  # noqa: S307  our own text
        call()  # the first one warms up
        return measure(call)
    except (RuntimeError, IndexError, ValueError, MemoryError) as error:
        return str(error)


def _time(call: Callable[[], Any]) -> int:
    """The median ns of a call."""
    times: list[int] = []
    end = time.perf_counter() + _BUDGET_S
    while len(times) < _LEAST_RUNS or (len(times) < _MOST_RUNS and time.perf_counter() < end):
        begin = time.thread_time_ns()
        answer = call()
        times.append(time.thread_time_ns() - begin)
    del answer
    return int(statistics.median(times))


def _memory(call: Callable[[], Any]) -> tuple[list[int], int]:
    """The bytes of each tensor that a call answers, and those it needs besides while it runs."""
    high_water = HighWater()
    high_water.reset()
    answer = call()
    most = high_water.bytes()
    leaves = [leaf for leaf in pytree.tree_leaves(answer) if isinstance(leaf, torch.Tensor)]
    sizes = [leaf.nbytes for leaf in leaves]
    workspace = most - sum(sizes)
    return sizes, workspace if workspace > _LEAST_BYTES else 0


def _made(layout: Layout) -> torch.Tensor:
    """A tensor of some values; whole numbers are 0, an index wherever one is meant."""
    spans = zip(layout.shape, layout.stride, strict=True)
    size = 1 + sum((count - 1) * step for count, step in spans) if layout.bytes else 0
    if layout.dtype.is_floating_point or layout.dtype.is_complex:
        memory = torch.rand(size).to(layout.dtype)
    else:
        memory = torch.zeros(size, dtype=layout.dtype)
    return memory.as_strided(layout.shape, layout.stride)


def main(descriptor: int) -> int:
    """Answers until nobody asks; returns the exit status."""
    torch.set_num_threads(1)
    connection = Connection(descriptor)
    # Memory that is kept would be found by the next call, and not count as its own.
    in_memory = tensors.receive_object(connection) == "memory"
    measure: Callable[[Callable[[], Any]], Any] = _memory if in_memory else _time
    keep_nothing() if in_memory else keep_freed()
    with torch.enable_grad():  # some ops answer more than without
        while True:
            try:
                asked = tensors.receive_object(connection)
            except EOFError:
                return 0
            tensors.send_object(connection, _measure(asked, measure))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))

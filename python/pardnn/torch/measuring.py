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
    left = list(asked.items())
    while left:
        with _Child() as child:
            while left:
                key, call = left.pop(0)
                try:
                    answer = child.ask(call)
                except (EOFError, ConnectionError):
                    _LOG.info("%s cannot be measured alone: it crashes", key)
                    break
                if isinstance(answer, Found):
                    yield key, answer
                else:
                    _LOG.info("%s cannot be measured alone: %s", key, answer)


class _Child:
    """The process that measures."""

    def __enter__(self) -> _Child:
        self._process, self._connection = children.start(
            "pardnn.torch.measuring", variables=children.WORKER
        )
        return self

    def ask(self, call: Asked) -> Found | str:
        """What was found, or what went wrong."""
        tensors.send_object(self._connection, call)
        answer = tensors.receive_object(self._connection)
        return answer if isinstance(answer, str) else Found(*answer)

    def __exit__(self, *error: object) -> None:
        self._connection.close()  # which ends it
        self._process.wait()


def _measure(asked: Asked) -> tuple[int, list[int], int] | str:
    try:
        names = {**names_of(asked.constants), "t": [_made(layout) for layout in asked.layouts]}
        call = eval(f"lambda: {asked.call}", names)  # noqa: S307  our own text
        times: list[int] = []
        end = time.perf_counter() + _BUDGET_S
        while len(times) <= _LEAST_RUNS or (len(times) <= _MOST_RUNS and time.perf_counter() < end):
            begin = time.thread_time_ns()
            answer = call()
            times.append(time.thread_time_ns() - begin)
        del answer
        most, sizes = _memory(call)
    except (RuntimeError, IndexError, ValueError, MemoryError) as error:
        return str(error)
    workspace = most - sum(sizes)
    # The first one warms up.
    return int(statistics.median(times[1:])), sizes, workspace if workspace > _LEAST_BYTES else 0


def _memory(call: Callable[[], Any]) -> tuple[int, list[int]]:
    """The most bytes that a call needs at once, and those of each tensor that it answers."""
    keep_nothing()
    high_water = HighWater()
    high_water.reset()
    answer = call()
    most = high_water.bytes()
    keep_freed()
    leaves = [leaf for leaf in pytree.tree_leaves(answer) if isinstance(leaf, torch.Tensor)]
    return most, [leaf.nbytes for leaf in leaves]


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
    keep_freed()
    connection = Connection(descriptor)
    with torch.enable_grad():  # some ops answer more than without
        while True:
            try:
                asked = tensors.receive_object(connection)
            except EOFError:
                return 0
            tensors.send_object(connection, _measure(asked))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))

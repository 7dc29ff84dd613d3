"""Steps of a run: where they end, how long each took, and the most memory in it."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch.optim import optimizer as optimizers

from pardnn.torch.script.limits import Memory
from pardnn.torch.script.links import Links


def at_each_end(ended: Callable[[], None]) -> None:
    """From now on calls ``ended`` whenever the optimizer that stepped first has stepped.

    In a script without an optimizer a step ends with each call of ``backward``.
    """
    leader: list[Any] = []
    made: list[bool] = []
    begin, backward = optimizers.Optimizer.__init__, torch.autograd.backward

    def note_optimizer(self: Any, *args: Any, **kwargs: Any) -> None:
        made.append(True)
        begin(self, *args, **kwargs)

    def stepped(optimizer: Any, *_: Any) -> None:
        if not leader:
            leader.append(weakref.ref(optimizer))
        if leader[0]() is optimizer:
            ended()

    def noted_backward(*args: Any, **kwargs: Any) -> None:
        backward(*args, **kwargs)
        if not made:
            ended()

    optimizers.Optimizer.__init__ = note_optimizer
    optimizers.register_optimizer_step_post_hook(stepped)
    torch.autograd.backward = noted_backward


class Steps:
    """The steps of one rank."""

    def __init__(self, links: Links, memory: Memory) -> None:
        self._links = links
        self._memory = memory
        self._last = time.perf_counter()
        self._last_cpu = time.process_time()
        self._sent = 0
        self._seconds: list[float] = []
        self._cpu: list[float] = []
        self._peaks: list[int] = []
        self._bytes: list[int] = []

    def records(self) -> dict[str, list[Any]]:
        """Seconds, those of them on a core, bytes at most in use, bytes sent of each step."""
        return {
            "seconds": self._seconds,
            "cpu": self._cpu,
            "peaks": self._peaks,
            "sent": self._bytes,
        }

    def ended(self) -> None:
        """One more step is over."""
        now, cpu = time.perf_counter(), time.process_time()
        self._seconds.append(now - self._last)
        self._cpu.append(cpu - self._last_cpu)
        self._peaks.append(self._memory.take_peak())
        self._bytes.append(self._links.bytes_sent - self._sent)
        self._last, self._last_cpu = now, cpu
        self._sent = self._links.bytes_sent

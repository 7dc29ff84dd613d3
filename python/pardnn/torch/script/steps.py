"""Steps of a run: how long each took, and the most memory in it."""

from __future__ import annotations

import time
import weakref
from typing import Any

from torch.optim import optimizer as optimizers

from pardnn.torch.script.limits import Memory
from pardnn.torch.script.links import Links


class Steps:
    """A step ends when the first optimizer that ever stepped steps again."""

    def __init__(self, links: Links, memory: Memory) -> None:
        self._links = links
        self._memory = memory
        self._leader: Any = None
        self._last = time.perf_counter()
        self._sent = 0
        self._seconds: list[float] = []
        self._peaks: list[int] = []
        self._bytes: list[int] = []

    def install(self) -> None:
        """From now on steps are counted."""
        optimizers.register_optimizer_step_post_hook(self._stepped)

    def records(self) -> dict[str, list[Any]]:
        """Seconds, bytes at most in use, bytes sent of each step."""
        return {"seconds": self._seconds, "peaks": self._peaks, "sent": self._bytes}

    def _stepped(self, optimizer: Any, *_: Any) -> None:
        if self._leader is None:
            self._leader = weakref.ref(optimizer)
        if self._leader() is not optimizer:
            return
        now = time.perf_counter()
        self._seconds.append(now - self._last)
        self._peaks.append(self._memory.take_peak())
        self._bytes.append(self._links.bytes_sent - self._sent)
        self._last = now
        self._sent = self._links.bytes_sent

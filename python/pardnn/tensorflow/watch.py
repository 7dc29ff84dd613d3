"""Notices within seconds that a worker died or froze, and makes sure that the run then ends.

TensorFlow itself reports a dead worker to the step in flight, but waits for a frozen one for ever.
The watch asks every worker for a sign of life each second; it ends one that stays silent, which
turns the freeze into a death. When the chief does not come back from its call even then, the watch
ends all workers, and at last says so itself.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence

from pardnn.tensorflow import control
from pardnn.tensorflow.processes import AnyWorker, with_log

PERIOD_S = 1.0
# A worker that somebody stopped cannot answer; one that is only slow (swapping) gets longer.
STOPPED_SILENCE_S = 4.0
SILENCE_S = 9.0
# After the first loss: time for the step in flight to fail by itself, then by losing all workers.
GRACE_S = 2.5
LAST_GRACE_S = 2.0
# The chief itself was stopped (Ctrl-Z) or the machine slept if a wait took this much too long.
_ASLEEP_S = 3.0

# What a signal is most likely to mean. What receives a tensor (TensorResponse) uses the memory it
# was refused, and oneDNN's kernels do not pass an allocator's refusal on.
_NO_MEMORY = (
    " (a worker ends like this where a tensor that comes from another, or a kernel at work, is "
    "refused memory: give more --memory, or leave more of it free, as --margin 150 does)"
)
_HINTS = {
    "SIGKILL": " (if nobody did that, the system was out of memory: see dmesg)",
    "SIGABRT": _NO_MEMORY,
    "SIGSEGV": _NO_MEMORY,
}

_LOG = logging.getLogger(__name__)


class Watch:
    """One thread per worker, from ``start`` to ``stop``.

    ``on_stuck(message)`` is called when the chief is still inside a call ``GRACE_S +
    LAST_GRACE_S`` after a loss and ``acknowledge`` was not called; a launcher leaves the process
    there.
    """

    def __init__(self, workers: Sequence[AnyWorker]) -> None:
        self.on_stuck: Callable[[str], None] | None = None
        self._workers = workers
        self._stopping = threading.Event()
        self._acknowledged = threading.Event()
        self._lock = threading.Lock()
        self._failure: str | None = None

    def start(self) -> None:
        """Begins to watch; the workers have to be ready to answer."""
        for worker in self._workers:
            threading.Thread(
                target=self._watch,
                args=(worker,),
                name=f"pardnn-watch-{worker.number}",
                daemon=True,
            ).start()

    def stop(self) -> None:
        """From now on a worker's end is no failure."""
        self._stopping.set()

    def acknowledge(self) -> None:
        """The chief has seen the failure and is about to end by itself."""
        self._acknowledged.set()

    def failure(self, wait_s: float = 0.0) -> str | None:
        """The message about the first lost worker, or None; looks for ``wait_s`` at least once."""
        end = time.monotonic() + wait_s
        while not self._stopping.is_set():
            for worker in self._workers:
                death = worker.death()
                if death is not None:
                    self._record(worker, death)
            if self._failure is not None or time.monotonic() >= end:
                break
            time.sleep(0.05)
        return self._failure

    def _watch(self, worker: AnyWorker) -> None:
        last_sign = time.monotonic()
        while not self._stopping.wait(PERIOD_S):
            asked = time.monotonic()
            try:
                worker.ask({"do": "ping"}, timeout_s=2.0)
                last_sign = time.monotonic()
            except (OSError, control.ControlError):
                if time.monotonic() - asked > 2.0 + _ASLEEP_S:
                    last_sign = time.monotonic()  # it was us who slept
            if self._stopping.is_set() or self._failure is not None:
                return
            death = worker.death()
            silent_s = time.monotonic() - last_sign
            if (
                death is None
                and silent_s >= STOPPED_SILENCE_S
                and (silent_s >= SILENCE_S or worker.is_stopped())
            ):
                why = "it was stopped (SIGSTOP?)"
                if not worker.is_stopped():
                    why = "it hangs or cannot be reached"
                death = f"gave no sign of life for {silent_s:.0f} s ({why}) and was ended"
                # Said before it is done: the chief asks as soon as its step fails.
                self._record(worker, death)
                worker.kill()
            if death is not None:
                self._record(worker, death)
                self._see_to_the_end()
                return
            worker.bound_log()

    def _record(self, worker: AnyWorker, death: str) -> None:
        with self._lock:
            if self._failure is not None or self._stopping.is_set():
                return
            hint = next((text for name, text in _HINTS.items() if name in death), "")
            self._failure = with_log(
                f"{worker.name} {death}{hint}; its variables are lost, so the run ends", worker
            )
            _LOG.info("%s", self._failure)

    def _see_to_the_end(self) -> None:
        """After a loss: gives the chief time to notice, then takes the reasons to wait away."""
        if self._acknowledged.wait(GRACE_S) or self._stopping.is_set():
            return
        for worker in self._workers:
            worker.kill()
        if self._acknowledged.wait(LAST_GRACE_S) or self._stopping.is_set():
            return
        if self.on_stuck is not None and self._failure is not None:
            self.on_stuck(self._failure)

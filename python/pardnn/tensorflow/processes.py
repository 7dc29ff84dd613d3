"""One worker as its chief sees it: started, asked, ended, and explained when it died.

``LocalWorker`` owns a process of this machine. ``RemoteWorker`` speaks to the listener a user
started on another host (``remote.py``). Both answer the same calls.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pardnn.tensorflow import control
from pardnn.tensorflow.worker import FIRST_REGION_BYTES, MIB

LONGEST_LOG_BYTES = 1 << 20
_KEPT_LOG_BYTES = 1 << 16
START_TIMEOUT_S = 180.0
# The allocator keeps 8 bytes of its own for every 256 of a region, so this costs 128 MiB.
_UNLIMITED_REGION_BYTES = 4 << 30
_PACKAGE_ROOT = str(Path(__file__).resolve().parents[2])


class WorkerError(RuntimeError):
    """A worker could not be started or does not answer; the message says which and why."""


@dataclass(frozen=True)
class WorkerOptions:
    """How a worker runs.

    ``memory``: bytes its allocator hands out at most, a multiple of 1 MiB; None means no limit.
    ``threads``: of each kind; with one, results do not depend on timing. ``loopback``: only
    processes of this machine may connect.
    """

    memory: int | None = None
    threads: int = 1
    loopback: bool = True

    def environment(self) -> dict[str, str]:
        """What the worker's allocator reads before TensorFlow is imported."""
        limit = self.memory if self.memory is not None else _physical_memory()
        return {
            "TF_CPU_ALLOCATOR_USE_BFC": "1",
            "TF_CPU_BFC_MEM_LIMIT_IN_MB": str(limit // MIB),  # the name says MB, it counts MiB
            "TF_CPP_MIN_LOG_LEVEL": os.environ.get("PARDNN_WORKER_LOG_LEVEL", "1"),
        }

    def preallocated(self) -> int:
        """Bytes of the one large region the allocator opens first."""
        if self.memory is not None:
            return self.memory - FIRST_REGION_BYTES
        return min(_UNLIMITED_REGION_BYTES, _physical_memory() // 2)


class AnyWorker(Protocol):
    """What the cluster and its watch need of a worker."""

    number: int
    name: str

    def address(self) -> str: ...
    def ask(self, request: dict[str, Any], timeout_s: float | None = ...) -> Any: ...
    def death(self) -> str | None: ...
    def is_stopped(self) -> bool: ...
    def kill(self) -> None: ...
    def last_lines(self, count: int) -> list[str]: ...
    def bound_log(self) -> None: ...


class LocalWorker:
    """A worker process of this machine, started at once and dead at the latest with its starter.

    Must be made by a thread that lives as long as the worker should: the kernel ends a worker
    with the thread that started it.
    """

    def __init__(self, number: int, options: WorkerOptions, folder: Path) -> None:
        self.number = number
        self.name = f"worker {number}"
        self._socket = str(folder / f"{number}.socket")
        self._log = folder / f"worker-{number}.log"
        configuration = {
            "task": number,
            "preallocate": options.preallocated(),
            "threads": options.threads,
            "loopback": options.loopback,
            "control": self._socket,
            "parent": os.getpid(),
        }
        environment = {**os.environ, **options.environment()}
        # The script's own settings for the chief must not reach the workers' plumbing.
        environment["PYTHONPATH"] = os.pathsep.join(
            part for part in (os.environ.get("PYTHONPATH"), _PACKAGE_ROOT) if part
        )
        with open(self._log, "ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "pardnn.tensorflow.worker"],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
            )
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(configuration).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # it died at once: address() says so with the reason

    @property
    def process(self) -> int:
        """Its process id."""
        return self._process.pid

    def address(self) -> str:
        """Waits until its server listens and returns "host:port"; WorkerError if it never does."""
        end = time.monotonic() + START_TIMEOUT_S
        while True:
            death = self.death()
            if death is not None:
                raise WorkerError(with_log(f"{self.name} did not start: it {death}", self))
            if time.monotonic() > end:
                raise WorkerError(
                    with_log(f"{self.name} did not start within {START_TIMEOUT_S:.0f} s", self)
                )
            try:
                answer = self.ask({"do": "ready"}, timeout_s=1.0)
                return f"127.0.0.1:{answer['port']}"
            except OSError:
                time.sleep(0.02)

    def ask(self, request: dict[str, Any], timeout_s: float | None = 30.0) -> Any:
        """Sends a request to its control socket; see ``control.ask`` for the errors."""
        return control.ask(self._socket, request, timeout_s)

    def death(self) -> str | None:
        """How the process ended, as the second half of a sentence; None while it lives."""
        status = self._process.poll()
        if status is None:
            return None
        if status >= 0:
            return f"ended with status {status}"
        try:
            name = signal.Signals(-status).name
        except ValueError:
            name = "unknown"
        return f"was ended by signal {-status} ({name})"

    def is_stopped(self) -> bool:
        """Whether somebody froze it (SIGSTOP), so that it cannot answer however long one waits."""
        try:
            with open(f"/proc/{self._process.pid}/stat", encoding="ascii", errors="replace") as f:
                return f.read().rpartition(")")[2].split()[0] in "Tt"
        except OSError:
            return False

    def kill(self) -> None:
        """Ends the process, however it is, and waits for its end."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()

    def last_lines(self, count: int) -> list[str]:
        """The last ``count`` lines of what it printed."""
        try:
            with open(self._log, "rb") as log:
                log.seek(max(0, os.fstat(log.fileno()).st_size - _KEPT_LOG_BYTES))
                text = log.read().decode(errors="replace")
        except OSError:
            return []
        return [line for line in text.splitlines() if line.strip()][-count:]

    def bound_log(self) -> None:
        """Keeps the end of a log that grew too long. The worker appends, so it goes on behind."""
        if self._log.stat().st_size <= LONGEST_LOG_BYTES:
            return
        with open(self._log, "r+b") as log:
            log.seek(-_KEPT_LOG_BYTES, os.SEEK_END)
            kept = log.read()
            log.truncate(0)
        with open(self._log, "ab") as log:
            log.write(b"[earlier lines dropped]\n" + kept)


class RemoteWorker:
    """A worker on another host: a session with the listener that a user started there."""

    def __init__(self, number: int, options: WorkerOptions, host: str, port: int) -> None:
        self.number = number
        self.name = f"worker {number} on {host}:{port}"
        self._listener = (host, port)
        self._death: str | None = None
        try:
            self._session = control.ask(
                self._listener,
                {
                    "do": "start",
                    "task": number,
                    "memory": options.memory,
                    "threads": options.threads,
                },
                timeout_s=START_TIMEOUT_S,
            )
        except (OSError, control.ControlError) as error:
            raise WorkerError(
                f"{self.name} cannot be used: {error}; it is started on its host with "
                f"'python -m pardnn.tensorflow.worker --listen {host}:{port}'"
            ) from None

    def address(self) -> str:
        return str(self._session["address"])

    def ask(self, request: dict[str, Any], timeout_s: float | None = 30.0) -> Any:
        token = {"session": self._session["session"]}
        return control.ask(self._listener, {**request, **token}, timeout_s)

    def death(self) -> str | None:
        return self._death

    def is_stopped(self) -> bool:
        return False

    def kill(self) -> None:
        """Ends the session; a listener that cannot be reached ends it when our pings stop."""
        if self._death is None:
            self._death = "was let go"
            try:
                self.ask({"do": "end"}, timeout_s=2.0)
            except (OSError, control.ControlError) as error:
                self._death = f"could not be reached ({error})"

    def last_lines(self, count: int) -> list[str]:
        try:
            return [str(line) for line in self.ask({"do": "log", "count": count}, timeout_s=2.0)]
        except (OSError, control.ControlError):
            return []

    def bound_log(self) -> None:
        """Its own host bounds it."""


def with_log(message: str, worker: AnyWorker, count: int = 8) -> str:
    """The message, and below it the last lines the worker printed, if any."""
    lines = worker.last_lines(count)
    if not lines:
        return message
    return "\n".join([f"{message}; its last lines:", *(f"  | {line}" for line in lines)])


def _physical_memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")

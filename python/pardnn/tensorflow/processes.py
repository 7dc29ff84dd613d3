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
import threading
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pardnn.tensorflow import control, worker
from pardnn.tensorflow.small_tensors import FIRST_REGION_BYTES
from pardnn.tensorflow.worker import MIB

LONGEST_LOG_BYTES = 1 << 20
_KEPT_LOG_BYTES = 1 << 16
START_TIMEOUT_S = 180.0
# The allocator keeps 8 bytes of its own for every 256 of a region, so this costs 128 MiB.
_UNLIMITED_REGION_BYTES = 4 << 30
# How a listener's answer begins when the worker it stands for has ended.
WORKER_ENDED = "the worker has ended: it "
_reaping = threading.Lock()
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

    def address(self) -> str:
        """Where its server listens, "host:port", once it does; WorkerError if it never does."""

    def ask(self, request: dict[str, Any], timeout_s: float | None = ...) -> Any:
        """Its answer to a request; ``control.ask`` has the errors."""

    def death(self) -> str | None:
        """How it ended, as the second half of a sentence; None while it lives."""

    def is_stopped(self) -> bool:
        """Whether it is known to be frozen, so that it cannot answer however long one waits."""

    def kill(self) -> None:
        """Ends it, however it is, and waits for its end."""

    def last_lines(self, count: int) -> list[str]:
        """The last ``count`` lines of what it printed."""

    def bound_log(self) -> None:
        """Keeps what it printed from growing without end."""


class _Forked:
    """A worker forked off this process, with the calls of subprocess.Popen that are needed."""

    def __init__(
        self, configuration: dict[str, Any], environment: dict[str, str], log: int
    ) -> None:
        end_of_input, input_ = os.pipe()
        self.returncode: int | None = None
        self.stdin = os.fdopen(input_, "wb")
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                status = worker.forked(configuration, environment, log, end_of_input)
            except BaseException:  # noqa: BLE001  nothing of the chief may run in this process
                traceback.print_exc(file=sys.__stderr__)
            finally:
                os._exit(status)
        os.close(end_of_input)

    def poll(self) -> int | None:
        """The exit status, negative for a signal, or None while it runs."""
        return self._wait(os.WNOHANG)

    def wait(self) -> int | None:
        """The exit status, once there is one."""
        return self._wait(0)

    def kill(self) -> None:
        """Ends it, if it still runs."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def _wait(self, options: int) -> int | None:
        with _reaping:
            if self.returncode is None:
                try:
                    pid, status = os.waitpid(self.pid, options)
                except ChildProcessError:  # the script waited for all its children, ours too
                    self.returncode = 0
                else:
                    self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode


class LocalWorker:
    """A worker process of this machine, started at once and dead at the latest with its starter.

    Must be made by a thread that lives as long as the worker should: the kernel ends a worker
    with the thread that started it. ``fork``: make it from this process, in which TensorFlow must
    be imported and must not have run anything; else a new Python is started, which takes as long
    as importing TensorFlow does.
    """

    def __init__(self, number: int, options: WorkerOptions, folder: Path, *, fork: bool) -> None:
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
        with self._log.open("ab") as log:
            self._process: _Forked | subprocess.Popen[bytes]
            if fork:
                self._process = _Forked(configuration, options.environment(), log.fileno())
            else:
                self._process = _spawn(configuration, options.environment(), log.fileno())

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
            found = Path(f"/proc/{self._process.pid}/stat").read_text(errors="replace")
            return found.rpartition(")")[2].split()[0] in "Tt"
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
            with self._log.open("rb") as log:
                log.seek(max(0, os.fstat(log.fileno()).st_size - _KEPT_LOG_BYTES))
                text = log.read().decode(errors="replace")
        except OSError:
            return []
        return [line for line in text.splitlines() if line.strip()][-count:]

    def bound_log(self) -> None:
        """Keeps the end of a log that grew too long. The worker appends, so it goes on behind."""
        if self._log.stat().st_size <= LONGEST_LOG_BYTES:
            return
        with self._log.open("r+b") as log:
            log.seek(-_KEPT_LOG_BYTES, os.SEEK_END)
            kept = log.read()
            log.truncate(0)
        with self._log.open("ab") as log:
            log.write(b"[earlier lines dropped]\n" + kept)


def _spawn(
    configuration: dict[str, Any], environment: dict[str, str], log: int
) -> subprocess.Popen[bytes]:
    path = [part for part in (os.environ.get("PYTHONPATH"), _PACKAGE_ROOT) if part]
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "pardnn.tensorflow.worker"],
        stdin=subprocess.PIPE,
        stdout=log,
        stderr=subprocess.STDOUT,
        env={**os.environ, **environment, "PYTHONPATH": os.pathsep.join(path)},
    )
    assert process.stdin is not None
    try:
        process.stdin.write(json.dumps(configuration).encode() + b"\n")
        process.stdin.flush()
    except BrokenPipeError:
        pass  # it died at once: address() says so with the reason
    return process


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
        """Where its TensorFlow server listens, "host:port"."""
        return str(self._session["address"])

    def ask(self, request: dict[str, Any], timeout_s: float | None = 30.0) -> Any:
        """Sends a request through its listener; see ``control.ask`` for the errors."""
        token = {"session": self._session["session"]}
        try:
            return control.ask(self._listener, {**request, **token}, timeout_s)
        except control.ControlError as error:
            _, ended, how = str(error).partition(WORKER_ENDED)
            if ended:
                self._death = how
            raise

    def death(self) -> str | None:
        """How it ended, as far as this side knows."""
        return self._death

    def is_stopped(self) -> bool:
        """Nobody can tell from here."""
        return False

    def kill(self) -> None:
        """Ends the session; a listener that cannot be reached ends it when our pings stop."""
        try:
            self.ask({"do": "end"}, timeout_s=2.0)
        except (OSError, control.ControlError) as error:
            self._death = self._death or f"could not be reached ({error})"
        self._death = self._death or "was let go"

    def last_lines(self, count: int) -> list[str]:
        """The last ``count`` lines of what it printed, if its host can still be asked."""
        try:
            return [str(line) for line in self.ask({"do": "log", "count": count}, timeout_s=2.0)]
        except (OSError, control.ControlError):
            return []

    def bound_log(self) -> None:
        """Its own host bounds it."""


def with_log(message: str, source: AnyWorker, count: int = 8) -> str:
    """The message, and below it the last lines the worker printed, if any."""
    lines = source.last_lines(count)
    if not lines:
        return message
    return "\n".join([f"{message}; its last lines:", *(f"  | {line}" for line in lines)])


def _physical_memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")

"""The worker processes as their chief sees them: started, asked, watched, ended together."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import TracebackType
from typing import Any

from pardnn.errors import Refusal
from pardnn.quantities import show_bytes
from pardnn.torch import children, tensors
from pardnn.torch.worker import Setup

_END_S = 5.0
_NO_MEMORY = ("can't allocate memory", "Cannot allocate memory", "MemoryError", "bad_alloc")


class WorkerError(Refusal):
    """A worker has ended or cannot go on; the message names it and says why."""


class Workers:
    """One process for each device."""

    def __init__(self, folder: str, processes: list[subprocess.Popen[bytes]]) -> None:
        self._folder = folder
        self._processes = processes
        self._connections: list[Connection] = []
        self._limits: list[int | None] = []

    @staticmethod
    def start(setup_of: Callable[[int, str], Setup], count: int) -> Workers:
        """Starts them; ``setup_of(number, store)`` says what each is told. Raises WorkerError."""
        folder = tempfile.mkdtemp(prefix="pardnn-torch-")
        workers = Workers(folder, [])
        try:
            for number in range(count):
                workers._start_one(number)
            for number, connection in enumerate(workers._connections):
                setup = setup_of(number, str(Path(folder) / "store"))
                workers._limits.append(setup.limit)
                workers._send(number, connection, setup)
            workers.answers(range(count))
        except BaseException:
            workers.end()
            raise
        return workers

    def _start_one(self, number: int) -> None:
        with self._log(number).open("wb") as log:
            process, connection = children.start("pardnn.torch.worker", log, children.WORKER)
        self._processes.append(process)
        self._connections.append(connection)

    @property
    def pids(self) -> list[int]:
        """Of the processes."""
        return [process.pid for process in self._processes]

    def _log(self, number: int) -> Path:
        return Path(self._folder) / f"worker{number}.log"

    def ask(self, number: int, name: str, *arguments: Any) -> Any:
        """One worker's answer. Raises WorkerError, after which all have ended."""
        self._send(number, self._connections[number], (name, *arguments))
        return self.answers([number])[0]

    def ask_all(self, name: str, arguments_of: Callable[[int], Sequence[Any]]) -> list[Any]:
        """The answers of all workers, which work at the same time. Raises WorkerError."""
        for number, connection in enumerate(self._connections):
            self._send(number, connection, (name, *arguments_of(number)))
        return self.answers(range(len(self._connections)))

    def step(
        self, requests: Sequence[Sequence[Any]], batches: Sequence[Sequence[Any]]
    ) -> list[Any]:
        """The answers of all workers to a step, each with its own part of the batch."""
        for number, connection in enumerate(self._connections):
            self._send(number, connection, ("step", *requests[number]))
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # its answer says why
                for tensor in batches[number]:
                    tensors.send(connection, tensor)
        return self.answers(range(len(self._connections)))

    def put(self, number: int, name: str, tensor: Any, trained: bool) -> None:
        """Gives a worker a tensor."""
        self._send(number, self._connections[number], ("put", name, trained))
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # its answer says why
            tensors.send(self._connections[number], tensor)
        self.answers([number])

    def get(self, number: int, name: str) -> Any:
        """A worker's tensor."""
        self.ask(number, "get", name)
        return tensors.receive(self._connections[number])

    def answers(self, numbers: Sequence[int]) -> list[Any]:
        """What the workers answer to what they were asked; watches all others meanwhile."""
        found: dict[int, Any] = {}
        while len(found) < len(numbers):
            waiting = {self._connections[n]: n for n in numbers if n not in found}
            ready = wait([*waiting, *self._sentinels()], timeout=60)
            for connection in ready:
                if connection not in waiting:
                    continue
                number = waiting[connection]
                try:
                    kind, value = tensors.receive_object(self._connections[number])
                except (EOFError, ConnectionResetError):
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        self._processes[number].wait(_END_S)
                    self._fail()
                if kind == "error":
                    self._fail((number, value))
                found[number] = value
            if any(sentinel in ready for sentinel in self._sentinels()):
                self._fail()
        return [found[number] for number in numbers]

    def _sentinels(self) -> list[int]:
        if not hasattr(self, "_pidfds"):
            self._pidfds = [os.pidfd_open(process.pid) for process in self._processes]
        return self._pidfds

    def _send(self, number: int, connection: Connection, request: Any) -> None:
        try:
            tensors.send_object(connection, request)
        except (BrokenPipeError, ConnectionResetError):
            self._fail()

    def _fail(self, error: tuple[int, str] | None = None) -> None:
        """Finds out which worker was the first to fail, ends all, and says so."""
        errors = [] if error is None else [error]
        time.sleep(0.2)  # others fail because this one did, or this one because of another
        for number, connection in enumerate(self._connections):
            with contextlib.suppress(EOFError, OSError):
                while connection.poll():
                    kind, value = tensors.receive_object(connection)
                    if kind == "error":
                        errors.append((number, value))
        reasons = [(n, self._how_it_ended(n)) for n in range(len(self._processes))]
        dead = [(n, how) for n, how in reasons if how]
        first = [(n, text) for n, text in errors if any(word in text for word in _NO_MEMORY)]
        lost = [e for e in errors if "Connection closed" not in e[1] and "reset" not in e[1]]
        number, text = (first or dead or lost or errors or [(0, "it does not answer")])[0]
        limit = self._limits[number] if number < len(self._limits) else None
        self.end()
        if first:
            room = "" if limit is None else f", of which it may have {show_bytes(limit)}"
            raise WorkerError(f"worker {number} got no more memory{room}: {text}")
        raise WorkerError(f"worker {number} failed: {text}")

    def _how_it_ended(self, number: int) -> str:
        status = self._processes[number].poll()
        if status is None:
            return ""
        if status < 0:
            return f"it was ended by {signal.Signals(-status).name}"
        lines = self._log(number).read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"it ended with status {status}"

    def end(self) -> None:
        """Ends all; may be called again."""
        for connection in self._connections:
            with contextlib.suppress(OSError):
                tensors.send_object(connection, ("end",))
            connection.close()
        self._connections = []
        deadline = time.monotonic() + _END_S
        for process in self._processes:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for descriptor in self.__dict__.pop("_pidfds", ()):
            os.close(descriptor)
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

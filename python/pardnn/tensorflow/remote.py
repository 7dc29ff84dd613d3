"""Workers on other hosts: a listener that serves the runs of chiefs whose machine file names it.

A user starts it on the host that shall work:

    python -m pardnn.tensorflow.worker --listen HOST:PORT [--memory 64GiB] [--once]

HOST is the name or address under which the other hosts reach this one. The listener answers on
PORT; TensorFlow's server takes another port for each run. Neither asks who connects: listen only
in a network whose every user may run programs as you.
"""

from __future__ import annotations

import argparse
import contextlib
import queue
import secrets
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pardnn.errors import UsageError
from pardnn.quantities import parse_bytes, show_bytes
from pardnn.tensorflow import control
from pardnn.tensorflow.processes import WORKER_ENDED, LocalWorker, WorkerOptions

# A chief asks every second. One that is silent this long is gone, and its worker is ended.
CHIEF_SILENCE_S = 15.0
_FORWARDED = ("ping", "memory", "reset", "rss", "call")


def main(arguments: Sequence[str]) -> int:
    """Listens until it is interrupted, or with --once until a run has ended."""
    parser = argparse.ArgumentParser(
        prog="python -m pardnn.tensorflow.worker",
        description="Serves training runs started on other hosts, one after the other.",
        epilog="example: python -m pardnn.tensorflow.worker --listen node7:5000 --memory 64GiB",
        allow_abbrev=False,
    )
    parser.add_argument("--listen", required=True, metavar="HOST:PORT", help="where to answer")
    parser.add_argument("--memory", metavar="SIZE", help="no run gets more than this")
    parser.add_argument("--once", action="store_true", help="end after one run")
    found = parser.parse_args(list(arguments))
    try:
        host, port = _address(found.listen)
        memory = None if found.memory is None else parse_bytes(found.memory)
        listener = Listener(host, port, memory)
    except (UsageError, ValueError, OSError) as error:
        sys.stderr.write(f"pardnn worker: {found.listen}: {error}\n")
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    sys.stderr.write(f"pardnn worker: listening on {host}:{port}\n")
    try:
        listener.serve(once=found.once)
    except KeyboardInterrupt:
        pass
    finally:
        listener.close()
    return 0


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise UsageError("expected HOST:PORT")
    return host, int(port)


class Listener:
    """Answers chiefs on a TCP port and has at most one worker at a time.

    ``most_bytes`` bounds the memory a chief may ask for; None does not.
    """

    def __init__(self, host: str, port: int, most_bytes: int | None = None) -> None:
        import tensorflow  # noqa: F401  so that a worker is forked in no time

        self._host = host
        self._most_bytes = most_bytes
        self._folder = Path(tempfile.mkdtemp(prefix="pardnn-listener-"))
        self._tasks: queue.Queue[Callable[[], None]] = queue.Queue()
        self._lock = threading.Lock()
        self._worker: LocalWorker | None = None
        self._session = ""
        self._heard = 0.0
        self._socket = control.listen((host, port))

    def serve(self, *, once: bool = False) -> None:
        """Serves runs; must be called by the main thread, which forks the workers."""
        handlers: dict[str, control.Handler] = {"start": self._start, "end": self._end}
        handlers |= {"log": self._log} | dict.fromkeys(_FORWARDED, self._forward)
        control.serve(self._socket, handlers)
        while True:
            with contextlib.suppress(queue.Empty):
                self._tasks.get(timeout=1.0)()
            with self._lock:
                silent_s = time.monotonic() - self._heard
                if self._worker is not None and silent_s > CHIEF_SILENCE_S:
                    self._end_worker("its chief is silent")
                if once and self._session and self._worker is None:
                    return

    def close(self) -> None:
        """Ends the worker, if there is one, and stops answering."""
        self._socket.close()
        with self._lock:
            self._end_worker("the listener ends")
        shutil.rmtree(self._folder, ignore_errors=True)

    def _start(self, request: control.Request) -> dict[str, str]:
        """Starts the worker of a new run and returns its session and its server's address."""
        memory = request["memory"]
        if self._most_bytes is not None and (memory is None or memory > self._most_bytes):
            asked = "no limit" if memory is None else show_bytes(memory)
            raise UsageError(f"{asked} asked for, at most {show_bytes(self._most_bytes)} given")
        with self._lock:
            if self._worker is not None:
                raise UsageError("it is at work for another run")
            loopback = self._host in ("localhost", "127.0.0.1", "::1")
            options = WorkerOptions(memory, int(request["threads"]), loopback)
            made = threading.Event()
            failed: list[BaseException] = []

            def make() -> None:
                try:
                    number = int(request["task"])
                    self._worker = LocalWorker(number, options, self._folder, fork=True)
                except OSError as error:
                    failed.append(error)
                made.set()

            self._tasks.put(make)
            made.wait()
            if failed:
                raise failed[0]
            assert self._worker is not None
            self._session = secrets.token_hex(16)
            self._heard = time.monotonic()
            port = self._worker.address().rpartition(":")[2]
        sys.stderr.write(f"pardnn worker: a run begins, worker {request['task']}\n")
        return {"session": self._session, "address": f"{self._host}:{port}"}

    def _of_session(self, request: control.Request) -> LocalWorker:
        if self._worker is None or request.get("session") != self._session:
            raise UsageError("the run is over")
        self._heard = time.monotonic()
        return self._worker

    def _forward(self, request: control.Request) -> Any:
        worker = self._of_session(request)
        death = worker.death()
        if death is not None:
            raise RuntimeError(WORKER_ENDED + death)
        timeout_s = None if request["do"] == "call" else 5.0
        return worker.ask({k: v for k, v in request.items() if k != "session"}, timeout_s)

    def _log(self, request: control.Request) -> list[str]:
        return self._of_session(request).last_lines(int(request["count"]))

    def _end(self, request: control.Request) -> None:
        self._of_session(request)
        with self._lock:
            self._end_worker("its chief is done")

    def _end_worker(self, why: str) -> None:
        if self._worker is not None:
            self._worker.kill()
            self._worker = None
            sys.stderr.write(f"pardnn worker: the run is over, {why}\n")
            for left in self._folder.iterdir():
                left.unlink()

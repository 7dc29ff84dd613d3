"""Python programs run for a test: TensorFlow's eager context exists once per process, so each
story of a cluster needs a process of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil

_PROLOGUE = """
import os
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
from pardnn.tensorflow.cluster import Cluster
"""


def story(code: str, timeout_s: float = 240.0) -> str:
    """Runs ``code`` as a program of its own and returns what it printed; it must end well."""
    done = subprocess.run(
        [sys.executable, "-c", _PROLOGUE + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def pardnn_run(*arguments: str | Path) -> list[str]:
    """The command line of ``pardnn run``."""
    return [sys.executable, "-m", "pardnn.launch", *map(str, arguments)]


def finished(
    command: Sequence[str], timeout_s: float = 240.0, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end."""
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **environment},
    )


class Running:
    """A ``pardnn run`` in a process group of its own, and the workers it started."""

    def __init__(self, process: subprocess.Popen[str], output: Path) -> None:
        self.process = process
        self._output = output

    def output(self) -> str:
        """What it has printed so far, standard error included."""
        return self._output.read_text()

    def wait_for(self, text: str, timeout_s: float = 180.0) -> None:
        """Returns once ``text`` was printed."""
        _wait(lambda: text in self.output() or self.process.poll() is not None, timeout_s)
        assert text in self.output(), self.output()[-4000:]

    def workers(self) -> list[psutil.Process]:
        """Its worker processes."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def ended_within(self, seconds: float) -> int:
        """Its exit status; fails when it takes longer."""
        return self.process.wait(seconds)

    def signal(self, number: signal.Signals, *, group: bool = False) -> None:
        """Sends a signal to it, or to its whole process group as a terminal does."""
        if group:
            os.killpg(self.process.pid, number)
        else:
            self.process.send_signal(number)


@contextmanager
def running(command: Sequence[str], output: Path, **environment: str) -> Iterator[Running]:
    """Starts a command; whatever the test does, its process group is gone afterwards."""
    with output.open("w") as stream:
        process = subprocess.Popen(
            command,
            stdout=stream,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **environment},
        )
    try:
        yield Running(process, output)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def none_left(processes: Sequence[psutil.Process], within_s: float = 5.0) -> bool:
    """Whether all processes have ended."""
    _, alive = psutil.wait_procs(list(processes), timeout=within_s)
    return not [p for p in alive if p.status() != psutil.STATUS_ZOMBIE]


def _wait(condition: Callable[[], bool], timeout_s: float) -> None:
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, f"nothing happened for {timeout_s} s"
        time.sleep(0.05)

"""One run of a PyTorch script: a look ahead, a plan, the ranks, and an orderly end.

Whatever happens, no rank outlives the run, and a failure is said once.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import select
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from pardnn import doctor
from pardnn.errors import Refusal, UsageError
from pardnn.launch import RunOptions, complain

_INSTALL = "pip install torch==2.13.0"
_INTERRUPTED = 128 + int(signal.SIGINT)
# Ranks that lost another one say so within this time, and end; then they are ended.
_LAST_WORDS_S = 3.0
_LAST_LINES = 12
_HINTS = {
    "SIGKILL": " (if nobody did that, the system was out of memory: see dmesg)",
    "SIGSEGV": " (something read a tensor of another rank past torch, or a kernel crashed)",
}
_LOG = logging.getLogger(__name__)


def run(options: RunOptions) -> int:
    """Runs the script of ``options`` over ranks and returns the exit status.

    Raises Refusal for what the user has to know. A lost rank is reported here.
    """
    _log_to_terminal()
    doctor.require("torch", _INSTALL)
    if options.addresses:
        raise UsageError(
            "ranks of a torch script are processes of this machine; drop the addresses"
        )
    if options.respect_devices:
        raise UsageError("--respect-devices is for TensorFlow scripts; drop it")
    from pardnn.torch.script import planning, summary

    prepared = planning.prepare(options)
    if options.dry_run:
        sys.stderr.write(summary.table(prepared, []))
        _write_summary(options, summary.report(prepared, []))
        return 0
    with tempfile.TemporaryDirectory(prefix="pardnn-") as folder:
        ranks = Ranks(options, prepared, Path(folder))
        status = ranks.wait()
    if status == 0:
        sys.stderr.write(summary.table(prepared, ranks.records))
        _write_summary(options, summary.report(prepared, ranks.records))
    return status


def _write_summary(options: RunOptions, found: Any) -> None:
    if options.json_out is not None:
        options.json_out.write_text(json.dumps(found, indent=2) + "\n")


def _log_to_terminal() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("pardnn run: %(message)s"))
    logger = logging.getLogger("pardnn")
    logger.addHandler(handler)
    logger.propagate = False


class Ranks:
    """The processes of a run, from their start to the end of the last."""

    def __init__(self, options: RunOptions, prepared: Any, folder: Path) -> None:
        self.records: list[dict[str, Any]] = []
        self._count = options.devices
        self._folder = folder
        self._told: list[dict[str, Any]] = []
        self._status: dict[int, int] = {}
        self._numbers: dict[int, int] = {}
        self._rest: dict[int, bytes] = {}
        self._start(options, prepared)

    def _start(self, options: RunOptions, prepared: Any) -> None:
        from pardnn.torch.script import rank

        pairs = {
            (a, b): socket.socketpair()
            for a in range(self._count)
            for b in range(a + 1, self._count)
        }
        seed = secrets.randbits(62)
        tables, randomly = prepared.tables, prepared.random_placement
        for number in range(self._count):
            reading, report = os.pipe()
            process = os.fork()
            if process == 0:
                os.close(reading)
                streams = _streams_of(number, pairs)
                log = str(self._folder / f"rank-{number}.log") if number else None
                own = self._folder / str(number)
                own.mkdir()
                start = rank.Start(number, streams, report, log, str(own), tables, seed, randomly)
                rank.become(start, options)
            os.close(report)
            self._rest[reading] = b""
            self._numbers[process] = number
        for ends in pairs.values():
            for end in ends:
                end.close()

    def wait(self) -> int:
        """Waits for all ranks, ends them together if need be; the exit status of the run."""
        try:
            deadline = None
            while len(self._status) < self._count:
                self._listen(0.2 if self._status or deadline else 1.0)
                self._collect()
                failed = any(status != 0 for status in self._status.values())
                if failed and deadline is None:
                    deadline = time.monotonic() + _LAST_WORDS_S
                if deadline is not None and time.monotonic() > deadline:
                    break
        except KeyboardInterrupt:
            self._end_all()
            complain("interrupted")
            return _INTERRUPTED
        self._listen(0.0)
        missing = len(self._status) < self._count
        ended = dict(self._status)
        self._end_all()
        self._listen(0.0)
        self.records = sorted(
            (line for line in self._told if line["event"] == "steps"), key=lambda line: line["rank"]
        )
        return self._verdict(ended, missing)

    def _verdict(self, ended: dict[int, int], missing: bool) -> int:
        """The exit status; says what rank 0 could not say itself."""
        if not missing and not any(ended.values()):
            return 0
        for line in self._told:
            if line["event"] == "refusal":
                complain(line["message"])
                return 1
        for line in self._told:
            if line["event"] == "memory":
                complain(_no_memory(line))
                return 1
        for number, status in sorted(ended.items()):
            if status < 0:
                complain(self._death(number, status))
                return 1
        errors = [line for line in self._told if line["event"] == "error"]
        if errors and all(line["rank"] for line in errors):
            first = errors[0]
            complain(f"rank {first['rank']} alone failed: {first['message']}" + self._log(first))
        elif not errors and all(line["event"] != "lost" for line in self._told):
            return next((status for status in ended.values() if status), 1)
        return next((status for status in ended.values() if status > 0), 1)

    def _death(self, number: int, status: int) -> str:
        name = signal.Signals(-status).name
        hint = _HINTS.get(name, "")
        text = f"rank {number} was ended by {name}{hint}; its tensors are lost, so the run ends"
        return text + self._log({"rank": number})

    def _log(self, line: dict[str, Any]) -> str:
        path = self._folder / f"rank-{line['rank']}.log"
        if not path.exists():
            return ""
        lines = path.read_text(errors="replace").splitlines()[-_LAST_LINES:]
        return "".join(f"\n    {text}" for text in lines)

    def _listen(self, timeout_s: float) -> None:
        """Takes what ranks tell; a rank that has ended closes its pipe."""
        if not self._rest:
            time.sleep(min(timeout_s, 0.05))
            return
        for pipe in select.select(list(self._rest), [], [], timeout_s)[0]:
            data = os.read(pipe, 1 << 20)
            if not data:
                os.close(pipe)
                del self._rest[pipe]
                continue
            *lines, self._rest[pipe] = (self._rest[pipe] + data).split(b"\n")
            self._told.extend(json.loads(line) for line in lines)

    def _collect(self) -> None:
        for process, number in self._numbers.items():
            if number in self._status:
                continue
            found, status = os.waitpid(process, os.WNOHANG)
            if found:
                self._status[number] = os.waitstatus_to_exitcode(status)

    def _end_all(self) -> None:
        for how, patience_s in ((signal.SIGTERM, 2.0), (signal.SIGKILL, 5.0)):
            end = time.monotonic() + patience_s
            for process, number in self._numbers.items():
                if number not in self._status:
                    os.kill(process, how)
            while len(self._status) < self._count and time.monotonic() < end:
                self._collect()
                time.sleep(0.02)


def _streams_of(number: int, pairs: Any) -> dict[int, socket.socket]:
    """This rank's ends of the streams; the others are closed."""
    streams = {}
    for (a, b), (first, second) in pairs.items():
        for mine, other, end in ((a, b, first), (b, a, second)):
            if mine == number:
                streams[other] = end
            else:
                end.close()
    return streams


def _no_memory(line: dict[str, Any]) -> str:
    return (
        f"rank {line['rank']} was refused memory ({line['message']}): give more --memory, or leave "
        "more of it free, as --margin 150 does"
    )


__all__ = ["Ranks", "Refusal", "run"]

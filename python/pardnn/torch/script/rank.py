"""One rank: a process that runs the whole script and computes its part."""

from __future__ import annotations

import atexit
import ctypes
import faulthandler
import hashlib
import io
import json
import os
import random
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.process import current_process
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch

from pardnn import script as user_script
from pardnn.errors import Refusal
from pardnn.launch import RunOptions
from pardnn.torch.script import (
    files,
    leaving,
    limits,
    parameters,
    refusals,
    saving,
    steps,
    updates,
)
from pardnn.torch.script.calls import Calls
from pardnn.torch.script.links import Links, LostRankError
from pardnn.torch.script.ranks import RankMode
from pardnn.torch.script.tables import Tables

_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG
_INTERRUPTED = 128 + int(signal.SIGINT)


@dataclass(frozen=True)
class Start:
    """What a rank begins with.

    ``streams``: to each other rank. ``report``: where it tells the launcher things, one JSON object
    a line. ``log``: a file for its error output (rank 0 has the terminal). ``folder``: of its own.
    ``seed``: of Python's and numpy's random numbers, which are different in every run of Python.
    ``random_placement``: a seed with which every op goes to any rank, None in earnest.
    """

    rank: int
    streams: Mapping[int, socket.socket]
    report: int
    log: str | None
    folder: str
    tables: Tables
    seed: int
    random_placement: int | None = None


def become(start: Start, options: RunOptions) -> NoReturn:
    """Turns this process, which was forked for it, into a rank; it ends with the script."""
    tell = _teller(start.report, start.rank)
    try:
        _settle_down(start)
        status = _run(start, options, tell)
    except BaseException:  # noqa: BLE001  nothing may return into the launcher's code
        tell("error", message=traceback.format_exc())
        status = 1
    leave(status)


def _run(start: Start, options: RunOptions, tell: Callable[..., None]) -> int:
    torch.set_num_threads(options.threads)
    random.seed(start.seed)
    np.random.seed(start.seed % (1 << 32))
    limit = options.memory[start.rank] if options.limited else None
    memory = limits.Memory(limit)
    if options.devices == 1:
        memory.begin()
        return _script(options, tell, None)
    links = Links(start.rank, start.streams)
    os.register_at_fork(after_in_child=links.abandon)
    calls = Calls()
    calls.install()
    chooser = None
    if start.random_placement is not None:
        chooser = any_rank(start.random_placement, options.devices)
    mode = RankMode(links, options.devices, start.tables, calls, memory, chooser)
    counted = steps.Steps(links, memory)

    def ended() -> None:
        counted.ended()
        mode.forget()

    steps.at_each_end(ended)
    written = install_all(mode, start, tell, memory)
    with mode:
        status = _script(options, tell, links)
    written.alone()
    if status == 0:
        try:
            mode.meet()
            mode.agree(lambda: None)
            links.close()
        except LostRankError as lost:
            tell("lost", message=str(lost))
            return 1
        tell("steps", records=counted.records(), ops=mode.ops)
    return status


def install_all(
    mode: RankMode, start: Start, tell: Callable[..., None], memory: limits.Memory
) -> files.Files:
    """Everything of torch and Python that a script may use and that has to know of ranks."""
    leaving.install(mode.fetch)
    parameters.install(mode.adopt)
    if start.random_placement is None:
        updates.install(mode)
    saving.install(start.rank, mode.fetch, mode.gather, mode.agree, memory.mapped)
    written = files.Files(start.rank, mode.agree, mode.meet, start.seed, start.folder)
    written.install()

    def end(message: str) -> None:
        tell("refusal", message=message)
        leave(1)

    def say(message: str) -> None:
        if start.rank == 0:
            sys.stderr.write(f"pardnn run: {message}\n")

    refusals.install(end, say)
    return written


def _script(options: RunOptions, tell: Callable[..., None], links: Links | None) -> int:
    """Runs the script; what it raises is shown or told, once."""
    try:
        return user_script.run_as_main(options.script, options.arguments)
    except SystemExit as error:
        return user_script.status_of(error)
    except Refusal as refusal:
        tell("refusal", message=with_line(refusal, options.script))
        return refusal.status
    except LostRankError as lost:
        tell("lost", message=str(lost))
        return 1
    except Exception as error:  # noqa: BLE001  the script may raise anything
        if limits.is_refusal(error):
            tell("memory", message=_short(error))
            return 1
        tell("error", message=_short(error))
        user_script.show(error)
        return 1


def with_line(refusal: Refusal, script: Path) -> str:
    """The message with the last line of the user's own files that led to it, if one did."""
    folder = str(script.resolve().parent)
    found = ""
    for frame in traceback.extract_tb(refusal.__traceback__):
        path = Path(frame.filename)
        if str(path.resolve()).startswith(folder) and "site-packages" not in path.parts:
            found = f"{frame.filename}:{frame.lineno}: "
    return found + str(refusal)


def _short(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:500]


def _settle_down(start: Start) -> None:
    """Signals, streams and memory as a rank has them."""
    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    os.register_at_fork(
        after_in_child=lambda: ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    )
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the launcher ends all ranks together
    signal.signal(signal.SIGTERM, lambda *_: leave(_INTERRUPTED))
    if start.rank:
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(null, 1)
        sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), line_buffering=True)
    if start.log is not None:
        log = os.open(start.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(log, 2)
    faulthandler.enable(file=sys.__stderr__ or 2)
    use_folder(start.folder)


def use_folder(folder: str) -> None:
    """Makes what multiprocessing writes for itself lie in a folder of this process alone."""
    current_process()._config["tempdir"] = folder  # type: ignore[attr-defined]


def _teller(report: int, rank: int) -> Callable[..., None]:
    def tell(event: str, **more: Any) -> None:
        line = json.dumps({"rank": rank, "event": event, **more}) + "\n"
        os.write(report, line.encode())

    return tell


def any_rank(seed: int, ranks: int) -> Callable[[int], int]:
    """A rank for each number, as good as random and the same in every process."""

    def choose(number: int) -> int:
        digest = hashlib.blake2b(f"{seed}.{number}".encode(), digest_size=4).digest()
        return int.from_bytes(digest, "little") % ranks

    return choose


def leave(status: int) -> NoReturn:
    """Ends the process as Python does, without the rest of the launcher's program."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join(timeout=5.0)
    if status != _INTERRUPTED:
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            status = status or 120  # as Python ends when its last output is lost
    os._exit(status)

"""What reading a file may cost a process that does nothing else: memory and time by its size."""

from __future__ import annotations

import os
import resource
import signal
from pathlib import Path
from types import FrameType

from pardnn.readers.errors import ReadError

BYTES_PER_BYTE = 64
BYTES_ALWAYS = 256 << 20
SECONDS_PER_MB = 2
# Starting Python and the library of a format.
SECONDS_ALWAYS = 10
_SECONDS_TO_SAY_SO = 5


def limit(size: int, name: str) -> None:
    """Holds this process to the bounds for a file of ``size`` bytes.

    Beyond them there is a MemoryError, or ReadError; code that hears of neither is ended.
    """
    # Where numpy is loaded after this, a library below it would take memory for each core.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    most_bytes = _used_bytes() + BYTES_PER_BYTE * size + BYTES_ALWAYS
    _lower(resource.RLIMIT_DATA, most_bytes, most_bytes)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    used = usage.ru_utime + usage.ru_stime
    seconds = int(used + SECONDS_ALWAYS + SECONDS_PER_MB * size / 1e6)

    def refuse(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGXCPU, signal.SIG_IGN)  # it would come again each second
        raise ReadError(name, f"no end after {seconds} s", "a file that is read sooner")

    signal.signal(signal.SIGXCPU, refuse)
    _lower(resource.RLIMIT_CPU, seconds, seconds + _SECONDS_TO_SAY_SO)


def _lower(what: int, soft: int, hard: int) -> None:
    """Lowers a limit; what the process was started with stays where it is lower already."""
    old_soft, old_hard = resource.getrlimit(what)
    infinite = resource.RLIM_INFINITY
    new_hard = hard if old_hard == infinite else min(hard, old_hard)
    new_soft = soft if old_soft == infinite else min(soft, old_soft)
    resource.setrlimit(what, (min(new_soft, new_hard), new_hard))


def _used_bytes() -> int:
    """Bytes of data that the process has mapped by now."""
    pages = Path("/proc/self/statm").read_text().split()[5]
    return int(pages) * resource.getpagesize()

"""The memory of this process: what it has, what its allocator keeps, what the system allows."""

from __future__ import annotations

import ctypes
import gc
import resource
from collections.abc import Callable
from pathlib import Path


class _MallInfo(ctypes.Structure):
    """glibc's struct mallinfo2."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    ]


def _mallinfo() -> Callable[[], _MallInfo] | None:
    try:
        found = ctypes.CDLL(None).mallinfo2
    except AttributeError:  # glibc before 2.33
        return None
    found.restype = _MallInfo
    return found


_info = _mallinfo()
_libc = ctypes.CDLL(None)
_is_glibc = hasattr(_libc, "mallopt")
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _PERTURB, _ARENA_MAX = -1, -3, -6, -8  # of mallopt
_MOST_TRIM, _MOST_MMAP = (1 << 31) - 1, 32 << 20
_LEAST_TRIM, _LEAST_MMAP = 1 << 16, 1 << 16
_LITTLE_TRIM, _MOST_LITTLE_MMAP = 1 << 20, 4 << 20


def bytes_in_use() -> int:
    """Bytes that this process has from malloc; 0 where the C library cannot say."""
    if _info is None:
        return 0
    info = _info()
    return int(info.uordblks + info.hblkhd)


def keep_freed() -> None:
    """Freed memory stays with this process: what the system gives back has to be zeroed again."""
    _set_thresholds(_MOST_MMAP, _MOST_TRIM, fill=0)


def keep_nothing() -> None:
    """What is resident is what is in use: freed memory goes back to the system at once, and new
    memory is filled. Slow.
    """
    _set_thresholds(_LEAST_MMAP, _LEAST_TRIM, fill=1)
    if _is_glibc:
        _libc.malloc_trim(0)


def keep_little(limit: int) -> None:
    """Makes the allocator return freed memory to the system, which counts what it keeps.

    Pieces of a 256th of the limit are mapped one by one; smaller ones leave few gaps.
    """
    if _is_glibc:
        _libc.mallopt(_ARENA_MAX, 1)
    _set_thresholds(keep_little_from(limit), _LITTLE_TRIM, fill=0)


def keep_little_from(limit: int) -> int:
    """The least bytes of a piece that is new memory each time."""
    return min(max(limit // 256, _LEAST_MMAP), _MOST_LITTLE_MMAP)


def _set_thresholds(mmap: int, trim: int, fill: int) -> None:
    if _is_glibc:
        _libc.mallopt(_MMAP_THRESHOLD, mmap)
        _libc.mallopt(_TRIM_THRESHOLD, trim)
        _libc.mallopt(_PERTURB, fill)


def give_back() -> None:
    """Returns to the system what the allocator keeps and nobody uses."""
    gc.collect()
    if _is_glibc:
        _libc.malloc_trim(0)


def allow(nbytes: int) -> None:
    """From now on the system refuses this process more than so many bytes beyond what it has."""
    set_allowed(data_bytes() + nbytes)


def set_allowed(nbytes: int) -> None:
    """From now on the system refuses this process more than so many bytes in all."""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (nbytes, hard))


def data_bytes() -> int:
    """What the system counts of this process."""
    return _status("VmData")["VmData"]


class HighWater:
    """The most memory of its own that this process has had, within ops too, since `reset`."""

    def __init__(self) -> None:
        self._base = _status("Rss")["RssAnon"]

    def reset(self) -> None:
        """From now on."""
        Path("/proc/self/clear_refs").write_text("5")

    def bytes(self) -> int:
        """Beyond what was there when this was made; files that are mapped do not count."""
        found = _status("Rss", "VmHWM")
        return found["VmHWM"] - found["RssFile"] - found["RssShmem"] - self._base


def code_bytes() -> int:
    """Resident bytes of the machine code that this process has generated, as oneDNN does."""
    total, is_code = 0, False
    with Path("/proc/self/smaps").open() as lines:
        for line in lines:
            words = line.split()
            if words[0] == "Rss:":
                total += int(words[1]) * 1024 if is_code else 0
            elif not words[0].endswith(":"):
                is_code = words[1] == "rwxp" and len(words) == 5  # of no file
    return total


def _status(*starts: str) -> dict[str, int]:
    """Bytes of the lines of the process's status that start so."""
    lines = Path("/proc/self/status").read_text().splitlines()
    parts = (line.split() for line in lines if line.startswith(starts))
    return {name.rstrip(":"): int(size) * 1024 for name, size, _ in parts}

"""How many bytes this process has from its C library, and what that keeps of those freed."""

from __future__ import annotations

import ctypes
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
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _PERTURB = -1, -3, -6  # of mallopt
_MOST_TRIM, _MOST_MMAP = (1 << 31) - 1, 32 << 20
_LEAST_TRIM, _LEAST_MMAP = 1 << 16, 1 << 16


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
    if _info is not None:
        ctypes.CDLL(None).malloc_trim(0)


def _set_thresholds(mmap: int, trim: int, fill: int) -> None:
    if _info is not None:  # glibc
        libc = ctypes.CDLL(None)
        libc.mallopt(_MMAP_THRESHOLD, mmap)
        libc.mallopt(_TRIM_THRESHOLD, trim)
        libc.mallopt(_PERTURB, fill)


class HighWater:
    """The most memory of its own that this process has had, within ops too, since `reset`."""

    def __init__(self) -> None:
        self._base = _resident()["RssAnon"]

    def reset(self) -> None:
        """From now on."""
        Path("/proc/self/clear_refs").write_text("5")

    def bytes(self) -> int:
        """Beyond what was there when this was made; files that are mapped do not count."""
        found = _resident()
        return found["VmHWM"] - found["RssFile"] - found["RssShmem"] - self._base


def _resident() -> dict[str, int]:
    lines = Path("/proc/self/status").read_text().splitlines()
    parts = (line.split() for line in lines if line.startswith(("Rss", "VmHWM")))
    return {name.rstrip(":"): int(size) * 1024 for name, size, _ in parts}

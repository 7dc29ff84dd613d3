"""How many bytes this process has from its C library, and what that keeps of those freed."""

from __future__ import annotations

import ctypes
from collections.abc import Callable


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
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of mallopt
_MOST_TRIM, _MOST_MMAP = (1 << 31) - 1, 32 << 20


def bytes_in_use() -> int:
    """Bytes that this process has from malloc; 0 where the C library cannot say."""
    if _info is None:
        return 0
    info = _info()
    return int(info.uordblks + info.hblkhd)


def keep_freed() -> None:
    """Freed memory stays with this process: what the system gives back has to be zeroed again."""
    libc = ctypes.CDLL(None)
    if _info is not None:  # glibc
        libc.mallopt(_MMAP_THRESHOLD, _MOST_MMAP)
        libc.mallopt(_TRIM_THRESHOLD, _MOST_TRIM)

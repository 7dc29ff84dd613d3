"""How many bytes this process has from its C library."""

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


def bytes_in_use() -> int:
    """Bytes that this process has from malloc; 0 where the C library cannot say."""
    if _info is None:
        return 0
    info = _info()
    return int(info.uordblks + info.hblkhd)

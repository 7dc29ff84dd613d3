"""How much memory a rank may take, enforced by the system, and how much it took."""

from __future__ import annotations

import ctypes
import gc
import resource
from pathlib import Path

from pardnn.torch.meter import bytes_in_use

# Of its limit, what a rank needs besides tensors: bytes on their way, tables of ops, gaps, Python.
OWN_BYTES = 16 << 20
_LEAST_MAPPED, _MOST_MAPPED = 64 << 10, 4 << 20
_TRIM, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # of mallopt
_NO_MEMORY = "DefaultCPUAllocator: can't allocate memory"


_libc = ctypes.CDLL(None)


def is_refusal(error: BaseException) -> bool:
    """Whether an exception says that there was no memory."""
    return isinstance(error, MemoryError) or _NO_MEMORY in str(error)


def keep_little(limit: int) -> None:
    """Makes the allocator return freed memory to the system, which counts what it keeps.

    Pieces of a 256th of the limit are mapped one by one; smaller ones leave few gaps.
    """
    threshold = min(max(limit // 256, _LEAST_MAPPED), _MOST_MAPPED)
    for parameter, value in ((_ARENA_MAX, 1), (_MMAP_THRESHOLD, threshold), (_TRIM, 1 << 20)):
        _libc.mallopt(parameter, value)


def give_back() -> None:
    """Returns to the system what the allocator keeps and nobody uses."""
    gc.collect()
    _libc.malloc_trim(0)


class Memory:
    """The memory of one rank from the first parameter on. ``limit``: bytes, None without one."""

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self.peak = 0
        self._base = 0
        self._begun = False

    def begin(self, counted: int = 0) -> None:
        """What is there now does not count, but for so many bytes; from now on the limit holds."""
        if self._begun:
            return
        self._begun = True
        if self.limit is not None:
            keep_little(self.limit)
        give_back()
        self._base = bytes_in_use() - counted
        if self.limit is not None:
            self._set(_data_bytes() - counted + self.limit)

    def sample(self) -> None:
        """Takes note of what is in use."""
        if self._begun:
            self.peak = max(self.peak, bytes_in_use() - self._base)

    def take_peak(self) -> int:
        """The most since the last call."""
        self.sample()
        peak, self.peak = self.peak, 0
        return peak

    def mapped(self, nbytes: int) -> None:
        """A file was mapped: the system counts it, and it is no memory."""
        soft, _ = resource.getrlimit(resource.RLIMIT_DATA)
        if self._begun and soft != resource.RLIM_INFINITY:
            self._set(soft + nbytes)

    def _set(self, nbytes: int) -> None:
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (nbytes, hard))


def _data_bytes() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) * 1024
    raise OSError("/proc/self/status has no line VmData")

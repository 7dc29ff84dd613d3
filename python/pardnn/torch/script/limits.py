"""How much memory a rank may take, enforced by the system, and how much it took."""

from __future__ import annotations

import resource

import torch

from pardnn.torch.meter import allow, bytes_in_use, give_back, keep_little, set_allowed

# Of its limit, what a rank needs besides tensors: bytes on their way, tables of ops, gaps, Python.
OWN_BYTES = 16 << 20
# Memory is looked at when so much was made since it was, or this part of the peak so far.
_LEAST_BYTES, _PART = 64 << 10, 32
_NO_MEMORY = "DefaultCPUAllocator: can't allocate memory"


def is_refusal(error: BaseException) -> bool:
    """Whether an exception says that there was no memory."""
    return isinstance(error, MemoryError) or _NO_MEMORY in str(error)


class Memory:
    """The memory of one rank from the first parameter on. ``limit``: bytes, None without one.

    ``unseen``: bytes made since it was looked at; `sample` when there are ``grain`` of them.
    """

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self.peak = 0
        self.unseen = 0
        self.grain = _LEAST_BYTES
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
            allow(self.limit - counted)

    def sample(self) -> None:
        """Takes note of what is in use."""
        self.unseen = 0
        if self._begun:
            self.peak = max(self.peak, bytes_in_use() - self._base)
            self.grain = max(self.grain, self.peak // _PART)

    def make_room(self, nbytes: int) -> None:
        """Gives back what the allocator keeps if the system would refuse so many bytes now: for
        what cannot be done again when it is refused memory half-way.
        """
        if self.limit is None or not self._begun:
            return
        try:
            torch.empty(nbytes, dtype=torch.uint8)
        except RuntimeError as error:
            if not is_refusal(error):
                raise
            give_back()

    def take_peak(self) -> int:
        """The most since the last call."""
        self.sample()
        peak, self.peak = self.peak, 0
        return peak

    def mapped(self, nbytes: int) -> None:
        """A file was mapped: the system counts it, and it is no memory."""
        soft, _ = resource.getrlimit(resource.RLIMIT_DATA)
        if self._begun and soft != resource.RLIM_INFINITY:
            set_allowed(soft + nbytes)

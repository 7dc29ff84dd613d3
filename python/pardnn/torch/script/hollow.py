"""Hollow tensors, and where every tensor is at home.

A hollow tensor is an ordinary ``torch.Tensor`` whose storage lies in a mapping that nobody may
read: views, autograd, hooks and copies of modules work as ever, it costs no memory, and a read that
was forgotten is a crash with a line of Python under it, never a wrong number.

A tensor's home is noted on its *storage*, so views, ``.data``, ``detach()`` and what autograd
saves all have it. A storage without one is *replicated*: every rank computes it.
"""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import torch

from pardnn.torch.script import compat
from pardnn.torch.sparse import parts_of

_SPAN_BYTES = 1 << 44
_GRAIN_BYTES = 64
_NOT_READABLE = 0  # PROT_NONE
_MAP_NORESERVE = 0x4000


class Home:
    """Where a storage's values are.

    ``owner``: the rank, in a scout the unit. ``parameter``: its number by order of creation, None
    for anything else. ``copies``: what other ranks received of it, by what was asked for.
    ``uses``: how often other ranks will still read it in this step, where the plan knows.
    ``life``: whatever wants to know that the storage is gone.
    """

    # Most homes never have any of these.
    copies: dict[Any, Any] | None = None
    uses: dict[int, int] | None = None
    life: Any = None

    def __init__(self, owner: int, parameter: int | None = None) -> None:
        self.owner = owner
        self.parameter = parameter


def home_of(tensor: torch.Tensor) -> Home | None:
    """The tensor's home, None if it is replicated."""
    try:
        return getattr(tensor.untyped_storage(), "home", None)
    except NotImplementedError:  # it is sparse
        indices, values = homes_of(tensor)
        return indices if values is None else values


def homes_of(tensor: torch.Tensor) -> list[Home | None]:
    """The homes of what it consists of."""
    return [getattr(part.untyped_storage(), "home", None) for part in parts_of(tensor)]


def settle(tensor: torch.Tensor, home: Home) -> None:
    """Gives the tensor's storage a home."""
    tensor.untyped_storage().home = home


def hollow(
    size: tuple[int, ...],
    stride: tuple[int, ...],
    dtype: torch.dtype,
    offset: int,
    home: Home,
    nbytes: int,
) -> torch.Tensor:
    """A tensor of this shape, stride and offset (in elements) in a storage without memory."""
    storage = compat.storage_at(_addresses.take(nbytes), nbytes)
    storage.home = home
    # The first takes half the time of the second.
    default = dtype is torch.get_default_dtype()
    tensor = torch.Tensor() if default else torch.empty(0, dtype=dtype)
    tensor.set_(storage, offset, size, stride)
    return tensor


def hollow_like(tensor: torch.Tensor, home: Home) -> torch.Tensor:
    """A hollow tensor of the same shape, in a storage of the same size."""
    return hollow(
        tuple(tensor.shape),
        tensor.stride(),
        tensor.dtype,
        tensor.storage_offset(),
        home,
        tensor.untyped_storage().nbytes(),
    )


def image_of(storage: torch.UntypedStorage) -> torch.Tensor:
    """All bytes of a storage as a tensor: uint8 of shape (bytes,)."""
    image = torch.empty(0, dtype=torch.uint8)
    image.set_(storage, 0, (storage.nbytes(),), (1,))
    return image


def view_in(storage: torch.UntypedStorage, like: torch.Tensor) -> torch.Tensor:
    """The tensor that lies in this storage as ``like`` lies in its own."""
    view = torch.empty(0, dtype=like.dtype)
    view.set_(storage, like.storage_offset(), like.shape, like.stride())
    return view


class _Addresses:
    """Hands out addresses of a mapping without memory; they repeat after some terabytes."""

    def __init__(self) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
        base = libc.mmap(None, _SPAN_BYTES, _NOT_READABLE, flags, -1, 0)
        if base in (None, ctypes.c_void_p(-1).value):
            raise OSError(ctypes.get_errno(), "no address space for tensors without memory")
        self._base = base
        self._next = 0

    def take(self, nbytes: int) -> int:
        rounded = (nbytes + _GRAIN_BYTES) // _GRAIN_BYTES * _GRAIN_BYTES
        if self._next + rounded > _SPAN_BYTES:
            self._next = 0
        address = self._base + self._next
        self._next += rounded
        return address


_addresses = _Addresses()

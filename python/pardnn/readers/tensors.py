"""Shapes and element types of tensors, any part of which may be unknown."""

from __future__ import annotations

from dataclasses import dataclass

from pardnn.readers.errors import ReadError
from pardnn.readers.values import MOST

Dims = tuple[int | None, ...]


@dataclass(frozen=True)
class Tensor:
    """``bits`` of an element and ``dims``; None where not known. A dimension is never negative."""

    bits: int | None = None
    dims: Dims | None = None

    @property
    def elements(self) -> int | None:
        """How many there are, None where that is not known."""
        if self.dims is None:
            return None
        count = 1
        for dim in self.dims:
            if dim is None:
                return None
            count *= dim
        return count

    def bytes_at(self, place: str) -> int | None:
        """Bytes, None where not known. Raises ReadError beyond 2^62."""
        elements = self.elements
        if elements is None or self.bits is None:
            return None
        found = (elements * self.bits + 7) // 8
        if found > MOST:
            raise ReadError(
                place, f"a tensor of the shape {shown(self.dims)}", "less than 2^62 bytes"
            )
        return found


def shown(dims: Dims | None) -> str:
    """A shape for a message."""
    if dims is None:
        return "?"
    inner = ", ".join("?" if dim is None else str(dim) for dim in dims[:8])
    return f"[{inner}{', …' if len(dims) > 8 else ''}]"

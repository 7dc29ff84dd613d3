"""The outermost fields of a protobuf message, without knowing the message."""

from __future__ import annotations

from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_FIXED = {FIXED64: 8, FIXED32: 4}
_MOST_FIELDS = 1_000_000


def fields(data: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Number, wire type, begin and end of each value; ends at what is no such field.

    The last one is (0, 0, end, end) where the whole of ``data`` is made of fields.
    """
    at, size = 0, len(data)
    for _ in range(_MOST_FIELDS):
        if at == size:
            yield 0, 0, at, at
            return
        key, begin = _varint(data, at)
        number, wire = key >> 3, key & 7
        if begin < 0 or number == 0:
            return
        if wire == VARINT:
            _, end = _varint(data, begin)
        elif wire == BYTES:
            length, begin = _varint(data, begin)
            end = begin + length if begin >= 0 else -1
        elif wire in _FIXED:
            end = begin + _FIXED[wire]
        else:
            return
        if end < 0 or end > size:
            return
        yield number, wire, begin, end
        at = end


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number and where it ends, -1 where none does."""
    value = 0
    for place, byte in enumerate(data[at : at + 10]):
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return value, at + place + 1
    return 0, -1

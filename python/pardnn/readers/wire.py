"""The outermost fields of a protobuf message, without knowing the message."""

from __future__ import annotations

from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_FIXED = {FIXED64: 8, FIXED32: 4}
_MOST_FIELDS = 1_000_000


def fields(
    data: bytes, begin: int = 0, end: int | None = None
) -> Iterator[tuple[int, int, int, int]]:
    """Number, wire type, begin and end of each value of a part; ends at what is no such field.

    The last one is (0, 0, end, end) where the whole part is made of fields.
    """
    at, size = begin, len(data) if end is None else end
    for _ in range(_MOST_FIELDS):
        if at == size:
            yield 0, 0, at, at
            return
        key, first = varint(data, at)
        number, wire = key >> 3, key & 7
        if first < 0 or number == 0:
            return
        if wire == VARINT:
            _, last = varint(data, first)
        elif wire == BYTES:
            length, first = varint(data, first)
            last = first + length if first >= 0 else -1
        elif wire in _FIXED:
            last = first + _FIXED[wire]
        else:
            return
        if last < 0 or last > size:
            return
        yield number, wire, first, last
        at = last


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A number and where it ends, -1 where none does."""
    value = 0
    for place, byte in enumerate(data[at : at + 10]):
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return value, at + place + 1
    return 0, -1

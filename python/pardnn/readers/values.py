"""Numbers out of files, checked: what is no quantity is refused where it stands."""

from __future__ import annotations

import math

from pardnn.readers.errors import ReadError, quoted

MOST = (1 << 62) - 1
NS_PER_MS = 1_000_000


def number(value: object, place: str, what: str) -> float:
    """A finite number of at least 0."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            found = float(value)
        except OverflowError:
            found = math.inf
        if math.isfinite(found) and found >= 0:
            return found
    raise ReadError(place, f"{what} {quoted(value)}", "a finite number of at least 0")


def ns_of_ms(value: object, place: str, what: str) -> int:
    """Nanoseconds of a time in milliseconds."""
    return _whole(round(number(value, place, what) * NS_PER_MS), place, what, "2^62 ns")


def bytes_of(value: object, place: str, what: str) -> int:
    """Bytes of a size; a part of a byte counts as one."""
    return _whole(math.ceil(number(value, place, what)), place, what, "2^62 bytes")


def integer(value: object, place: str, what: str) -> int:
    """A whole number, as it is."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ReadError(place, f"{what} {quoted(value)}", "a whole number")


def _whole(found: int, place: str, what: str, limit: str) -> int:
    if found > MOST:
        raise ReadError(place, f"{what} {found}", f"less than {limit}")
    return found


def if_possible(found: int | None) -> int | None:
    """A sum or product for a graph; None where it is unknown or beyond what a graph may hold."""
    return None if found is None or found > MOST else found


def text_of(value: object) -> str:
    """A name as text that can be written: JSON may hold halves of characters."""
    return str(value).encode("utf-8", "replace").decode("utf-8")


def decimal(text: str, place: str, what: str) -> float:
    """A finite number of at least 0, out of text."""
    try:
        return number(float(text), place, what)
    except ValueError:
        raise ReadError(place, f"{what} {quoted(text)}", "a number") from None

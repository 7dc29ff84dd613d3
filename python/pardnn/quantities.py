"""Sizes as people write them: ``700MiB``, ``1.5GB``, ``4096``."""

from __future__ import annotations

import re
from fractions import Fraction

_UNITS = {
    "": 1,
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)")


def parse_bytes(text: str) -> int:
    """Bytes of a size such as ``700MiB``. Raises ValueError that says what was expected."""
    found = _SIZE.fullmatch(text.strip())
    scale = _UNITS.get(found[2]) if found else None
    value = Fraction(found[1]) * scale if found and scale else None
    if value is None or value.denominator != 1:
        raise ValueError(
            f"'{text}' is not a size; expected whole bytes such as 700MiB, 1.5GiB or 2GB"
        )
    return int(value)


def show_bytes(size: float) -> str:
    """A size for people: ``1.5 GiB``."""
    for unit, scale in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= scale:
            return f"{size / scale:.1f} {unit}"
    return f"{size:.0f} bytes"

"""Times and sizes out of attributes: which names mean what, and in which unit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from pardnn.readers.errors import ReadError, quoted
from pardnn.readers.values import MOST

# Names without case, `-` and `_`, in the order in which they are believed.
TIMES = (
    *("duration", "time", "runtime", "latency", "computetime", "forwardcomputetime"),
    *("cost", "weight"),
)
SIZES = ("bytes", "size", "outputsize", "activationsize", "volume", "data", "cost", "weight")
# Attributes that say how strongly a layout pulls, or what a thing costs: their unit is anybody's.
UNITLESS = {"weight", "cost"}
MEMORY = ("parametersize", "parameters", "memory")
TYPES = ("op", "type", "optype")
KEPT = frozenset((*TIMES, *SIZES, *MEMORY, *TYPES, "label"))
_KNOWN_UNITS = {"forwardcomputetime": "ms", "computetime": "ms"}
_NS = {"ns": 1, "us": 1000, "µs": 1000, "ms": 1_000_000, "s": 1_000_000_000}
_BYTES = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9}
_BYTES |= {"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}
_QUANTITY = re.compile(
    r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)((?:[eE][-+]?[0-9]{1,3})?)\s*([a-zA-Zµ]*)\s*"
)
_IN_LABEL = re.compile(r"([A-Za-z_]{1,40})[=:] ?([0-9][0-9.eE+-]{0,40} ?[A-Za-zµ]{0,3})")


@lru_cache(1000)
def plain(name: str) -> str:
    """A name of an attribute without case and without what joins its words."""
    return re.sub(r"[-_ ]", "", name).lower()


def stated(attributes: Mapping[str, str]) -> dict[str, str]:
    """Attributes, with what a label says as name=value where nothing else does."""
    found = dict(attributes)
    if "label" in attributes:
        for name, value in _IN_LABEL.findall(attributes["label"][:2000]):
            found.setdefault(plain(name), value)
    return found


def time_ns(attributes: Mapping[str, str], place: object) -> tuple[int | None, bool]:
    """Nanoseconds that an op takes, None where nothing says it; whether the unit was assumed."""
    for name in TIMES:
        if name in attributes:
            return _parse(attributes[name], _NS, _KNOWN_UNITS.get(name), "us", place, name)
    return None, False


def size_bytes(
    attributes: Mapping[str, str], place: object, bytes_per_unit: int
) -> tuple[int | None, bool]:
    """Bytes of a tensor, None where nothing says it; whether they are a unitless weight."""
    for name in SIZES:
        if name in attributes:
            found, assumed = _parse(attributes[name], _BYTES, None, "b", place, name)
            if assumed and name in UNITLESS and found is not None:
                return _bounded(found * bytes_per_unit, place, name), True
            return found, False
    return None, False


def memory_bytes(attributes: Mapping[str, str], place: object) -> int:
    """Bytes that stay with an op, 0 where nothing says so."""
    for name in MEMORY:
        if name in attributes:
            return _parse(attributes[name], _BYTES, None, "b", place, name)[0] or 0
    return 0


def _parse(
    text: str, units: Mapping[str, int], known: str | None, assumed: str, place: object, name: str
) -> tuple[int | None, bool]:
    found = _QUANTITY.fullmatch(text[:100])
    unit = found.group(3) if found else ""
    if unit not in units:
        unit = unit.lower()
    if found is None or (unit and unit not in units):
        raise ReadError(
            str(place), f"{name} {quoted(text)}", "a number of at least 0, with a unit or not"
        )
    factor = units[unit or known or assumed]
    value = float(found.group(1) + found.group(2)) * factor
    return _bounded(value, place, name), not unit and known is None


def _bounded(value: float, place: object, name: str) -> int:
    if not value <= MOST:
        raise ReadError(str(place), f"{name} {value:g}", "less than 2^62")
    return round(value)

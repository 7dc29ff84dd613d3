"""Device strings of all ages: normalised, merged, and compared."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields

from pardnn.readers.tensorflow.nodes import Node

_PART = re.compile(r"(job|replica|task|device):([^/]+)|(cpu|gpu|tpu):([^/]+)", re.IGNORECASE)


@dataclass(frozen=True)
class Device:
    """What a device string fixes; None for what it leaves open."""

    job: str | None = None
    replica: str | None = None
    task: str | None = None
    type: str | None = None
    index: str | None = None

    @classmethod
    def parse(cls, text: str) -> Device:
        """'/job:w/task:0/device:GPU:0', '/gpu:0', 'GPU:0', '/device:GPU:*' and their like.

        Raises ValueError for what is no device.
        """
        found: dict[str, str] = {}
        for part in text.strip("/").split("/") if text else ():
            match = _PART.fullmatch(part)
            if match is None:
                raise ValueError(f"'{text}' is no device; expected one such as /job:w/task:0/GPU:1")
            name, value = (match[1] or "device").lower(), match[2] or f"{match[3]}:{match[4]}"
            if name == "device":
                kind, _, index = value.partition(":")
                found |= {"type": kind.upper(), "index": index}
            else:
                found[name] = value
        return cls(**{name: value for name, value in found.items() if value not in ("*", "")})

    def merged(self, other: Device) -> Device | None:
        """What both fix together; None where they contradict each other."""
        values = {}
        for field in fields(self):
            mine, theirs = getattr(self, field.name), getattr(other, field.name)
            if mine is not None and theirs is not None and mine != theirs:
                return None
            values[field.name] = theirs if mine is None else mine
        return Device(**values)

    def __str__(self) -> str:
        parts = [f"{n}:{v}" for n in ("job", "replica", "task") if (v := getattr(self, n))]
        if self.type:
            parts.append(f"device:{self.type}:{self.index or '*'}")
        return "/" + "/".join(parts)


def distinct(texts: Iterable[str]) -> list[Device]:
    """The devices that these strings mean: one that is a part of another is that other.

    Strings that are no devices are left out.
    """
    found: list[Device] = []
    for text in dict.fromkeys(texts):
        try:
            device = Device.parse(text)
        except ValueError:
            continue
        for number, known in enumerate(found):
            whole = known.merged(device)
            if whole is not None:
                found[number] = whole
                break
        else:
            found.append(device)
    return [device for device in found if device != Device()]


def notes(nodes: Iterable[Node]) -> list[str]:
    """A sentence about the devices that nodes name: they are hints, not pins."""
    named = [node.device for node in nodes if node.device]
    devices = distinct(named)
    if not devices:
        return []
    shown = ", ".join(map(str, devices[:4])) + (", …" if len(devices) > 4 else "")
    return [f"{len(named)} nodes name devices ({shown}), which do not bind the plan"]

"""What a look ahead saw of one step: its ops, the memory they made, and when that was let go."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pardnn.torch.script.calls import Key


@dataclass
class OpSeen:
    """One op.

    ``unit``: what it goes with, see Seen. ``phase``: 'f', 'b' or 'u'. ``reads``, ``writes``:
    numbers of memories. ``makes``: of each memory it made, its number and which result it is, None
    for a part of a sparse one.
    ``shared``: (number, bytes) of what every rank has and this op reads. ``kind``: its place in
    ``Seen.costs_ns``.
    """

    name: str
    unit: int
    phase: str
    key: Key | None
    kind: int
    reads: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()
    makes: tuple[tuple[int, int | None], ...] = ()
    shared: tuple[tuple[int, int], ...] = ()


@dataclass
class Memory:
    """One storage: its unit and bytes, the numbers of the ops at which it came and went.

    ``parameter``: its number by creation, None for anything else. ``gone``: None while it lives.
    """

    unit: int
    nbytes: int
    born: int
    parameter: int | None = None
    gone: int | None = None


@dataclass
class Seen:
    """Ops, memories, and the first and last op of a step.

    A *unit* is what the plan places as a whole: a parameter with all that follows it, or all ops
    of one key with their backward. ``units``: what each is. ``whole``: a second step was seen, so
    state that an optimizer makes in its first one is there. ``overheads``: see `overheads.py`.
    """

    ops: list[OpSeen] = field(default_factory=list)
    memories: list[Memory] = field(default_factory=list)
    units: list[Any] = field(default_factory=list)
    costs_ns: list[int] = field(default_factory=list)
    begin: int = 0
    end: int = 0
    whole: bool = False
    parameters: int = 0
    seconds: float = 0.0
    overheads: tuple[float, ...] = ()


class Life:
    """Notes when a storage is let go: it goes with it."""

    __slots__ = ("number", "seen")

    def __init__(self, seen: Seen, number: int) -> None:
        self.seen = seen
        self.number = number

    def __del__(self) -> None:
        self.seen.memories[self.number].gone = len(self.seen.ops)

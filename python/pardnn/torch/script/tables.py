"""The plan as ranks use it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pardnn.torch.script.calls import Key


@dataclass(frozen=True)
class Tables:
    """What ranks know of the plan.

    ``parameters``: rank by number of creation; others go round. ``ops``: rank by key. ``readers``:
    for a key, how often each rank reads the result (by its number) in a step; ``at_once``: those
    of these ranks that read it as it was made. ``parameter_readers``: how often each rank reads a
    parameter between two of its updates.
    """

    parameters: Mapping[int, int] = field(default_factory=dict)
    ops: Mapping[Key, int] = field(default_factory=dict)
    readers: Mapping[Key, Mapping[int, Mapping[int, int]]] = field(default_factory=dict)
    at_once: Mapping[Key, Mapping[int, frozenset[int]]] = field(default_factory=dict)
    parameter_readers: Mapping[int, Mapping[int, int]] = field(default_factory=dict)

"""One op of a step while the step is put together."""

from __future__ import annotations

from dataclasses import dataclass, field

from pardnn.readers.tensorflow.nodes import Tensor


@dataclass(slots=True)
class Op:
    """One op of the graph while it is put together; names are nodes', not yet keys."""

    name: str
    type: str
    members: list[str]
    inputs: list[str | Tensor] = field(default_factory=list)
    """Variables by name, tensors of other ops."""
    controls: dict[str, None] = field(default_factory=dict)
    updates: dict[str, None] = field(default_factory=dict)
    outputs: list[int | str | None] = field(default_factory=list)
    number: dict[Tensor, int] = field(default_factory=dict)
    """Which input each tensor that a member reads has become."""
    every: bool = False
    workspace: int = 0
    flops: int = 0
    moved: int | None = None

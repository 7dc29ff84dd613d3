"""PyTorch: a training step captured, planned, and run over several memory-limited processes.

`compile(model, loss_fn, optimizer, example_batch, devices=3, memory=...)` answers a step to call in
an ordinary loop; `capture` answers the step's graph alone; a model built inside of `deferred()`
never exists whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pardnn.torch.api import Captured, Step, capture, compile
    from pardnn.torch.deferring import deferred

__all__ = ["Captured", "Step", "capture", "compile", "deferred"]


def __getattr__(name: str) -> Any:
    """The public names, imported when they are asked for: torch takes seconds to import."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "deferred":
        from pardnn.torch import deferring

        return deferring.deferred
    from pardnn.torch import api

    return getattr(api, name)

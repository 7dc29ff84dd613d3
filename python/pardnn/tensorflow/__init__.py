"""TensorFlow and Keras: training steps captured, planned, and run over several workers.

`distribute(model, sample_batch, machine)` before `fit` is all a program needs; `capture`, `plan`
and `apply` are its three parts. A script that shall stay as it is runs under `pardnn run` instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pardnn.tensorflow.api import Distributed, TrainingPlan, apply, capture, distribute, plan

__all__ = ["Distributed", "TrainingPlan", "apply", "capture", "distribute", "plan"]


def __getattr__(name: str) -> Any:
    """The public names, imported when they are asked for: TensorFlow takes seconds to import."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pardnn.tensorflow import api

    return getattr(api, name)

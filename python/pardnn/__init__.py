"""Places the ops of a training step on several devices so that each device's memory limit holds.

`Graph` and `Machine` state a problem, `plan` answers it, `simulate` and `check` look at answers.
"""

from pardnn._core import NOT_ALLOWED, Error, Graph, Machine, Plan, algorithms, check, escape_key
from pardnn._core import plan as plan
from pardnn._core import simulate as simulate
from pardnn._core import version as __version__

__all__ = [
    "NOT_ALLOWED",
    "Error",
    "Graph",
    "Machine",
    "Plan",
    "__version__",
    "algorithms",
    "check",
    "escape_key",
    "plan",
    "simulate",
]

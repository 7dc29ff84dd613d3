"""Places the ops of a training step on several devices so that each device's memory limit holds."""

from pardnn._core import version as __version__

__all__ = ["__version__"]

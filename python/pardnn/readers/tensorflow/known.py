"""What is known about tensors, and what rules about them may ask."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from pardnn.readers.tensorflow.nodes import Tensor

Shape = tuple[int | None, ...] | None
Value = np.ndarray[Any, Any]


class Known(Protocol):
    """What a rule may ask about a node's inputs."""

    def shape(self, tensor: Tensor) -> Shape:
        """Dimensions of a tensor."""
        ...

    def value(self, tensor: Tensor) -> Value | None:
        """Elements of a small constant."""
        ...

    def of_variable(self, handle: Tensor) -> Shape:
        """Dimensions of the variable behind a handle."""
        ...

"""Shapes and sizes of the tensors of a model, by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pardnn.readers.content import Content
from pardnn.readers.errors import ReadError, quoted
from pardnn.readers.tensors import Tensor

# Bits of an element by TensorProto.DataType; a text has no size of its own.
BITS = {1: 32, 2: 8, 3: 8, 4: 16, 5: 16, 6: 32, 7: 64, 9: 8, 10: 16, 11: 64, 12: 32, 13: 64}
BITS |= {14: 64, 15: 128, 16: 16, 17: 8, 18: 8, 19: 8, 20: 8, 21: 4, 22: 4, 23: 4, 24: 8}
BITS |= {25: 2, 26: 2, 27: 6, 28: 6}
_FLOATS = {1, 10, 11, 16, 17, 18, 19, 20, 23, 24, 27, 28}


def is_float(data_type: int) -> bool:
    """Whether gradients can exist for tensors of this type."""
    return data_type in _FLOATS


def of_info(info: Any) -> Tensor:
    """What a model says of a tensor that it computes."""
    kind = info.type.tensor_type
    bits = BITS.get(kind.elem_type)
    if not info.type.HasField("tensor_type") or not kind.HasField("shape"):
        return Tensor(bits, None)
    dims = (dim.dim_value if dim.HasField("dim_value") else None for dim in kind.shape.dim)
    return Tensor(bits, tuple(dim if dim is None or dim >= 0 else None for dim in dims))


def of_initializer(tensor: Any, place: str) -> Tensor:
    """A tensor whose value is in the model, or in a file beside it."""
    for dim in tensor.dims:
        if dim < 0:
            raise ReadError(place, f"the dimension {dim}", "one of at least 0")
    return Tensor(BITS.get(tensor.data_type), tuple(tensor.dims))


def of_sparse(tensor: Any, place: str) -> Tensor:
    """Values and indices of a sparse tensor, as bytes."""
    parts = [
        of_initializer(each, place).bytes_at(place) for each in (tensor.values, tensor.indices)
    ]
    known = [each for each in parts if each is not None]
    return Tensor(8, (sum(known),) if len(known) == len(parts) else None)


class ExternalFiles:
    """Files beside a model that hold values of its tensors: looked for, never opened."""

    def __init__(self, content: Content) -> None:
        self._folder = content.path.resolve().parent
        self._name = content.name
        self._seen: dict[str, bool] = {}
        self.count = 0

    def check(self, tensor: Any) -> None:
        """Raises ReadError where the tensor's file would lie outside of the model's folder."""
        if tensor.data_location != 1:
            return
        self.count += 1
        entries = {each.key: each.value for each in tensor.external_data}
        location = entries.get("location", "")
        if location in self._seen:
            return
        place = f"{self._name}: tensor {tensor.name}"
        try:
            file = (self._folder / location).resolve()
            fine = bool(location) and file.is_relative_to(self._folder) and "\0" not in location
            self._seen[location] = fine and file.is_file()
        except (OSError, ValueError, RuntimeError):  # too long, or links in a circle
            fine = False
        if not fine or Path(location).is_absolute():
            expected = "a path inside of the model's folder"
            raise ReadError(place, f"external data in {quoted(location)}", expected)

    def missing(self) -> list[str]:
        """The files that are not there."""
        return [location for location, is_there in self._seen.items() if not is_there]

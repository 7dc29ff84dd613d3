"""Messages through a pipe: objects, and tensors one at a time, with strides and all.

Objects are pickled plainly: multiprocessing's own pickler, once torch is imported, sends handles of
shared memory instead of tensors.
"""

from __future__ import annotations

import os
import pickle
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import torch

from pardnn.torch.nodes import extent_bytes


def send_object(connection: Connection, content: Any) -> None:
    """Sends anything that can be pickled."""
    connection.send_bytes(pickle.dumps(content, protocol=pickle.HIGHEST_PROTOCOL))


def receive_object(connection: Connection) -> Any:
    """What the other side sends next; EOFError when it is gone."""
    return pickle.loads(connection.recv_bytes())


def send(connection: Connection, tensor: torch.Tensor) -> None:
    """Sends a tensor's memory as it lies."""
    tensor = tensor.detach()
    send_object(connection, (tuple(tensor.shape), tensor.stride(), tensor.dtype))
    elements = extent_bytes(tensor) // tensor.element_size()
    left = _bytes_of(tensor.as_strided((elements,), (1,), tensor.storage_offset()))
    while left:
        left = left[os.write(connection.fileno(), left) :]


def receive(connection: Connection) -> torch.Tensor:
    """The tensor that the other side sends next; EOFError when it is gone."""
    shape, stride, dtype = receive_object(connection)
    tensor = torch.empty_strided(shape, stride, dtype=dtype)
    elements = extent_bytes(tensor) // tensor.element_size()
    left = _bytes_of(tensor.as_strided((elements,), (1,)))
    while left:
        count = os.readv(connection.fileno(), [left])
        if count == 0:
            raise EOFError
        left = left[count:]
    return tensor


class Packed(NamedTuple):
    """A small tensor as it travels within an object: torch's own way of pickling takes longer."""

    content: bytes
    shape: tuple[int, ...]
    dtype: torch.dtype

    @staticmethod
    def of(tensor: torch.Tensor) -> Packed:
        """A tensor packed."""
        content = _bytes_of(tensor.detach().contiguous().flatten())
        return Packed(content.tobytes(), tuple(tensor.shape), tensor.dtype)

    def tensor(self) -> torch.Tensor:
        """The tensor again, contiguous."""
        return torch.frombuffer(bytearray(self.content), dtype=self.dtype).view(self.shape)


def _bytes_of(tensor: torch.Tensor) -> memoryview:
    """The memory of a flat tensor."""
    return memoryview(tensor.view(torch.uint8).numpy())

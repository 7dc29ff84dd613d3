"""Messages through a pipe: objects, and tensors one at a time, with strides and all.

Objects are pickled plainly: multiprocessing's own pickler, once torch is imported, sends handles of
shared memory instead of tensors.
"""

from __future__ import annotations

import pickle
from multiprocessing.connection import Connection
from typing import Any

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
    header = (tuple(tensor.shape), tensor.stride(), tensor.dtype)
    send_object(connection, header)
    elements = extent_bytes(tensor) // tensor.element_size()
    image = tensor.as_strided((elements,), (1,), tensor.storage_offset())
    connection.send_bytes(memoryview(image.view(torch.uint8).numpy()))


def receive(connection: Connection) -> torch.Tensor:
    """The tensor that the other side sends next."""
    shape, stride, dtype = receive_object(connection)
    content: Any = bytearray(connection.recv_bytes())
    if not content:
        return torch.empty_strided(shape, stride, dtype=dtype)
    return torch.frombuffer(content, dtype=dtype).as_strided(shape, stride)

"""What a file of TensorFlow's is, told from its first bytes, and its message read whole.

A message in binary form names nothing but numbers, so the fields at its beginning and those inside
them decide; text forms begin with the name of a field, perhaps behind comments. Names of files mean
nothing: text is found under .pb and graphs under .meta.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pardnn
from pardnn.readers.content import Content
from pardnn.readers.errors import ReadError
from pardnn.readers.tensorflow import textproto
from pardnn.readers.tensorflow.messages import message_class

GRAPHS = ("GraphDef", "MetaGraphDef", "SavedModel")
PROFILES = ("RunMetadata", "StepStats")

_TEXT_BEGINS = re.compile(rb"(?:\s|#[^\n]*\n)*+(\w+)\s*[:{<]")
_TEXT_KINDS = {
    **dict.fromkeys((b"node", b"library", b"versions"), "GraphDef"),
    **dict.fromkeys(
        (b"meta_info_def", b"graph_def", b"saver_def", b"collection_def", b"signature_def"),
        "MetaGraphDef",
    ),
    **dict.fromkeys((b"saved_model_schema_version", b"meta_graphs"), "SavedModel"),
    b"step_stats": "RunMetadata",
    b"dev_stats": "StepStats",
}
_NAME = re.compile(rb"[A-Za-z0-9_.][\w.\-/>\\ ]*")
_VARINT, _BYTES = 0, 2
Bytes = bytes | memoryview


def kind_of(data: bytes) -> str | None:
    """Name of the message that a file holds, None where it is none of TensorFlow's."""
    text = _TEXT_BEGINS.match(data[:65536])
    if text is not None:
        return _TEXT_KINDS.get(text[1])
    view = memoryview(data)
    return next((kind for kind, holds in _HOLDS.items() if holds(view)), None)


def load(content: Content, kind: str) -> Any:
    """The message `kind` that a file holds.

    Raises ReadError, with the line where the text form is wrong.
    """
    message = message_class(kind)()
    if _TEXT_BEGINS.match(content.data[:65536]) is not None:
        try:
            textproto.parse(content.text, message)
        except textproto.TextError as error:
            raise pardnn.Error(f"line {error.line}: {error}") from None
        return message
    from google.protobuf.message import DecodeError

    try:
        message.ParseFromString(content.data)
    except DecodeError:
        raise ReadError(
            content.name,
            f"a {kind} that is cut short, nested too deeply or has names that are not UTF-8",
            "a whole one as TensorFlow writes it",
        ) from None
    return message


def _fields(data: Bytes, most: int = 64) -> Iterator[tuple[int, int, Bytes]]:
    """Number, wire type and content of the first fields of a message; stops at what is none."""
    at = 0
    for _ in range(most):
        key, at = _varint(data, at)
        kind = key & 7
        if at <= 0 or key >> 3 == 0:
            return
        start = at
        if kind == _VARINT:
            _, at = _varint(data, at)
        elif kind == _BYTES:
            size, start = _varint(data, at)
            at = start + size if start > 0 else -1
        else:
            at += {1: 8, 5: 4}.get(kind, -at - 1)
        if at <= 0:
            return
        yield key >> 3, kind, data[start:at]
        if at >= len(data):
            return


def _varint(data: Bytes, at: int) -> tuple[int, int]:
    """A number and the place behind it, -1 where there is none."""
    value = shift = 0
    while 0 <= at < len(data) and shift < 64:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
    return 0, -1


def _first(data: Bytes, number: int) -> Bytes | None:
    """Content of the first field with this number, where it is of bytes."""
    for found, kind, content in _fields(data):
        if found == number and kind == _BYTES:
            return content
    return None


def _is_graph(data: Bytes) -> bool:
    """Nodes, each with a name and a type, or a library of functions and versions."""
    numbers = {(number, kind) for number, kind, _ in _fields(data)}
    if not numbers or not numbers <= {(1, _BYTES), (2, _BYTES), (3, _VARINT), (4, _BYTES)}:
        return False
    node = _first(data, 1)
    if node is not None:
        return _is_node(node)
    function = _first(_first(data, 2) or b"", 1)
    signature = _first(function or b"", 1)
    return (2, _BYTES) in numbers and _is_text(_first(signature or b"", 1))


def _is_node(data: Bytes) -> bool:
    return _is_text(_first(data, 1)) and _is_text(_first(data, 2))


def _is_text(data: Bytes | None) -> bool:
    return data is not None and _NAME.fullmatch(data) is not None


def _is_meta_graph(data: Bytes) -> bool:
    if not all(kind == _BYTES and number <= 7 for number, kind, _ in _fields(data)):
        return False
    graph = _first(data, 2)
    return graph is not None and _is_graph(graph)


def _is_saved_model(data: Bytes) -> bool:
    fields = list(_fields(data))
    if not fields or not {(n, k) for n, k, _ in fields} <= {(1, _VARINT), (2, _BYTES)}:
        return False
    graph = _first(data, 2)
    return graph is not None and _is_meta_graph(graph)


def _is_step_stats(data: Bytes) -> bool:
    """Devices, each with a name and nodes that have one too."""
    device = _first(data, 1)
    if device is None or b"/" not in bytes(_first(device, 1) or b"")[:256]:
        return False
    node = _first(device, 2)
    return node is not None and _is_text(_first(node, 1))


def _is_run_metadata(data: Bytes) -> bool:
    steps = _first(data, 1)
    return steps is not None and _is_step_stats(steps)


_HOLDS = {
    "GraphDef": _is_graph,
    "MetaGraphDef": _is_meta_graph,
    "SavedModel": _is_saved_model,
    "RunMetadata": _is_run_metadata,
    "StepStats": _is_step_stats,
}

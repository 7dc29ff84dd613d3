"""ONNX models, of inference and of training, read with the package ``onnx``."""

from __future__ import annotations

from pardnn.readers.content import Content
from pardnn.readers.errors import ReadError
from pardnn.readers.reading import Options, Reading
from pardnn.readers.wire import BYTES, VARINT, fields

NAME = "onnx"
OPTIONS: tuple[str, ...] = ("dims", "shapes")

_GRAPH = 7
# Fields of ModelProto: number and wire type.
_VARINTS = {1, 5}
_TEXTS = {2, 3, 4, 6, 7, 8, 14, 20, 25, 26}


def recognise(content: Content) -> bool:
    """The fields of a model: a version and a graph, and no others than a model has."""
    data = content.data
    if not data or data[0] not in b"\x08\x12\x1a\x3a\x42":
        return False
    seen, last = set(), (-1, -1, -1, -1)
    for last in fields(data):
        number, wire, begin, end = last
        if begin == end == len(data):
            break
        if not (wire == VARINT and number in _VARINTS or wire == BYTES and number in _TEXTS):
            return False
        seen.add(number)
    return last[2] == len(data) and _GRAPH in seen


def read(content: Content, options: Options) -> Reading:
    """The graph of a model."""
    try:
        import onnx  # noqa: F401
    except ImportError:
        raise ReadError(
            content.name, "an ONNX model, and no package onnx", "it here: pip install onnx"
        ) from None
    from pardnn.readers.onnx.build import read_model

    return read_model(content, options)

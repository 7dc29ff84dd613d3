"""The messages of Chakra's et_def.proto, as far as they are read; declared for `protobuf`."""

from __future__ import annotations

from functools import cache
from typing import Any

from pardnn.readers import wire
from pardnn.readers.errors import ReadError

_PACKAGE = "pardnn.readers.chakra"
# Message: fields as `name number type`; a leading * means repeated.
_MESSAGES = {
    "Attribute": "name 1 string, int64_val 9 int64, uint64_val 13 uint64, bool_val 27 bool",
    "Node": "id 1 uint64, name 2 string, type 3 int32, ctrl_deps 4 *uint64, data_deps 5 *uint64, "
    "duration_micros 7 uint64, attr 10 *Attribute",
}


def delimited(data: bytes, name: str) -> list[Any]:
    """The nodes of a file, behind a message about the file. Raises ReadError."""
    from google.protobuf.message import DecodeError

    nodes: list[Any] = []
    at, count, make = 0, 0, _node_class()
    while at < len(data):
        size, begin = wire.varint(data, at)
        if begin < 0 or size > len(data) - begin:
            raise ReadError(f"{name}: byte {at}", "a message that is cut short", "a whole one")
        if count:
            try:
                nodes.append(make.FromString(data[begin : begin + size]))
            except DecodeError:
                raise ReadError(f"{name}: byte {at}", "no message of a node", "one") from None
        at, count = begin + size, count + 1
    return nodes


@cache
def _node_class() -> Any:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field

    file = descriptor_pb2.FileDescriptorProto(
        name="pardnn_chakra.proto", package=_PACKAGE, syntax="proto3"
    )
    for message_name, fields in _MESSAGES.items():
        message = file.message_type.add(name=message_name)
        for text in fields.split(", "):
            name, number, kind = text.split()
            field = message.field.add(name=name, number=int(number))
            field.label = Field.LABEL_REPEATED if kind[0] == "*" else Field.LABEL_OPTIONAL
            kind = kind.lstrip("*")
            if kind in _MESSAGES:
                field.type, field.type_name = Field.TYPE_MESSAGE, f".{_PACKAGE}.{kind}"
            else:
                field.type = Field.Type.Value(f"TYPE_{kind.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.Node"))

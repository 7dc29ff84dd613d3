"""The parts of TensorFlow's protocol buffer messages that are read, declared for `protobuf`.

Names and numbers are those of tensorflow/core/framework/*.proto and tensorflow/core/protobuf/
*.proto; a field that is not declared here is skipped when a file is read.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from pardnn.readers.tensorflow.types import TYPE_NUMBERS

# Message: fields as `name number type`; a leading * means repeated, a leading % a map from strings.
_MESSAGES = {
    "GraphDef": "node 1 *NodeDef, library 2 FunctionDefLibrary, versions 4 VersionDef",
    "VersionDef": "producer 1 int32",
    "NodeDef": "name 1 string, op 2 string, input 3 *string, device 4 string, attr 5 %AttrValue",
    "AttrValue": "list 1 ListValue, s 2 bytes, i 3 int64, f 4 float, b 5 bool, type 6 DataType, "
    "shape 7 TensorShapeProto, tensor 8 TensorProto, func 10 NameAttrList",
    "ListValue": "s 2 *bytes, i 3 *int64, type 6 *DataType, shape 7 *TensorShapeProto, "
    "func 9 *NameAttrList",
    "NameAttrList": "name 1 string, attr 2 %AttrValue",
    "TensorShapeProto": "dim 2 *Dim, unknown_rank 3 bool",
    "Dim": "size 1 int64",
    "TensorProto": "dtype 1 DataType, tensor_shape 2 TensorShapeProto, tensor_content 4 bytes, "
    "float_val 5 *float, int_val 7 *int32, int64_val 10 *int64, bool_val 11 *bool",
    "FunctionDefLibrary": "function 1 *FunctionDef",
    "FunctionDef": "signature 1 OpDef, node_def 3 *NodeDef, ret 4 %string, control_ret 6 %string",
    "OpDef": "name 1 string, input_arg 2 *ArgDef, output_arg 3 *ArgDef",
    "ArgDef": "name 1 string, type 3 DataType, type_attr 4 string, number_attr 5 string, "
    "type_list_attr 6 string",
    "MetaGraphDef": "graph_def 2 GraphDef, collection_def 4 %CollectionDef",
    "CollectionDef": "node_list 1 NodeList, bytes_list 2 BytesList",
    "NodeList": "value 1 *string",
    "BytesList": "value 1 *bytes",
    "SavedModel": "saved_model_schema_version 1 int64, meta_graphs 2 *MetaGraphDef",
    "RunMetadata": "step_stats 1 StepStats",
    "StepStats": "dev_stats 1 *DeviceStepStats",
    "DeviceStepStats": "device 1 string, node_stats 2 *NodeExecStats",
    "NodeExecStats": "node_name 1 string, all_start_micros 2 int64, op_start_rel_micros 3 int64, "
    "op_end_rel_micros 4 int64, all_end_rel_micros 5 int64, output 7 *NodeOutput, "
    "timeline_label 8 string, memory_stats 12 MemoryStats, op_start_rel_nanos 14 int64, "
    "op_end_rel_nanos 15 int64",
    "NodeOutput": "slot 1 int32, tensor_description 3 TensorDescription",
    "TensorDescription": "dtype 1 DataType, shape 2 TensorShapeProto, "
    "allocation_description 4 AllocationDescription",
    "AllocationDescription": "requested_bytes 1 int64, allocated_bytes 2 int64",
    "MemoryStats": "temp_memory_size 1 int64",
}
_PACKAGE = "pardnn.readers.tensorflow"


@cache
def message_class(name: str) -> Any:
    """The class of a message, such as "GraphDef"."""
    from google.protobuf import message_factory

    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"{_PACKAGE}.{name}"))


@cache
def _pool() -> Any:
    from google.protobuf import descriptor_pb2, descriptor_pool

    file = descriptor_pb2.FileDescriptorProto(
        name="pardnn_tensorflow.proto", package=_PACKAGE, syntax="proto3"
    )
    types = file.enum_type.add(name="DataType")
    for name, number in TYPE_NUMBERS.items():
        types.value.add(name=name, number=number)
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for text in fields.split(", "):
            _add_field(message, *text.split())
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool


def _add_field(message: Any, name: str, number: str, kind: str) -> None:
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field

    field = message.field.add(name=name, number=int(number))
    field.label = Field.LABEL_REPEATED if kind[0] in "*%" else Field.LABEL_OPTIONAL
    if kind[0] == "%":
        entry = message.nested_type.add(name=f"{name.title().replace('_', '')}Entry")
        entry.options.map_entry = True
        _add_field(entry, "key", "1", "string")
        _add_field(entry, "value", "2", kind[1:])
        field.type = Field.TYPE_MESSAGE
        field.type_name = f".{_PACKAGE}.{message.name}.{entry.name}"
        return
    kind = kind.lstrip("*")
    if kind in _MESSAGES:
        field.type, field.type_name = Field.TYPE_MESSAGE, f".{_PACKAGE}.{kind}"
    elif kind == "DataType":
        field.type, field.type_name = Field.TYPE_ENUM, f".{_PACKAGE}.{kind}"
    else:
        field.type = Field.Type.Value(f"TYPE_{kind.upper()}")

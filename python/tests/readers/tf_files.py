"""Small files of TensorFlow's, written as text and turned into binary form where needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pardnn import readers
from pardnn.readers import Options, Reading
from pardnn.readers.tensorflow import textproto
from pardnn.readers.tensorflow.messages import message_class


def node(name: str, op: str, *inputs: str, device: str = "", **attributes: Any) -> str:
    """A node as text. Attributes: a list is a shape, DT_… a type, True, a number, or raw text."""
    lines = [f'name: "{name}"', f'op: "{op}"', *(f'input: "{one}"' for one in inputs)]
    lines += [f'device: "{device}"'] if device else []
    for key, value in attributes.items():
        lines.append(f'attr {{ key: "{key}" value {{ {_value(value)} }} }}')
    return "node {\n  " + "\n  ".join(lines) + "\n}\n"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return f"b: {str(value).lower()}"
    if isinstance(value, int):
        return f"i: {value}"
    if isinstance(value, list):
        return f"shape {{ {dims(value)} }}"
    return f"type: {value}" if value.startswith("DT_") else value


def dims(sizes: list[int]) -> str:
    return " ".join(f"dim {{ size: {size} }}" for size in sizes)


def const(name: str, *values: int, shape: list[int] | None = None, wait: str = "") -> str:
    """A Const of int32."""
    shape = [] if shape is None and len(values) == 1 else shape or [len(values)]
    listed = " ".join(f"int_val: {value}" for value in values)
    tensor = f"tensor {{ dtype: DT_INT32 tensor_shape {{ {dims(shape)} }} {listed} }}"
    inputs = (f"^{wait}",) if wait else ()
    return node(name, "Const", *inputs, dtype="DT_INT32", value=tensor)


def variable(name: str, shape: list[int]) -> str:
    return node(name, "VariableV2", dtype="DT_FLOAT", shape=shape)


def placed_with(name: str) -> str:
    return f'list {{ s: "loc:@{name}" }}'


def function(name: str, inputs: list[str], results: dict[str, str], *nodes: str) -> str:
    """A function of float arguments; `results` maps a name to `node:output:number`."""
    signature = f'name: "{name}" ' + " ".join(
        f'input_arg {{ name: "{one}" type: DT_FLOAT }}' for one in inputs
    )
    signature += " ".join(f' output_arg {{ name: "{one}" type: DT_FLOAT }}' for one in results)
    returned = " ".join(f'ret {{ key: "{k}" value: "{v}" }}' for k, v in results.items())
    body = " ".join(one.replace("node {", "node_def {", 1) for one in nodes)
    return f"function {{ signature {{ {signature} }} {body} {returned} }}\n"


def library(*functions: str) -> str:
    return "library {\n" + "".join(functions) + "}\n"


def binary(text: str, kind: str = "GraphDef") -> bytes:
    message = message_class(kind)()
    textproto.parse(text, message)
    data: bytes = message.SerializeToString()
    return data


def read(folder: Path, *parts: str, **options: Any) -> Reading:
    """What the text of all parts is read as."""
    file = folder / "graph.pb"
    file.write_text("".join(parts))
    return readers.read(file, Options(**options))


def lines(reading: Reading) -> list[str]:
    """Ops, variables and groups of the graph, without times and phases."""
    found = []
    for line in reading.graph.text().splitlines()[2:]:
        words = line.split(" ")
        kept = [w for w in words if not w.startswith(("ph=", "moved=", "flops="))]
        if kept[0] == "op":
            del kept[3]
        found.append(" ".join(kept))
    return found


def sample() -> str:
    """A graph with most of what there is: a variable, a loop, a While, calls, devices, groups."""
    real = "DT_FLOAT"
    called = function("f", ["a"], {"r": "g:y:0"}, node("g", "Relu", "a", T=real))
    test = function("test", ["i"], {"r": "l:z:0"}, node("l", "Less", "i", "i"))
    types = f"list {{ type: {real} }}"
    functions = {"cond": 'func { name: "test" }', "body": 'func { name: "f" }'}
    return "".join(
        [
            node("x", "Placeholder", dtype=real, shape=[64, 8], device="/gpu:0"),
            variable("w", [8, 8]),
            node("w/read", "Identity", "w", T=real, _class=placed_with("w")),
            node("mm", "MatMul", "x", "w/read", T=real, device="/job:w/task:0/GPU:0"),
            node("call", "PartitionedCall", "mm", f='func { name: "f" }'),
            node("while", "While", "call", T=types, **functions),
            const("axes", 0, 1),
            node("sum", "Sum", "while", "axes", T=real, keep_dims=False),
            node("enter", "Enter", "call", T=real, frame_name='s: "frame"'),
            node("merge", "Merge", "enter", "next", T=real),
            node("less", "Less", "merge", "merge", T=real),
            node("cond", "LoopCond", "less"),
            node("switch", "Switch", "merge", "cond", T=real),
            node("next", "NextIteration", "switch:1", T=real),
            node("exit", "Exit", "switch", T=real),
            node("step", "ApplyMomentum", "w", "w/m", "sum", "exit", "sum", "^while", T=real),
            variable("w/m", [8, 8]),
            library(called, test),
        ]
    )

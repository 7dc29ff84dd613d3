"""Whatever happens to a file: it is read, or it is refused in one sentence."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
import test_chakra
import test_torch_traces
from onnx import TensorProto, helper
from tf_files import binary, sample

import pardnn
from pardnn import readers

NODES = [
    {"id": n, "name": f"n{n}", "fpgaLatency": 1.5, "size": 8, "colorClass": n} for n in range(4)
]
EDGES = [{"sourceId": n, "destId": n + 1, "size": 8, "cost": 0.1} for n in range(3)]
LAYER = "forward_compute_time=1, backward_compute_time=2, activation_size=[8; 4], parameter_size=6"
SYMBOL = {
    "nodes": [
        {"op": "null", "name": "data", "inputs": [], "attrs": {"__shape__": "(2, 3, 8, 8)"}},
        {"op": "null", "name": "w", "inputs": []},
        {
            "op": "Convolution",
            "name": "c",
            "attrs": {"kernel": "(3, 3)", "num_filter": "4", "pad": "(1, 1)"},
            "inputs": [[0, 0, 0], [1, 0, 0]],
            "control_deps": [0],
        },
    ],
    "arg_nodes": [0, 1],
    "heads": [[2, 0, 0]],
}


def model() -> bytes:
    body = helper.make_graph(
        [helper.make_node("Neg", ["h"], ["o"])],
        "body", [], [helper.make_tensor_value_info("o", 1, [2])],
    )  # fmt: skip
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("If", ["c"], ["y"], then_branch=body, else_branch=body),
        helper.make_node("F", ["h"], ["z"], domain="own"),
    ]
    inputs = [helper.make_tensor_value_info("x", 1, ["b", 2])]
    inputs.append(helper.make_tensor_value_info("c", TensorProto.BOOL, []))
    outputs = [helper.make_tensor_value_info(name, 1, None) for name in "yz"]
    weight = helper.make_tensor("w", 1, [2, 2], [0.5] * 4)
    graph = helper.make_graph(nodes, "g", inputs, outputs, [weight])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    body_of_f = [helper.make_node("Exp", ["a"], ["b"])]
    function = helper.make_function("own", "F", ["a"], ["b"], body_of_f, opsets)
    made = helper.make_model(graph, opset_imports=opsets, functions=[function])
    return made.SerializeToString()


ROW = {"ph": "X", "cat": "Op", "pid": 1, "ts": 3, "dur": 4, "args": {"name": "a", "op": "Neg"}}
NAMED = {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "/cpu:0 Compute"}}
STATS = """dev_stats { device: "/cpu:0" node_stats { node_name: "a" all_start_micros: 1
  op_end_rel_micros: 8 timeline_label: "a = Neg(b)" output { slot: 1 tensor_description {
  dtype: DT_FLOAT shape { dim { size: 8 } } } } } node_stats { node_name: "b" } }"""

# By format; a second word tells two forms of one.
SEEDS = {
    "msr-fiddle": json.dumps({"nodes": NODES, "edges": EDGES}).encode(),
    "mxnet": json.dumps(SYMBOL).encode(),
    "onnx": model(),
    "pipedream": f"a -- L(1) -- {LAYER}\nb -- __getitem__(1) -- {LAYER}\n\ta -- b\n".encode(),
    "dot": b'digraph "x" { node [time="1us"] a [size="8"]; a -> {b c} -> d [weight=3]; e:p -> d }',
    "tensorflow text": sample().encode(),
    "tensorflow binary": binary(sample()),
    "tensorflow-profile json": json.dumps({"traceEvents": [NAMED, ROW, ROW]}).encode(),
    "tensorflow-profile binary": binary(STATS, "StepStats"),
    "torch-trace": json.dumps(test_torch_traces.trace()).encode(),
    "chakra": test_chakra.HEAD + test_chakra.FIRST + test_chakra.SECOND,
    "metis": b"% c\n3 2 11\n10 2 7 3 8\n20 1 7\n30 1 8\n",
}
PIECES = [
    b"",
    b"0",
    b"-1",
    b"1e999",
    b"NaN",
    b"null",
    b"[]",
    b"{}",
    b'"',
    b"\\",
    b"\xff",
    b"\0",
    b"\n",
]
PIECES += [b"9" * 30, b"[[[", b"\x7f\xff\xff\xff\xff\xff\xff\xff\x7f", b" ", b"true", b"[8; ]"]


def damaged(data: bytes, chance: random.Random) -> bytes:
    """The data with a few things cut out, repeated, swapped or replaced."""
    for _ in range(chance.randint(1, 4)):
        begin = chance.randrange(len(data) + 1)
        end = min(len(data), begin + chance.choice((0, 1, 1, 2, 5, 20, 100)))
        sort = chance.randrange(5)
        if sort == 0:
            middle = chance.choice(PIECES)
        elif sort == 1:
            middle = data[begin:end] * chance.choice((2, 3, 50))
        elif sort == 2:
            middle = bytes([chance.randrange(256)])
        elif sort == 3:
            other = chance.randrange(len(data) + 1)
            middle = data[other : other + end - begin]
        else:
            middle = bytes(byte ^ (1 << chance.randrange(8)) for byte in data[begin : begin + 1])
            end = begin + 1
        data = data[:begin] + middle + data[end:]
    return data


def outcomes(data: bytes, count: int, seed: int, file: Path) -> Iterator[str]:
    """What becomes of so many damaged copies."""
    for number in range(count):
        copy = damaged(data, random.Random(seed * 1_000_003 + number))
        file.write_bytes(copy)
        try:
            yield readers.read(file).format
        except (readers.ReadError, pardnn.Error) as refusal:
            message = str(refusal)
            assert message.startswith(str(file)), message
            assert "\n" not in message, message
            yield "refused"


@pytest.mark.parametrize("name", SEEDS)
def test_damaged_files_are_read_or_refused(name: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(SEEDS[name])
    form = name.split()[0]
    assert readers.read(file).format == form
    found = list(outcomes(SEEDS[name], 150, 7, file))
    assert {form, "refused"} <= set(found)

"""MXNet's symbols of three generations, shapes of their operators, and hints of devices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from given import lines, read_json, refusal

from pardnn import readers


def value(name: str, **more: Any) -> dict[str, Any]:
    return {"op": "null", "name": name, "inputs": []} | more


def symbol(*nodes: dict[str, Any], **more: Any) -> dict[str, Any]:
    arguments = [place for place, node in enumerate(nodes) if node["op"] == "null"]
    return {"nodes": list(nodes), "arg_nodes": arguments, "heads": [[len(nodes) - 1, 0]]} | more


def shaped(folder: Path, content: dict[str, Any], **shapes: tuple[int, ...]) -> readers.Reading:
    return read_json(folder, content, readers.Options(shapes=shapes))


# A product of 3 x 5 values with 7 x 5 weights and 7 biases.
EXPECTED = [
    "var fc_bias 28 @fc_bias",
    "var fc_weight 140 @fc_weight",
    "op data Input 0 > 60 every=1",
    "op fc_bias.read Read 0 < fc_bias > =0 @fc_bias ph=f name=fc_bias",
    "op fc_weight.read Read 0 < fc_weight > =0 @fc_weight ph=f name=fc_weight",
    "op fc FullyConnected ? < data fc_weight.read fc_bias.read > 84* "
    "ph=f flops=210 moved=312 name=fc",
]


@pytest.mark.parametrize("member", ["param", "attr", "attrs"])
@pytest.mark.parametrize("length", [2, 3])
def test_three_generations_say_the_same(tmp_path: Path, member: str, length: int) -> None:
    inputs = [[place, 0, 0][:length] for place in range(3)]
    product = {"op": "FullyConnected", "name": "fc", "inputs": inputs}
    product[member] = {"num_hidden": "7", "no_bias": "False"}
    if member == "param":
        product |= {"attr": {"lr_mult": "0.2"}, "backward_source_id": -1}
    content = symbol(value("data"), value("fc_weight"), value("fc_bias"), product)
    reading = shaped(tmp_path, content, data=(3, 5))
    assert lines(reading) == EXPECTED
    assert reading.counts["n"] == 4
    assert reading.counts["ops"] == 1
    assert reading.counts["e"] == 3
    assert reading.counts["inlen"] == [length]


def test_an_open_shape_is_named_and_leaves_sizes_unknown(tmp_path: Path) -> None:
    content = symbol(value("data"), {"op": "Flatten", "name": "f", "inputs": [[0, 0]]})
    reading = read_json(tmp_path, content)
    assert lines(reading) == [
        "op data Input 0 > ? every=1",
        "op f Flatten ? < data > =0* ph=f name=f",
    ]
    assert "the shapes of data are open; --shape data=N,N,... states one" in reading.notes


def op(op_type: str, name: str, *inputs: int, **parameters: str) -> dict[str, Any]:
    places = [[place, 0, 0] for place in inputs]
    return {"op": op_type, "name": name, "inputs": places, "attrs": parameters}


def test_a_convolution_network_gets_its_shapes(tmp_path: Path) -> None:
    content = symbol(
        value("data"),
        value("c_weight"),
        op(
            "Convolution", "c", 0, 1, kernel="(3, 3)", num_filter="4", stride="(2, 2)", pad="(1, 1)"
        ),
        op("Activation", "r", 2, act_type="relu"),
        op("Pooling", "p", 3, kernel="(3, 3)", stride="(2, 2)", pooling_convention="full"),
        op("Concat", "cat", 4, 4, dim="1"),
        op("Pooling", "g", 5, kernel="(1, 1)", global_pool="True"),
        value("label"),
        op("SoftmaxOutput", "s", 6, 7, multi_output="False"),
    )
    ops = {line.split()[1]: line for line in lines(shaped(tmp_path, content, data=(2, 3, 16, 16)))}
    assert ops["c_weight"].startswith("var c_weight 432 ")  # 4 x 3 x 3 x 3
    # (16 + 2 - 3) / 2 + 1 = 8; 2 x 4 x 8 x 8 floats, each of 3 x 3 x 3 products.
    assert "> 2048 ph=f flops=27648 " in ops["c"]
    assert "> 2048~0 " in ops["r"]
    assert "> 512 " in ops["p"]  # (8 - 3) / 2 rounded up, + 1 = 4; 2 x 4 x 4 x 4
    assert "< p p > 1024 " in ops["cat"]
    assert "> 64 " in ops["g"]  # 2 x 8 x 1 x 1
    assert ops["label"] == "op label Input 0 > 8 every=1"  # learned from its reader
    assert "> 64* " in ops["s"]


def test_old_normalisation_keeps_statistics_that_it_does_not_name(tmp_path: Path) -> None:
    old = {"op": "BatchNorm", "name": "bn", "param": {}, "inputs": [[0, 0], [1, 0], [2, 0]]}
    content = symbol(value("data"), value("bn_gamma"), value("bn_beta"), old)
    found = lines(shaped(tmp_path, content, data=(2, 6, 4, 4)))
    assert [line for line in found if line.startswith("var")] == [
        "var bn_beta 24 @bn_beta",
        "var bn_gamma 24 @bn_gamma",
        "var bn_moving_mean 24 @bn",
        "var bn_moving_var 24 @bn",
    ]


def test_groups_of_contexts_are_hints_in_names(tmp_path: Path) -> None:
    hinted = {"attr": {"ctx_group": "stage1"}}
    content = symbol(value("data"), op("relu", "a", 0) | hinted, op("relu", "b", 1))
    reading = shaped(tmp_path, content, data=(4,))
    assert [line.split(" name=")[1] for line in lines(reading)[1:]] == ["stage1/a", "b"]
    assert "--group '^stage1/' keeps one together" in reading.notes[-1]


def test_a_fused_op_gets_its_shapes_from_the_symbol_inside(tmp_path: Path) -> None:
    inner = symbol(
        value("x"), value("w"), op("Convolution", "c", 0, 1, kernel="(1, 1)", num_filter="2")
    )
    fused = op("_sg_onednn_conv", "f", 1, 2, quantized="true", min_calib_range="0.0")
    fused |= {"subgraphs": [inner]}
    fused["inputs"] += [[1, 1, 0], [1, 2, 0]]
    content = symbol(value("data"), op("_contrib_quantize_v2", "q", 0), value("f_weight"), fused)
    ops = {line.split()[1]: line for line in lines(shaped(tmp_path, content, data=(1, 3, 5, 5)))}
    assert ops["q"].split(" ph=")[0] == "op q _contrib_quantize_v2 ? < data > 75 4 4"
    assert ops["f_weight"].startswith("var f_weight 24 ")  # 2 x 3 x 1 x 1 floats
    assert "< q f_weight.read q:1 q:2 > 50* 4 4 " in ops["f"]


def test_shapes_of_the_file_and_unknown_ops(tmp_path: Path) -> None:
    weight = value("c_weight", attrs={"__shape__": "(2, 0)", "__dtype__": "2"})
    data = value("data", attrs={"__shape__": "(2, 8)", "__dtype__": "2"})
    reading = read_json(tmp_path, symbol(data, weight, op("Custom", "c", 0, 1)))
    assert "op data Input 0 > 32 every=1" in lines(reading)  # halves
    assert 'do not follow from their inputs: "1 Custom"' in reading.notes[1]


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        (
            [value("a"), op("relu", "b", 7)],
            "nodes[1]: inputs: found output 0 of node 7, expected one",
        ),
        (
            [value("a"), op("relu", "b", 1)],
            "nodes[1]: inputs: found output 0 of node 1, expected one",
        ),
        ([value("a"), {"op": 3, "inputs": []}], "nodes[1]: found "),
        ([value("a", inputs=[[0]])], 'nodes[0]: inputs: found "[0]", expected [node, output] or'),
        ([value("a", attrs=[])], 'nodes[0]: found attrs "[]", expected an object'),
        ([value("a"), op("relu", "b", 0) | {"control_deps": [5]}], "nodes[1]: control_deps: found"),
    ],
)
def test_what_is_no_symbol_is_refused(tmp_path: Path, nodes: list[Any], message: str) -> None:
    file = tmp_path / "symbol.json"
    file.write_text(json.dumps(symbol(*nodes)))
    assert refusal(file).startswith(message)


def test_a_shape_of_no_input_and_one_without_end_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "symbol.json"
    file.write_text(json.dumps(symbol(value("data"), op("relu", "b", 0))))
    wrong = readers.Options(shapes={"date": (3,)})
    assert refusal(file, wrong) == '--shape date: found the inputs "data", expected the name of one'
    large = readers.Options(shapes={"data": (2**61, 2**61)})
    assert refusal(file, large).startswith("node data: found a tensor of the shape [230584300921")

"""ONNX models: variables, inputs, shapes, subgraphs, functions, training, and what is refused."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import onnx
import pytest
from given import lines, refusal
from onnx import TensorProto, helper

from pardnn import readers

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def info(name: str, *dims: int | str | None, elem_type: int = FLOAT) -> Any:
    return helper.make_tensor_value_info(name, elem_type, list(dims))


def weight(name: str, *dims: int, elem_type: int = FLOAT) -> Any:
    count = 1
    for dim in dims:
        count *= dim
    return helper.make_tensor(name, elem_type, dims, [0] * count)


def saved(
    folder: Path, nodes: list[Any], inputs: list[Any], outputs: list[Any], **more: Any
) -> Path:
    functions = more.pop("functions", [])
    graph = helper.make_graph(nodes, "g", inputs, outputs, **more)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    opsets.append(helper.make_opsetid("own", 1))
    model = helper.make_model(graph, opset_imports=opsets, functions=functions)
    file = folder / "model.any"
    file.write_bytes(model.SerializeToString())
    return file


#  x [batch, 4] ── MatMul w ── Relu ── y       w is read twice: once more by an Add
def test_weights_are_variables_and_an_open_dimension_is_bound(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"], name="mm"),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Add", ["w", "w"], ["v"]),
    ]
    file = saved(
        tmp_path,
        nodes,
        [info("x", "batch", 4)],
        [info("r", "batch", 3), info("v", 4, 3)],
        initializer=[weight("w", 4, 3)],
    )
    reading = readers.read(file, readers.Options(dims={"batch": 10}))
    # 10 x 3 floats are 120 bytes, made by 2 x 10 x 3 x 4 flops out of 160 + 48 bytes.
    assert lines(reading) == [
        "var w 48 @w",
        "op w.read Read 0 < w > =0 @w ph=f",
        "op v Add ? < w.read > 48* ph=f flops=12 moved=96",
        "op x Input 0 > 160 every=1",
        "op mm MatMul ? < x w.read > 120 ph=f flops=240 moved=328 name=mm",
        "op r Relu ? < mm > 120~0* ph=f flops=30 moved=240",
    ]
    assert reading.counts["n"] == 3
    unbound = readers.read(file)
    assert "op x Input 0 > ? every=1" in lines(unbound)
    assert unbound.notes[1] == "the dimensions batch are open; --dim batch=N binds them"
    by_shape = readers.read(file, readers.Options(shapes={"x": (10, 4)}))
    assert lines(by_shape) == lines(reading)


def test_dimensions_of_nothing_are_open_not_zero(tmp_path: Path) -> None:
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    file = saved(tmp_path, nodes, [info("x", 0, 512)], [info("y", -1, 512)])
    reading = readers.read(file)
    assert lines(reading) == ["op x Input 0 > ? every=1", "op y Relu ? < x > ?* ph=f"]
    assert reading.notes[1] == "the dimensions of x are open; --shape INPUT=N,N,... binds them"
    shaped = readers.read(file, readers.Options(shapes={"x": (2, 512)}))
    assert lines(shaped)[0] == "op x Input 0 > 4096 every=1"


def test_sums_and_products_of_dimensions_are_worked_out(tmp_path: Path) -> None:
    nodes = [helper.make_node("Unknown", ["x"], ["y"], domain="com.microsoft")]
    file = saved(
        tmp_path, nodes, [info("x", "a-b", "s")], [info("y", "16*a-b*(s - 1)", "s//2 + 3")]
    )
    reading = readers.read(file, readers.Options(dims={"a-b": 2, "s": 5}))
    # 16 x 2 x 4 = 128 rows of 2 + 3 floats.
    assert lines(reading)[1] == ("op y com.microsoft.Unknown ? < x > 2560* ph=f moved=2600")


def test_shapes_follow_from_values_that_are_worked_out(tmp_path: Path) -> None:
    nodes = [  # out of order besides
        helper.make_node("Reshape", ["x", "to"], ["y"]),
        helper.make_node("Neg", ["y"], ["z"]),
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "zero"], ["first"], axis=0),
        helper.make_node("Cast", ["first"], ["f"], to=FLOAT),
        helper.make_node("Cast", ["f"], ["i"], to=INT64),
        helper.make_node("Concat", ["i", "rest"], ["to"], axis=0),
    ]
    initializer = [weight("zero", 1, elem_type=INT64)]
    initializer.append(helper.make_tensor("rest", INT64, [2], [2, 3]))
    file = saved(
        tmp_path, nodes, [info("x", "n", 6)], [info("z", None, None, None)], initializer=initializer
    )
    ops = {
        line.split()[1]: line for line in lines(readers.read(file, readers.Options(dims={"n": 7})))
    }
    assert ops["y"].startswith("op y Reshape ? < x to > =0 ")
    assert ops["z"].startswith("op z Neg ? < y > 168~0* ")  # 7 x 2 x 3 floats
    assert ops["to"].startswith("op to Concat ? < i rest > 24 ")


def test_a_value_made_of_a_shape_is_a_weight_where_it_is_of_floats(tmp_path: Path) -> None:
    fill = helper.make_tensor("value", FLOAT, [1], [0.5])
    nodes = [
        helper.make_node("ConstantOfShape", ["s"], ["w"], value=fill),
        helper.make_node("Mul", ["w", "x"], ["y"]),
    ]
    shape = helper.make_tensor("s", INT64, [2], [100, 10])
    file = saved(tmp_path, nodes, [info("x", 100, 10)], [info("y", 100, 10)], initializer=[shape])
    assert lines(readers.read(file)) == [
        "var w.value 4000 @w.value",
        "op s Constant 0 > 16 every=1",
        "op w Read 0 < w.value > =0 @w.value ph=f",
        "op x Input 0 > 4000 every=1",
        "op y Mul ? < w x > 4000* ph=f flops=1000 moved=12000",
    ]


def branch(name: str, *nodes: Any, initializer: list[Any] | None = None) -> Any:
    return helper.make_graph(list(nodes), name, [], [info(f"{name}_out", 4)], initializer or [])


def test_subgraphs_are_one_op_that_reads_what_they_capture(tmp_path: Path) -> None:
    then = branch("t", helper.make_node("Add", ["x", "w"], ["t_out"]))
    other = branch(
        "e", helper.make_node("Mul", ["w", "own"], ["e_out"]), initializer=[weight("own", 4)]
    )
    nodes = [helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other, name="if")]
    inputs = [info("x", 4), info("c", elem_type=BOOL)]
    file = saved(tmp_path, nodes, inputs, [info("y", 4)], initializer=[weight("w", 4)])
    reading = readers.read(file)
    assert lines(reading) == [
        "var own 16 @if",
        "var w 16 @w",
        "op c Input 0 > 1 every=1",
        "op w.read Read 0 < w > =0 @w ph=f",
        "op x Input 0 > 16 every=1",
        "op if If ? < c w.read x > 16* @if ph=f name=if",
    ]
    assert (reading.counts["subgraphs"], reading.counts["subn"]) == (2, 2)
    assert "2 ops in the bodies of loops" in reading.notes[-1]


def function(name: str, *nodes: Any) -> Any:
    return helper.make_function(
        "own", name, ["a"], ["b"], list(nodes),
        [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)],
    )  # fmt: skip


def call(name: str, source: str, target: str) -> Any:
    return helper.make_node(name, [source], [target], domain="own")


def test_functions_are_inlined(tmp_path: Path) -> None:
    twice = function(
        "Twice", helper.make_node("Neg", ["a"], ["m"]), helper.make_node("Neg", ["m"], ["b"])
    )
    nodes = [call("Twice", "x", "h"), call("Twice", "h", "y")]
    file = saved(tmp_path, nodes, [info("x", 8)], [info("y", 8)], functions=[twice])
    reading = readers.read(file)
    types = [line.split()[2] for line in lines(reading)]
    assert types == ["Input", "Neg", "Neg", "Neg", "Neg"]
    assert (reading.counts["n"], reading.counts["functions"]) == (2, 1)


def test_functions_that_never_end_or_explode_are_refused(tmp_path: Path) -> None:
    loop = [function("F", call("G", "a", "b")), function("G", call("F", "a", "b"))]
    file = saved(tmp_path, [call("F", "x", "y")], [info("x", 8)], [info("y", 8)], functions=loop)
    assert refusal(file).startswith('found the function "F", which calls itself, expected')
    many = [
        function(f"F{n}", call(f"F{n + 1}", "a", "m"), call(f"F{n + 1}", "m", "b"))
        for n in range(40)
    ]
    many.append(function("F40", helper.make_node("Neg", ["a"], ["b"])))
    file = saved(tmp_path, [call("F0", "x", "y")], [info("x", 8)], [info("y", 8)], functions=many)
    assert refusal(file).startswith("found functions that stand for more than 1")


def test_a_training_graph_takes_its_weights_as_inputs(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Mul", ["x", "w"], ["y"]),
        helper.make_node("ReluGrad", ["y", "x"], ["w_grad"], domain="com.microsoft", name="grad"),
        helper.make_node(
            "InPlaceAccumulatorV2", ["w_grad.buffer", "w_grad", "reset"], ["w_grad.out"],
            domain="com.microsoft", name="sum",
        ),
    ]  # fmt: skip
    inputs = [
        info("x", 4),
        info("w", 4),
        info("w_grad.buffer", 4),
        info("reset", 1, elem_type=BOOL),
    ]
    file = saved(tmp_path, nodes, inputs, [info("w_grad.out", 1, elem_type=BOOL)])
    reading = readers.read(file)
    assert lines(reading) == [
        "var w 16 @w",
        "var w_grad.buffer 16 @w_grad.buffer",
        "op reset Input 0 > 1 every=1",
        "op w.read Read 0 < w > =0 @w ph=f",
        "op x Input 0 > 16 every=1",
        "op y Mul ? < x w.read > 16 ph=f flops=4 moved=48",
        "op grad com.microsoft.ReluGrad ? < y x > 16~0 ph=b flops=4 moved=48 name=grad",
        "op sum com.microsoft.InPlaceAccumulatorV2 ? < !w_grad.buffer grad reset > 1* "
        "@w_grad.buffer ph=u moved=34 name=sum",
    ]
    assert reading.counts["gradops"] == 2


def test_an_algorithm_of_training_updates_the_weights(tmp_path: Path) -> None:
    graph = helper.make_graph(
        [helper.make_node("Mul", ["x", "w"], ["y"])],
        "g", [info("x", 4)], [info("y", 4)], initializer=[weight("w", 4)],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    training = model.training_info.add()
    training.algorithm.node.append(helper.make_node("Sub", ["w", "y"], ["new_w"]))
    binding = training.update_binding.add()
    binding.key, binding.value = "w", "new_w"
    file = tmp_path / "model.onnx"
    file.write_bytes(model.SerializeToString())
    assert lines(readers.read(file))[-2:] == [
        "op new_w Sub ? < w.read y > 16~1 ph=f flops=4 moved=48",
        "op w.update Assign 0 < new_w !w ^w.read @w ph=u",
    ]


def external(location: str, *dims: int) -> Any:
    tensor = TensorProto(name="w", data_type=FLOAT, dims=dims, data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=location)
    return tensor


def test_external_data_is_sized_without_being_there(tmp_path: Path) -> None:
    nodes = [helper.make_node("Mul", ["x", "w"], ["y"])]
    tensors = [external("weights/w.bin", 1000, 1000)]
    file = saved(tmp_path, nodes, [info("x", 1)], [info("y", 1000, 1000)], initializer=tensors)
    reading = readers.read(file)
    assert lines(reading)[0] == "var w 4000000 @w"
    assert reading.notes[-1] == (
        '1 files of external data are not there, such as "weights/w.bin"; sizes come from shapes'
    )
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "w.bin").write_bytes(b"")
    assert len(readers.read(file).notes) == 1


@pytest.mark.parametrize("location", ["../secret", "/etc/passwd", "a/../../b", "", "link/x", "\0"])
def test_external_data_outside_of_the_folder_is_refused(tmp_path: Path, location: str) -> None:
    (tmp_path / "link").symlink_to("/etc")
    nodes = [helper.make_node("Mul", ["x", "w"], ["y"])]
    tensors = [external(location, 4)]
    file = saved(tmp_path, nodes, [info("x", 4)], [info("y", 4)], initializer=tensors)
    assert refusal(file).startswith("tensor w: found external data in ")


RELU = helper.make_node("Relu", ["x"], ["y"])


@pytest.mark.parametrize(
    ("nodes", "more", "message"),
    [
        ([RELU, RELU], {}, 'tensor "y": found a second op or value that makes it, expected one'),
        (
            [helper.make_node("Add", ["x", "z"], ["y"])],
            {},
            'op y: found the input "z", which nothing makes, expected a tensor',
        ),
        (
            [helper.make_node("Add", ["x", "q"], ["y"]), helper.make_node("Neg", ["y"], ["q"])],
            {},
            'found a cycle "q" -> "y" -> "q"',
        ),
        (
            [RELU],
            {"initializer": [TensorProto(name="w", data_type=FLOAT, dims=[-2])]},
            "tensor w: found the dimension -2, expected one of at least 0",
        ),
        (
            [RELU],
            {"initializer": [TensorProto(name="w", data_type=FLOAT, dims=[2**62, 2**62])]},
            "tensor w: found a tensor of the shape [4611686018427387904, 4611686018427387904]",
        ),
    ],
)
def test_what_is_no_model_of_ops_is_refused(
    tmp_path: Path, nodes: list[Any], more: dict[str, Any], message: str
) -> None:
    file = saved(tmp_path, nodes, [info("x", 4)], [info("y", 4)], **more)
    assert refusal(file).startswith(message)


def test_wrong_names_of_dimensions_and_inputs_are_refused(tmp_path: Path) -> None:
    file = saved(tmp_path, [RELU], [info("x", "batch", 4)], [info("y", "batch", 4)])

    def said(**options: Any) -> str:
        return refusal(file, readers.Options(**options))

    assert said(dims={"bach": 3}) == '--dim bach: found the open dimensions "batch", expected one'
    assert said(shapes={"q": (3, 4)}) == '--shape q: found the inputs "x", expected the name of one'
    assert said(shapes={"x": (3,)}) == "--shape x: found 1 dimensions, expected 2"
    assert said(shapes={"x": (3, 5)}) == "--shape x: found the dimension 5, expected 4"


def test_a_damaged_model_and_one_of_empty_ops_are_refused(tmp_path: Path) -> None:
    file = saved(tmp_path, [RELU], [info("x", 4)], [info("y", 4)])
    whole = file.read_bytes()
    file.write_bytes(whole[:-3])
    assert "expected a file of one of the formats" in refusal(file)
    model = onnx.ModelProto(ir_version=8)
    for _ in range(20_000):
        model.graph.node.add()
    file.write_bytes(model.SerializeToString())
    assert refusal(file).startswith("found more than 11666 ops, expected at most 11666")


def test_a_name_that_is_no_text_is_refused(tmp_path: Path) -> None:
    file = saved(tmp_path, [RELU], [info("x", 4)], [info("y", 4)])
    file.write_bytes(file.read_bytes().replace(b"Relu", b"R\xfflu"))
    assert refusal(file) == "found the op_type \"b'R\\xfflu'\", expected text in UTF-8"


#  a [5, 1, 3] meets b [4, 3]: the gradient of a is summed over axis 1, that of b over axis 0
def test_gradients_of_operands_that_were_repeated_get_their_shapes(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Shape", ["a"], ["sa"]),
        helper.make_node("Shape", ["b"], ["sb"]),
        helper.make_node(
            "BroadcastGradientArgs", ["sa", "sb"], ["ax", "bx"], domain="com.microsoft"
        ),
        helper.make_node("ReduceSum", ["g", "ax"], ["a_grad"], keepdims=1),
        helper.make_node("ReduceSum", ["g", "bx"], ["b_grad"], keepdims=0),
    ]
    inputs = [info("a", 5, 1, 3), info("b", 4, 3), info("g", 5, 4, 3)]
    outputs = [info("a_grad", None, None, None), info("b_grad", None, None)]
    ops = {
        line.split()[1]: line
        for line in lines(readers.read(saved(tmp_path, nodes, inputs, outputs)))
    }
    assert "> 8 8 " in ops["ax"]  # one axis each, of 8 bytes
    assert "< g ax > 60* " in ops["a_grad"]  # 5 x 1 x 3 floats
    assert "< g ax:1 > 48* " in ops["b_grad"]  # 4 x 3


def test_a_product_of_transposed_factors_gets_its_shape(tmp_path: Path) -> None:
    node = helper.make_node(
        "FusedMatMul", ["a", "b"], ["y"], domain="com.microsoft", transA=1, transB=1
    )
    inputs = [info("a", 2, 7, 3), info("b", 2, 5, 7)]
    file = saved(tmp_path, [node], inputs, [info("y", None, None, None)])
    # 2 x 3 x 5 floats, each of 7 products.
    assert "> 120* ph=f flops=420 " in lines(readers.read(file))[-1]


def test_arithmetic_beyond_what_a_graph_holds_is_unknown(tmp_path: Path) -> None:
    nodes = [helper.make_node("MatMul", ["x", "y"], ["z"])]
    inputs = [info("x", 2**29, 2**29), info("y", 2**29, 2**29)]  # 2^60 bytes each
    file = saved(tmp_path, nodes, inputs, [info("z", 2**29, 2**29)])
    found = lines(readers.read(file))[-1]
    assert "flops=" not in found  # 2^88
    assert f"moved={3 * 2**60}" in found


def test_a_missing_library_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = saved(tmp_path, [RELU], [info("x", 4)], [info("y", 4)])
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert refusal(file) == (
        "found an ONNX model, and no package onnx, expected it here: pip install onnx"
    )


def test_branches_inside_of_functions_read_what_is_around_them(tmp_path: Path) -> None:
    then = helper.make_graph([helper.make_node("Neg", ["a"], ["n"])], "t", [], [info("n", 4)])
    other = helper.make_graph([helper.make_node("Exp", ["a"], ["e"])], "e", [], [info("e", 4)])
    chooses = [
        helper.make_node("Constant", [], ["c"], value=helper.make_tensor("c", BOOL, [], [True])),
        helper.make_node("If", ["c"], ["b"], then_branch=then, else_branch=other),
    ]
    nodes = [call("Choose", "x", "y")]
    functions = [function("Choose", *chooses)]
    file = saved(tmp_path, nodes, [info("x", 4)], [info("y", 4)], functions=functions)
    condition, branches, given = sorted(lines(readers.read(file)), key=lambda line: line.split()[2])
    assert condition.split()[2:] == ["Constant", "0", ">", "1", "every=1"]
    assert given == "op x Input 0 > 16 every=1"
    assert branches.split()[2:8] == ["If", "?", "<", condition.split()[1], "x", ">"]

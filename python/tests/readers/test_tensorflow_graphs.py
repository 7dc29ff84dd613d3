"""Graphs of TensorFlow: forms of files, the training step, variables, groups, functions."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import pytest
from given import refusal
from tf_files import binary, const, function, library, lines, node, placed_with, read, variable

from pardnn import readers
from pardnn.readers import Options

F = "DT_FLOAT"
X = node("x", "Placeholder", dtype=F, shape=[4, 512])
RATE = node("rate", "Const", dtype=F, value="tensor { dtype: DT_FLOAT tensor_shape {} }")

#  x ──> mm ──> relu ──> relu_grad ──> mm_grad ──> step      w is read by mm, updated by step;
#  w ──> read ──┘                                   └─ w     an Assign and a SaveV2 are no training
TRAINING = (
    X,
    variable("w", [512, 128]),
    node("w/read", "Identity", "w", T=F, _class=placed_with("w")),
    node("mm", "MatMul", "x", "w/read", T=F),
    node("relu", "Relu", "mm", T=F),
    node("gradients/relu_grad", "ReluGrad", "relu", "relu", T=F),
    node("gradients/mm_grad", "MatMul", "x", "gradients/relu_grad", T=F, transpose_a=True),
    RATE,
    node("step", "ApplyGradientDescent", "w", "rate", "gradients/mm_grad", T=F),
    const("zero", 0),
    node("w/Assign", "Assign", "w", "zero", T=F),
    node("save", "SaveV2", "zero", "zero", "zero", "w/read"),
)
# 4*512, 512*128 and 4*128 floats.
STEP = [
    "var w 262144 @w",
    "op rate Const > 4 every=1",
    "op w/read Identity < w > =0 @w",
    "op x Placeholder > 8192 every=1",
    "op mm MatMul < x w/read > 2048",
    "op relu Relu < mm > 2048~0",
    "op gradients/relu_grad ReluGrad < relu > 2048~0",
    "op gradients/mm_grad MatMul < x gradients/relu_grad > 262144",
    "op step ApplyGradientDescent < !w rate gradients/mm_grad > =0 @w",
]


@pytest.mark.parametrize("form", ["text", "commented text", "binary", "gzip"])
def test_the_form_of_a_graph_is_told_by_its_content(tmp_path: Path, form: str) -> None:
    text = "".join(TRAINING)
    file = tmp_path / "misleading.onnx"
    file.write_bytes(
        {
            "text": text.encode(),
            "commented text": b"# RUN: some-tool %s\n\n# CHECK: x\n" + text.encode(),
            "binary": binary(text),
            "gzip": gzip.compress(binary(text)),
        }[form]
    )
    reading = readers.read(file)
    assert reading.format == "tensorflow"
    assert lines(reading) == STEP
    expected = {"n": 12, "e": 17, "ctrl": 0, "class": 1, "refvar": 1, "opt": 1, "resvar": 0}
    assert {name: reading.counts[name] for name in expected} == expected


@pytest.mark.parametrize("form", [binary, lambda text, kind: text.encode()])
def test_meta_graphs_and_saved_models_hold_graphs(tmp_path: Path, form: object) -> None:
    meta = "meta_info_def { tags: 'train' } graph_def { " + "".join(TRAINING) + " }"
    collection = (
        'collection_def { key: "train_op" value { node_list { value: "gradients/mm_grad" } } }'
    )
    file = tmp_path / "graph"
    file.write_bytes(form(meta + collection, "MetaGraphDef"))  # type: ignore[operator]
    # The collection names the gradient: the update is not needed for it.
    assert lines(readers.read(file))[-1].endswith("gradients/relu_grad > 262144*")
    saved = f"saved_model_schema_version: 1 meta_graphs {{ {meta} }}"
    file.write_bytes(form(saved, "SavedModel"))  # type: ignore[operator]
    reading = readers.read(file)
    assert lines(reading) == STEP
    assert reading.counts["metagraphs"] == 1


def test_only_the_training_step_is_kept_and_said_so(tmp_path: Path) -> None:
    notes = read(tmp_path, *TRAINING).notes
    assert "9 of 12 nodes are the step, those behind the optimizer's updates" in notes
    # Without an optimizer the results count; saving and initial values are no results.
    keys = read(tmp_path, *TRAINING[:5], *TRAINING[9:]).graph.op_keys
    assert keys == ["w/read", "x", "mm", "relu"]


def test_phases_follow_the_gradients(tmp_path: Path) -> None:
    text = read(tmp_path, *TRAINING).graph.text()
    phases = {
        line.split()[1]: word[3:]
        for line in text.splitlines()
        for word in line.split()
        if word.startswith("ph=")
    }
    assert phases == {
        "w/read": "f",
        "mm": "f",
        "relu": "f",
        "gradients/relu_grad": "b",
        "gradients/mm_grad": "b",
        "step": "u",
    }


def test_flops_of_a_product_are_two_for_each_multiplication(tmp_path: Path) -> None:
    text = read(tmp_path, *TRAINING).graph.text()
    assert f"flops={2 * 4 * 512 * 128}" in text
    # x, w/read and the result.
    assert f"moved={8192 + 262144 + 2048}" in text


# --- variables ----------------------------------------------------------------------------

HANDLE = node("v", "VarHandleOp", dtype=F, shape=[512])


def test_resource_variables_are_read_and_updated_in_place(tmp_path: Path) -> None:
    reading = read(
        tmp_path,
        HANDLE,
        RATE,
        node("v/Read", "ReadVariableOp", "v", dtype=F),
        node("grad", "Neg", "v/Read", T=F),
        node("step", "ResourceApplyGradientDescent", "v", "rate", "grad", T=F),
        node("after", "ReadVariableOp", "v", "^step", dtype=F),
        node("_retval", "_Retval", "after", T=F),
    )
    assert lines(reading)[1:] == [
        "op rate Const > 4 every=1",
        "op v/Read ReadVariableOp < v > =0 @v",
        "op grad Neg < v/Read > 2048",
        "op step ResourceApplyGradientDescent < !v rate grad @v",
        "op after ReadVariableOp < v ^step > =0* @v",
        "op _retval _Retval < after",
    ]


#  read ──> late (1)      step does not wait for `late`, which reads what it overwrites
def test_a_read_that_nothing_orders_comes_before_the_update(tmp_path: Path) -> None:
    reading = read(
        tmp_path,
        HANDLE,
        RATE,
        node("v/Read", "ReadVariableOp", "v", dtype=F),
        node("late", "Neg", "v/Read", T=F),
        node("step", "ResourceApplyGradientDescent", "v", "rate", "rate", T=F),
        node("_retval", "_Retval", "late", T=F),
    )
    assert "1 edges added: reads of a variable come before its update" in reading.notes
    assert "op step ResourceApplyGradientDescent < !v rate ^late @v" in lines(reading)


@pytest.mark.parametrize("sort", ["resource", "reference"])
def test_what_is_used_after_the_update_is_a_copy_or_read_anew(tmp_path: Path, sort: str) -> None:
    resource = sort == "resource"
    reading = read(
        tmp_path,
        HANDLE if resource else variable("v", [512]),
        RATE,
        node("old", "ReadVariableOp" if resource else "Identity", "v", dtype=F, T=F),
        node(
            "step",
            "ResourceApplyGradientDescent" if resource else "ApplyGradientDescent",
            "v",
            "rate",
            "old",
            T=F,
        ),
        node("use", "Neg", "old", "^step", T=F),
        node("_retval", "_Retval", "use", T=F),
    )
    found = lines(reading)
    if resource:  # the handle's reader keeps its value: the update needs a buffer of its own
        assert "op step ResourceApplyGradientDescent < v rate old @v ws=2048" in found
        assert "op use Neg < old ^step > 2048*" in found
    else:  # a reference shows what is there when it is used
        assert "op step/value_of/v Identity < v ^step > =0 @v" in found
        assert "op use Neg < step/value_of/v ^step > 2048*" in found


# S01: a variable, its initial value, a look-up and a sparse update, tied by the reference.
def test_ops_on_one_reference_share_a_device(tmp_path: Path) -> None:
    reading = read(
        tmp_path,
        variable("v", [1000, 64]),
        const("rows", 3, 1, 4),
        node("look", "GatherV2", "v", "rows", "axis", Tparams=F),
        const("axis", 0),
        RATE,
        node("sparse", "SparseApplyAdagrad", "v", "v/acc", "rate", "look", "rows", T=F),
        variable("v/acc", [1000, 64]),
    )
    assert lines(reading)[:2] == ["var v 256000 @v", "var v/acc 256000 @v"]
    assert "op look GatherV2 < v rows axis > 768 @v" in lines(reading)  # 3 rows of 64 floats
    assert "op sparse SparseApplyAdagrad < !v !v/acc rate look rows > =0 @v" in lines(reading)


def test_class_attributes_and_other_handles_make_groups(tmp_path: Path) -> None:
    reading = read(
        tmp_path,
        node("big", "Placeholder", dtype=F, shape=[1024]),
        node("a", "Neg", "big", T=F),
        node("b", "Exp", "big", T=F, _class=placed_with("a")),
        node("c", "Log", "big", T=F, _class=placed_with("gone")),
        node("d", "Abs", "big", T=F, _class=placed_with("gone")),
        node("e", "Sin", "big", T=F),
        node("table", "HashTableV2"),
        node("find", "LookupTableFindV2", "table", "big", "big", Tout=F),
    )
    groups = {
        line.split()[1]: [word for word in line.split() if word.startswith("@")]
        for line in lines(reading)
    }
    assert groups["a"] == groups["b"] == ["@g_a"]
    assert groups["c"] == groups["d"] == ["@g_c"]
    assert groups["e"] == []
    assert groups["table"] == groups["find"] == ["@g_find"]


# --- functions ----------------------------------------------------------------------------

RELU = function("f", ["a"], {"r": "g:y:0"}, node("g", "Relu", "a", T=F))


def test_calls_become_the_nodes_of_what_they_call(tmp_path: Path) -> None:
    twice = function(
        "h",
        ["a"],
        {"r": "two:output:0", "same": "a"},
        node("one", "PartitionedCall", "a", f='func { name: "f" }'),
        node("two", "f", "one:output:0"),
    )
    reading = read(
        tmp_path,
        X,
        node("call", "StatefulPartitionedCall", "x", f='func { name: "h" }'),
        node("end", "Tanh", "call", T=F),
        node("other", "Tanh", "call:1", "^call", T=F),
        library(RELU, twice),
    )
    assert lines(reading) == [
        "op x Placeholder > 8192 every=1",
        "op call/one/g Relu < x > 8192",
        "op call/two/g Relu < call/one/g > 8192~0",
        "op call NoOp < ^call/two/g",
        "op end Tanh < call/two/g > 8192~0",
        "op other Tanh < x ^call > 8192",
    ]
    assert (reading.counts["nfun"], reading.counts["fnodes"], reading.counts["funcalls"]) == (
        2,
        3,
        1,
    )


def test_functions_that_call_themselves_are_refused(tmp_path: Path) -> None:
    calls = [
        function(name, ["a"], {"r": "c:output:0"}, node("c", other, "a"))
        for name, other in (("f", "g"), ("g", "f"))
    ]
    file = tmp_path / "cyclic.pb"
    file.write_text(X + node("call", "f", "x") + library(*calls))
    assert refusal(file) == (
        "function f calls itself (f -> g -> f); such graphs have no end and cannot be planned"
    )


def test_functions_that_double_at_every_level_are_refused(tmp_path: Path) -> None:
    levels = [RELU.replace('"f"', '"f0"')]
    levels += [
        function(
            f"f{n}",
            ["a"],
            {"r": "c:o:0"},
            node("b", f"f{n - 1}", "a"),
            node("c", f"f{n - 1}", "b:o:0"),
        )
        for n in range(1, 30)
    ]
    file = tmp_path / "bomb.pb"
    file.write_text(X + node("call", "f29", "x") + library(*levels))
    assert "functions call functions until the graph is more than 8 times" in refusal(file)


def test_only_files_of_tensorflow_need_protobuf() -> None:
    code = "import sys, pardnn.readers; print({'google.protobuf', 'tensorflow'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_options_bind_shapes(tmp_path: Path) -> None:
    open_batch = node("x", "Placeholder", dtype=F, shape=[-1, 512])
    ops = (open_batch, node("y", "Neg", "x", T=F))
    reading = read(tmp_path, *ops)
    assert "op y Neg < x > ?~0" not in lines(reading)
    assert "op y Neg < x > ?" in lines(reading)
    assert reading.notes[0] == (
        "x of unknown shape; --dim batch=N binds the first dimension of every input, "
        "--shape x=N,… one input"
    )
    assert "op y Neg < x > 16384" in lines(read(tmp_path, *ops, dims={"batch": 8}))
    assert "op y Neg < x > 6144" in lines(read(tmp_path, *ops, shapes={"x": (3, 512)}))
    file = tmp_path / "graph.pb"
    assert (
        refusal(file, Options(shapes={"z": (1,)})) == "--shape z: the step has no node of that name"
    )
    assert "dimensions have no names here" in refusal(file, Options(dims={"time": 3}))

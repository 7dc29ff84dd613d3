"""Profiles of PipeDream become training steps: what each layer adds, what its gradients read."""

from __future__ import annotations

from pathlib import Path

import pytest
from given import is_planned, lines, read_text, refusal

NUMBERS = "forward_compute_time={}, backward_compute_time={}, activation_size={}, parameter_size={}"


def layer(
    name: str, what: str, forward: object, backward: object, size: object, held: object
) -> str:
    return f"{name} -- {what} -- " + NUMBERS.format(forward, backward, size, held) + "\n"


#  in ──> fc ──> act (in place) ──> out
def test_layers_become_forward_backward_and_update_ops(tmp_path: Path) -> None:
    text = (
        layer("act", "ReLU(inplace)", 0.002, 0.001, "80.0", "0.000")
        + layer("in", "Input", 0, 0, "40.0", 0)
        + layer("fc", "Linear(5, 10)", 1.5, "3.000", 80, 200)
        + layer("out", "Loss", 0.1, 0.2, 4, 0)
        + "\tin -- fc\n\tfc -- act\n\tact -- out\n"
    )
    reading = read_text(tmp_path, text)
    assert reading.counts == {"nodes": 4, "edges": 3}
    # The gradient of a layer in place reads what it made; the input has no gradient.
    assert lines(reading) == [
        "var fc.parameters 200 @fc",
        "op in Input 0 > 40 ph=f name=Input",
        "op fc Linear 1500000 < in fc.parameters > 80 @fc ph=f name=Linear(5,%2010)",
        "op act ReLU 2000 < fc > 80~0 ph=f name=ReLU(inplace)",
        "op out Loss 100000 < act > 4 ph=f name=Loss",
        "op out.backward LossGrad 200000 < act out > 80 ph=b",
        "op act.backward ReLUGrad 1000 < act out.backward > 80 ph=b",
        "op fc.backward LinearGrad 3000000 < in act.backward fc.parameters > 200 @fc ph=b",
        "op fc.update Update 0 < fc.backward !fc.parameters @fc ph=u",
    ]
    assert is_planned(reading)


#  in ──> lstm ──> [0] ──> out     [1] reads the second of three outputs
#             └──> [1] ─────^
def test_a_layer_with_a_list_of_sizes_has_several_outputs(tmp_path: Path) -> None:
    text = (
        layer("in", "Input", 0, 0, 8, 0)
        + layer("lstm", "LSTM(2, 3)", 2, 4, "[600.0; 20.0; 20.0]", 0)
        + layer("a", "__getitem__(0)", 0, 0, "600.0", 0)
        + layer("b", "__getitem__(1)", 0, 0, "20.0", 0)
        + layer("out", "Add -- stage_id=1", 0, 1, "600", 0).replace(" -- stage_id=1", "")
        + "\tin -- lstm\n\tlstm -- a\n\tlstm -- b\n\ta -- out\n\tb -- out\n"
    )
    reading = read_text(tmp_path, text)
    ops = {line.split()[1]: line for line in lines(reading)}
    assert "< in > 600 20 20" in ops["lstm"]
    assert "< lstm > =0 " in ops["a"]  # a view of the first output
    assert "< lstm:1 > =0 " in ops["b"]
    assert "< a b out > 600 20 " in ops["out.backward"]
    assert "< out.backward:1 > 20 " in ops["b.backward"]
    assert "< in a.backward b.backward ph" in ops["lstm.backward"]  # no gradient of the input
    assert is_planned(reading)


def test_a_profile_without_backward_times_is_one_of_inference(tmp_path: Path) -> None:
    text = layer("a", "Linear", 1, 0, 4, 100) + layer("b", "Linear", 1, 0, 4, 100) + "\ta -- b\n"
    reading = read_text(tmp_path, text)
    assert lines(reading) == [
        "var a.parameters 100 @a",
        "var b.parameters 100 @b",
        "op a Linear 1000000 < a.parameters > 4 @a ph=f name=Linear",
        "op b Linear 1000000 < a b.parameters > 4* @b ph=f name=Linear",
    ]
    assert "inference" in reading.notes[0]


GOOD = layer("a", "Linear", 1, 1, 4, 0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD + GOOD, '2: found "a" a second time, expected names that differ'),
        (GOOD + "\ta -- c\n", '2: found an edge of "c", expected a node of the lines above'),
        (
            GOOD + "b -- Linear\n",
            '2: found "b -- Linear", expected a node with forward_compute_time',
        ),
        (layer("a", "L", "x", 1, 4, 0), '1: found forward_compute_time "x", expected a number'),
        (layer("a", "L", "nan", 1, 4, 0), '1: found forward_compute_time "nan", expected a finite'),
        (layer("a", "L", 1, -2, 4, 0), '1: found backward_compute_time "-2.0", expected a finite'),
        (layer("a", "L", 1, 1, "[4; ]", 0), '1: found activation_size " ", expected a number'),
        (layer("a", "L", 1, 1, 4, "1e40"), "1: found a size 1000"),
        (GOOD + GOOD.replace("a", "b", 1) + "\ta -- b\n\tb -- a\n", "found a cycle"),
    ],
)
def test_what_is_no_profile_is_refused_where_it_stands(
    tmp_path: Path, text: str, message: str
) -> None:
    file = tmp_path / "graph.txt"
    file.write_text(text)
    assert refusal(file).startswith(message)

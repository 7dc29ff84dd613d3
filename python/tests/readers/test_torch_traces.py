"""Execution traces of PyTorch: storages become tensors and variables, Kineto gives the times."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from given import is_planned, lines, read_json, refusal

from pardnn import readers

RELU = "aten::relu(Tensor self) -> Tensor"
T = "aten::t(Tensor(a) self) -> Tensor(a)"
MM = "aten::mm(Tensor self, Tensor mat2) -> Tensor"
FOREACH = "aten::_foreach_add_.List(Tensor(a!)[] self, Tensor[] other, *, Scalar alpha=1) -> ()"


def tensor(number: int, storage: int, count: int) -> list[Any]:
    return [number, storage, 0, count, 4, "cuda:0"]


def node(
    number: int, name: str, parent: int, schema: str, inputs: list[Any], outputs: list[Any]
) -> dict[str, Any]:
    return {
        "name": name, "id": number, "rf_id": number, "parent": parent, "op_schema": schema,
        "inputs": inputs, "outputs": outputs,
    }  # fmt: skip


def newer(row: dict[str, Any]) -> dict[str, Any]:
    """The same node in schema 1.1."""
    attrs = [{"name": name, "value": row[name]} for name in ("rf_id", "op_schema")]
    inputs, outputs = ({"values": row[name]} for name in ("inputs", "outputs"))
    return {
        "id": row["id"], "name": row["name"], "ctrl_deps": row["parent"], "inputs": inputs,
        "outputs": outputs, "attrs": attrs,
    }  # fmt: skip


def trace() -> dict[str, Any]:
    x, w, h = tensor(10, 20, 6), tensor(11, 21, 9), tensor(12, 22, 6)
    return {
        "schema": "1.0.1",
        "pid": 7,
        "nodes": [
            node(1, "process", 1, "", [], []),
            node(3, "aten::t", 1, T, [w], [tensor(13, 21, 9)]),
            node(4, "aten::mm", 1, MM, [x, tensor(13, 21, 9)], [h]),
            node(5, "aten::empty", 4, "aten::empty(int[] size) -> Tensor", [[6]], [h]),
            node(6, "Optimizer.step#SGD.step", 1, "", [], []),
            node(7, "aten::_foreach_add_", 6, FOREACH, [[w, x], [h, h], 1], []),
        ],
    }


#  w ──> t, mm (reads x) ──> each of w and x changes by a part of one call
STEP = [
    "op storage20 Read 0 < storage20.value > =0 @storage20 ph=f",
    "op storage21 Read 0 < storage21.value > =0 @storage21 ph=f",
]


def test_storages_are_tensors_and_those_that_change_variables(tmp_path: Path) -> None:
    for schema in ("1.0.1", "1.1.0-chakra.0.0.4"):
        value = trace() | {"schema": schema}
        if schema != "1.0.1":
            value["nodes"] = [newer(row) for row in value["nodes"]]
        reading = read_json(tmp_path, value)
        assert reading.counts == {"nodes": 6, "schema": schema}
        found = lines(reading)
        assert found[:2] == [
            "var storage20.value 24 @storage20",
            "var storage21.value 36 @storage21",
        ]
        assert set(STEP) < set(found)
        ops = {line.split()[1]: line for line in found if line.startswith("op")}
        assert "aten%3A%3At ? < storage21 > =0" in ops["aten%3A%3At.3"]
        assert "? < storage20 storage21 > 24 ph=f" in ops["aten%3A%3Amm.4"]
        update = ops["aten%3A%3A_foreach_add_.7"]
        assert "? < !storage21 aten%3A%3Amm.4" in update and update.endswith("@storage21 ph=u")
        assert "^aten%3A%3At.3" in update
        assert "aten%3A%3Aempty.5" not in ops
        assert "--costs" in " ".join(reading.notes)


def span(kind: str, name: str, ts: int, dur: int, **more: int) -> dict[str, Any]:
    args = {name.replace("_", " "): value for name, value in more.items()}
    return {
        "ph": "X", "cat": kind, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur,
        "args": args,
    }  # fmt: skip


def kineto() -> dict[str, Any]:
    """Three iterations of 100 us: kernels of 5, 9 and 7 us inside of mm, t without."""
    events = []
    for at, kernel in enumerate((5, 9, 7)):
        start = 100 * at
        events += [
            span("cpu_op", "aten::t", start, 2 + at, External_id=3 + 50 * at),
            span("cpu_op", "aten::mm", start + 10, 30, External_id=4 + 50 * at),
            span("cuda_runtime", "launch", start + 15, 3, correlation=at),
            span("kernel", "sgemm", start + 60, kernel, correlation=at),
            span("cpu_op", "aten::_foreach_add_", start + 70, 15, External_id=7 + 50 * at),
        ]
    return {"schemaVersion": 1, "traceEvents": events}


def test_times_are_medians_of_kernels_or_of_the_host(tmp_path: Path) -> None:
    costs = tmp_path / "kineto.json"
    costs.write_text(json.dumps(kineto()))
    reading = read_json(tmp_path, trace(), readers.Options(costs=str(costs)))
    ns = {line.split()[1]: line.split()[3] for line in lines(reading) if line[:2] == "op"}
    assert ns["aten%3A%3At.3"] == "3000"
    assert ns["aten%3A%3Amm.4"] == "7000"
    # 15 us for 36 and 24 bytes
    assert ns["aten%3A%3A_foreach_add_.7"] == "9000"
    assert ns["aten%3A%3A_foreach_add_.7.2"] == "6000"
    assert reading.notes[1] == "3 of 3 ops have times, medians of up to 3 runs"
    assert is_planned(reading)


def test_counts_that_do_not_fit_leave_the_id_or_the_name(tmp_path: Path) -> None:
    value = trace()
    again = node(8, "aten::relu", 1, RELU, [tensor(12, 22, 6)], [tensor(14, 23, 6)])
    value["nodes"] += [again, again | {"id": 9, "rf_id": 9}]
    costs = tmp_path / "kineto.json"
    events = kineto()
    for external, dur in ((9, 20), (30, 4), (31, 6)):  # three calls for two
        events["traceEvents"].append(
            span("cpu_op", "aten::relu", 1000 + external, dur, External_id=external)
        )
    costs.write_text(json.dumps(events))
    reading = read_json(tmp_path, value, readers.Options(costs=str(costs)))
    ns = {line.split()[1]: line.split()[3] for line in lines(reading) if line[:2] == "op"}
    assert ns["aten%3A%3Arelu.9"] == "20000"
    assert ns["aten%3A%3Arelu.8"] == "6000"  # the median of 20, 4 and 6
    assert reading.notes[2] == "1 of them have the median of all calls of their name"


def test_a_kineto_trace_alone_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "kineto.json"
    file.write_text(json.dumps(kineto()))
    assert "with this file behind --costs" in refusal(file)
    file.write_text(json.dumps(trace()))
    options = readers.Options(costs=str(file))
    assert "found no Kineto trace" in refusal(file, options)


def test_what_no_trace_has_is_named(tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    for change, message in (
        ({"parent": 99}, "nodes[1]: found the parent 99"),
        ({"id": 1}, "nodes[1]: found the id 1 a second time"),
        ({"inputs": 5}, "nodes[1]: found inputs or outputs that are no list"),
        ({"inputs": [tensor(1, 2, 1 << 62)]}, "nodes[1]: found a tensor of"),
        ({"inputs": [tensor(1, 2, -3)]}, "nodes[1]: found a tensor of -12 bytes"),
        ({"rf_id": "x"}, 'nodes[1]: found the rf_id "x"'),
        ({"attrs": [4]}, "nodes[1]: attrs: found"),
    ):
        value = trace()
        value["nodes"][1] |= change
        file.write_text(json.dumps(value))
        assert message in refusal(file)
    value = trace()
    value["nodes"][2] |= {"parent": 5}
    file.write_text(json.dumps(value))
    assert "a cycle of parents" in refusal(file)

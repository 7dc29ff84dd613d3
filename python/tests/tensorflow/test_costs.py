"""Costs are measured once for each distinct op, remembered, and estimated where that cannot be."""

from __future__ import annotations

import importlib
import json
import logging
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from pardnn.tensorflow import costs
from pardnn.tensorflow.loops import regions_of


class HereWorkers:
    """A cluster whose worker is this process, counting the ops it was asked to run."""

    def __init__(self, limit: int | None = None) -> None:
        self.limits: list[int | None] = [limit]
        self.measured = 0

    def call(self, number: int, target: str, argument: Any, timeout_s: float | None = None) -> Any:
        module, _, function = target.partition(":")
        argument = json.loads(json.dumps(argument))
        self.measured += len(argument.get("ops", []))
        return json.loads(json.dumps(getattr(importlib.import_module(module), function)(argument)))

    def memory(self, number: int) -> dict[str, int]:
        return {"current": 0, "peak": 0}


def graph_of(build: Any) -> Any:
    graph = tf.Graph()
    with graph.as_default():
        build()
    return graph


def op_of(graph: Any, kind: str, number: int = 0) -> Any:
    return [op for op in graph.get_operations() if op.type == kind][number]


def products() -> None:
    """Two equal products of 512 x 512 matrices, another, and two additions of small vectors."""
    x = tf.compat.v1.placeholder(tf.float32, [512, 512])
    y = tf.matmul(x, x)
    z = tf.matmul(y, x)
    tf.matmul(z, x, transpose_b=True)
    v = tf.compat.v1.placeholder(tf.float32, [8])
    tf.raw_ops.AddV2(x=v, y=v)
    tf.raw_ops.AddV2(x=v[:4], y=v[4:])


def test_equal_ops_are_measured_once_and_the_next_run_measures_nothing(tmp_path: Path) -> None:
    graph, workers = graph_of(products), HereWorkers()
    table = costs.measure(graph, workers, tmp_path)
    # Two kinds of products, one class of small additions, one of slices of vectors.
    assert workers.measured == 4
    first, second = (table.cost(op_of(graph, "MatMul", n)) for n in (0, 1))
    assert first == second
    assert first[2] == "measured"
    # 2 * 512^3 = 268 million operations take no processor less than 100 us.
    assert first[0] > 100_000

    again = HereWorkers()
    assert costs.measure(graph, again, tmp_path).cost(op_of(graph, "MatMul")) == first
    assert again.measured == 0


def test_workspace_is_what_a_kernel_takes_beyond_its_outputs() -> None:
    def build() -> None:
        x = tf.compat.v1.placeholder(tf.float32, [16, 64, 8, 64])
        tf.einsum("aecd,abcd->acbe", x, x)

    graph = graph_of(build)
    _, workspace, source = costs.measure(graph, HereWorkers(), None).cost(op_of(graph, "Einsum"))
    assert source == "measured"
    # Both operands, 2 MiB each, are transposed before they are multiplied.
    assert workspace >= 4 << 20


def test_an_op_that_has_no_room_on_the_worker_is_estimated(tmp_path: Path) -> None:
    graph = graph_of(products)
    # Two inputs of 1 MiB each ask for 6 MiB, and 2 MiB of a worker are free in small pieces only.
    table = costs.measure(graph, HereWorkers(limit=7 << 20), tmp_path)
    ns, workspace, source = table.cost(op_of(graph, "MatMul"))
    assert (workspace, source) == (0, "analytical")
    assert ns > 0
    # It is tried again in the next run, with a larger worker.
    later = costs.measure(graph, HereWorkers(), tmp_path)
    assert later.cost(op_of(graph, "MatMul"))[2] == "measured"


def test_estimates_follow_bytes_and_arithmetic() -> None:
    def build() -> None:
        x = tf.compat.v1.placeholder(tf.float32, [1000, 1000])
        tf.identity(x)
        tf.matmul(x, x)

    graph = graph_of(build)
    rates = costs.Rates(bytes_per_s=1e9, flops_per_s=1e10, eager_ns=0, graph_ns=100)
    table = costs.CostTable(regions_of(graph), rates=rates)
    # Three matrices of 4 MB at 1 GB/s, and 2 * 1000^3 operations at 10 GFLOP/s.
    assert table.cost(op_of(graph, "MatMul"))[0] == 100 + 12_000_000 + 200_000_000
    assert table.cost(op_of(graph, "Identity"))[0] == 100


def test_shapes_that_an_op_takes_as_input_are_given_when_it_is_measured() -> None:
    def build() -> None:
        x = tf.compat.v1.placeholder(tf.float32, [4, 32, 32, 8])
        kernel = tf.compat.v1.placeholder(tf.float32, [3, 3, 8, 16])
        y = tf.compat.v1.placeholder(tf.float32, [4, 32, 32, 16])
        shapes = tf.raw_ops.ShapeN(input=[x, kernel])
        same = {"strides": [1, 1, 1, 1], "padding": "SAME"}
        tf.raw_ops.Conv2DBackpropInput(input_sizes=shapes[0], filter=kernel, out_backprop=y, **same)

    graph = graph_of(build)
    table = costs.measure(graph, HereWorkers(), None)
    assert table.cost(op_of(graph, "Conv2DBackpropInput"))[2] == "measured"


def test_a_cache_that_cannot_be_read_is_written_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    graph = graph_of(products)
    costs.measure(graph, HereWorkers(), tmp_path)
    (file,) = tmp_path.iterdir()
    file.write_text("{")
    with caplog.at_level(logging.WARNING):
        costs.measure(graph, HereWorkers(), tmp_path)
    assert "not readable" in caplog.text
    assert json.loads(file.read_text())["measured"]


def test_a_cache_that_cannot_be_written_is_said_and_does_no_harm(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "file"
    folder.write_text("")
    with caplog.at_level(logging.WARNING):
        table = costs.measure(graph_of(products), HereWorkers(), folder)
    assert "not remembered" in caplog.text
    assert table.rates.graph_ns > 0


def test_a_loop_costs_its_trips() -> None:
    def build() -> None:
        x = tf.compat.v1.placeholder(tf.float32, [64, 64])
        tf.while_loop(
            lambda n, y: n < 7, lambda n, y: (n + 1, tf.matmul(y, x)), [tf.constant(0), x]
        )

    graph = tf.__internal__.FuncGraph("loop")
    with graph.as_default():
        build()
    rates = costs.Rates(bytes_per_s=1e18, flops_per_s=1e9, eager_ns=0, graph_ns=1)
    table = costs.CostTable(regions_of(graph), rates=rates)
    (loop,) = [op for op in graph.get_operations() if "While" in op.type]
    # Seven products of 2 * 64^3 operations at 1 GFLOP/s; starts of ops come to less than a us.
    assert table.cost(loop)[0] == pytest.approx(7 * 2 * 64**3, abs=1000)

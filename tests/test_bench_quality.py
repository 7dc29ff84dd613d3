"""What bench/quality says of plans: means, losses, and graphs in another project's format."""

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import pardnn

BENCH = Path(__file__).parents[1] / "bench" / "quality"
sys.path.insert(0, str(BENCH))
import corpus  # noqa: E402
import measure  # noqa: E402
import report  # noqa: E402
from settings import Setting  # noqa: E402

from transcript import program  # noqa: E402


def row(graph: str, step_ns: int, *, algorithm: str = "auto", fits: bool = True) -> dict[str, Any]:
    return {
        "graph": graph,
        "part": "tuning",
        "devices": 4,
        "link": "50GB/s+10us",
        "contention": "off",
        "memory": "1.3",
        "algorithm": algorithm,
        "fits": fits,
        "step_ns": step_ns,
        "bound_ns": 50,
        "simple_bound_ns": 40,
        "cpu_s": 0.5,
        "wall_s": 0.25,
    }


def test_the_geometric_mean_of_two_and_eight_is_four() -> None:
    assert report.geometric_mean([2, 8]) == pytest.approx(4)
    assert math.isnan(report.geometric_mean([]))


def test_a_group_counts_the_plans_that_fit() -> None:
    rows = [row("a", 100), row("b", 400), row("c", 1, fits=False)]
    rows += [row("a", 200, algorithm="etf"), row("c", 900, algorithm="etf")]
    automatic, etf = report.group_lines(rows, ("devices",))
    # 100 / 50 and 400 / 50: sqrt(2 * 8); to the other bound sqrt(2.5 * 10); 3 * 0.5 s.
    assert automatic == ["4", "auto", "2/3", "4.000", "5.000", "1.000", "1.5", "0.8"]
    # sqrt(4 * 18), sqrt(5 * 22.5); only of graph a do both fit: 200 / 100.
    assert etf == ["4", "etf", "2/2", "8.485", "10.607", "2.000", "1.0", "0.5"]


def test_a_loss_is_a_longer_group_or_a_plan_that_no_longer_fits() -> None:
    old = [row("a", 1000), row("b", 1000), row("c", 5, fits=False)]
    # The mean of 1.01 and 1 is 1.00499, which is still allowed.
    assert report.losses(old, [row("a", 1010), row("b", 1000), row("c", 5, fits=False)]) == []
    (longer,) = report.losses(old, [row("a", 1012), row("b", 1000), row("c", 5, fits=False)])
    assert longer.endswith("tuning auto: steps are 0.60 % longer")
    lost = report.losses(old, [row("a", 1000), row("b", 1000, fits=False)])
    assert [sentence.split(": ")[1] for sentence in lost] == [
        "no longer fits",
        "not planned any more",
    ]


def test_a_comparison_prints_changes_only() -> None:
    old = [row("a", 1000), row("b", 1000), row("c", 9, fits=False)]
    assert report.comparison(old, old) == "no change"
    changes = report.comparison(old, [row("a", 900), row("b", 1000), row("c", 8)]).splitlines()
    assert [line.split()[0] for line in changes[:1]] == ["-10.00"]
    assert changes[1].split()[:3] == ["fits", "now", "c"]
    assert changes[2].split()[:4] == ["-5.13", "%", "mean", "of"]  # sqrt(0.9) = 0.9487
    assert len(changes) == 3


def test_a_limit_is_a_multiple_of_the_even_share() -> None:
    assert Setting(4, "50GB/s+10us", "off", "1.3").limit_bytes(1000) == 325  # 1.3 * 1000 / 4
    assert Setting(4, "50GB/s+10us", "off", "2.0").limit_bytes(1001) == 500  # 500.5, rounded down


def test_the_keys_of_a_graph_file_are_those_that_need_a_place(tmp_path: Path) -> None:
    graph = pardnn.Graph()
    graph.op("x", "Input", 0, outputs=[8], every=True)
    graph.var("w", 8)
    graph.op(pardnn.escape_key("a b"), "MatMul", 5, ["x"], [8])
    for name in ("plain.pdg", "small.pdg.gz"):
        graph.write(str(tmp_path / name))
        assert sorted(measure.keys(tmp_path / name)) == ["a%20b", "w"]


def test_a_folder_holds_graph_files_and_operator_graphs(tmp_path: Path) -> None:
    (tmp_path / "a.pdg").write_text("pdg 1\n")
    content = {"nodes": [{"id": 0, "name": "n", "fpgaLatency": 1, "isBackwardNode": False}]}
    (tmp_path / "b_training.json").write_text(json.dumps(content | {"edges": []}))
    (tmp_path / "other.json").write_text("{}")
    cache = tmp_path / "cache"
    cache.mkdir()
    graphs = corpus.of_folder(tmp_path, cache)
    assert [(graph.name, graph.part) for graph in graphs] == [
        ("a", "given"),
        ("b_training", "given"),
    ]
    assert pardnn.Graph.read(str(graphs[1].file)).op_keys == ["n0"]


def test_no_graph_for_tuning_is_held_out_too() -> None:
    graphs = corpus.listed(Path("cache"))
    assert len({graph.name for graph in graphs}) == len(graphs)
    assert {graph.part for graph in graphs} == {"tuning", "held-out"}
    assert {graph.part for graph in graphs if graph.quick} == {"tuning", "held-out"}


@pytest.mark.timeout(900)  # half a minute of one free core
def test_no_group_of_plans_is_worse_than_the_baseline() -> None:
    command = [sys.executable, str(BENCH / "run.py"), "--check", "--program", program()]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=890)
    assert done.returncode == 0, done.stdout + done.stderr

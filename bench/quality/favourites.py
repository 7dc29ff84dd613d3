"""Favourite children by linear program, as the paper of `m-sct` has them, against the row's own.

usage: python bench/quality/favourites.py [--folder DIR] [--devices K] [--memory X] [--json-out F]

The program of Hanen and Munier, relaxed: of every edge x = 0 means that its reader is its
producer's favourite and the value need not cross; an op has at most one favourite and is that of
at most one; the longest path shall be shortest. An edge whose x comes out below 0.1 is a favourite,
as in Baechi. HiGHS solves it (build/venv-quality); the C++ row lists with these favourites, with
the greedy ones it chooses itself, and with none.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import corpus
import highspy
import numpy as np
from measure import Measured
from settings import Setting

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "build" / "pardnn"
LISTER = ROOT / "build" / "release" / "pardnn_favourites"
CACHE = ROOT / "build" / "bench-quality"
LINK = "50GB/s+10us"
LINK_NUMBERS = ["50000000000", "10000"]
A_FAVOURITE = 0.1  # x below it


def program(durations: list[int], edges: list[tuple[int, int, int]]) -> highspy.HighsLp:
    """Columns: when each op starts, x of each edge, the longest path; times in units of it."""
    ops, arcs = len(durations), len(edges)
    unit = max(1.0, float(sum(durations)) / max(1, ops))
    lp = highspy.HighsLp()
    lp.num_col_ = ops + arcs + 1
    lp.col_cost_ = np.concatenate([np.zeros(ops + arcs), [1.0]])
    lp.col_lower_ = np.zeros(lp.num_col_)
    lp.col_upper_ = np.concatenate([np.full(ops, np.inf), np.ones(arcs), [np.inf]])
    lower: list[float] = []
    starts, indices, values = [0], [], []

    def row(least: float, entries: list[tuple[int, float]]) -> None:
        lower.append(least)
        indices.extend(column for column, _ in entries)
        values.extend(value for _, value in entries)
        starts.append(len(indices))

    ends: dict[tuple[int, bool], list[int]] = {}
    for number, (producer, reader, crossing) in enumerate(edges):
        entries = [(reader, 1.0), (producer, -1.0), (ops + number, -crossing / unit)]
        row(durations[producer] / unit, entries)
        ends.setdefault((producer, True), []).append(ops + number)
        ends.setdefault((reader, False), []).append(ops + number)
    for columns in ends.values():
        row(len(columns) - 1, [(column, 1.0) for column in columns])
    for op, duration in enumerate(durations):
        row(duration / unit, [(ops + arcs, 1.0), (op, -1.0)])
    lp.num_row_ = len(lower)
    lp.row_lower_, lp.row_upper_ = np.array(lower), np.full(len(lower), np.inf)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_, lp.a_matrix_.index_ = np.array(starts), np.array(indices)
    lp.a_matrix_.value_ = np.array(values)
    return lp


def favourites(
    durations: list[int], edges: list[tuple[int, int, int]], seconds: float
) -> str | None:
    """A line "producer reader" for each; nothing when the solver needs longer."""
    solver = highspy.Highs()
    solver.silent()
    solver.setOptionValue("solver", "simplex")  # the interior point calls some of these infeasible
    solver.setOptionValue("time_limit", seconds)
    solver.passModel(program(durations, edges))
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    x = solver.getSolution().col_value[len(durations) : len(durations) + len(edges)]
    chosen = [edge for edge, value in zip(edges, x, strict=True) if value < A_FAVOURITE]
    return "".join(f"{producer} {reader}\n" for producer, reader, _ in chosen)


def measured(graph: corpus.Graph, devices: int, memory: str, seconds: float) -> dict[str, Any]:
    graph.make(PROGRAM)
    limit = Setting(devices, LINK, "on", memory).limit_bytes(Measured(PROGRAM, graph).whole_bytes)
    where = [str(graph.file), str(devices), str(limit), *LINK_NUMBERS]
    content = json.loads(subprocess.check_output([LISTER, "edges", *where]))
    edges = list({(p, r): (p, r, c) for p, r, c in content["edges"]}.values())
    began = time.monotonic()
    chosen = favourites(content["durations_ns"], edges, seconds)
    row = {"graph": graph.name, "edges": len(edges), "seconds": time.monotonic() - began}
    if chosen is None:
        return row
    steps = subprocess.check_output([LISTER, "steps", *where], input=chosen, text=True)
    return row | {"favourites": chosen.count("\n")} | json.loads(steps)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, action="append", default=[], help="graphs besides")
    parser.add_argument("--devices", type=int, default=4)
    parser.add_argument("--memory", default="2.0", help="times the even share, or unlimited")
    parser.add_argument("--seconds", type=float, default=120, help="of the solver for each graph")
    parser.add_argument("--json-out", type=Path)
    options = parser.parse_args()
    if not LISTER.exists():
        sys.exit(f"found no program {LISTER}: cmake --preset release -DPARDNN_BENCH=ON, and build")
    CACHE.mkdir(parents=True, exist_ok=True)
    graphs = [graph for graph in corpus.listed(CACHE) if graph.quick]
    for folder in options.folder:
        graphs += corpus.of_folder(folder, CACHE)
    rows = []
    print("graph                    edges  solver s  favourites  step / with the row's own")
    for graph in graphs:
        row = measured(graph, options.devices, options.memory, options.seconds)
        rows.append(row)
        told = f"{row['graph']:22} {row['edges']:7} {row['seconds']:9.1f}"
        if "given_ns" in row:
            print(
                f"{told} {row['favourites']:11}  {row['given_ns'] / row['own_ns']:.4f}", flush=True
            )
        else:
            print(f"{told}           -  the solver was not done", flush=True)
    ratios = [math.log(row["given_ns"] / row["own_ns"]) for row in rows if "given_ns" in row]
    if ratios:
        print(f"geometric mean of {len(ratios)}: {math.exp(sum(ratios) / len(ratios)):.4f}")
    if options.json_out is not None:
        options.json_out.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

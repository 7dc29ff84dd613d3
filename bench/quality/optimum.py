"""How far `auto` is from the optimum on small graphs, which CP-SAT of OR-tools proves.

usage: python bench/quality/optimum.py [--graphs N] [--seconds S] [--steps N | --budget TIME]

200 random training steps of 16 to 28 ops on 2 to 4 devices, free links (contention off), memory
unlimited. All times are whole microseconds, so the solver finds exactly what the model means: an op
lasts its cost, one op at a time on a device, and what crosses devices arrives overhead +
bytes / bandwidth after its producer has finished. Exit status 1: fewer optima proven than asked
for, or plans farther from them than the project promises.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import report
from measure import answer
from ortools.sat.python import cp_model
from settings import UNLIMITED, Setting

PROGRAM = Path(__file__).parents[2] / "build" / "pardnn"
LINK = "50GB/s+10us"
BYTES_PER_US = 50_000
OVERHEAD_US = 10
# What the project promises of the plans whose optimum is proven.
PROVEN_SHARE, MEAN, WORST = 0.75, 1.01, 1.05


@dataclass
class SmallGraph:
    """Ops in topological order; times in microseconds."""

    costs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)  # how long the output takes to be sent
    groups: list[int | None] = field(default_factory=list)
    edges: list[tuple[int, int]] = field(default_factory=list)

    def op(self, cost: int, output: int, inputs: list[int], group: int | None = None) -> int:
        number = len(self.costs)
        self.costs.append(cost)
        self.outputs.append(output)
        self.groups.append(group)
        self.edges += [(source, number) for source in dict.fromkeys(inputs)]
        return number

    def text(self) -> str:
        """As a graph file."""
        lines = ["pdg 1"]
        for op, (cost, output) in enumerate(zip(self.costs, self.outputs, strict=True)):
            inputs = " ".join(f"o{source}" for source, reader in self.edges if reader == op)
            group = "" if self.groups[op] is None else f" @g{self.groups[op]}"
            read = f" < {inputs}" if inputs else ""
            lines.append(f"op o{op} Op {cost}us{read} > {output * BYTES_PER_US}{group}")
        return "\n".join(lines) + "\n"

    def crossing(self, op: int) -> int:
        return OVERHEAD_US + self.outputs[op]


def training_step(seed: int) -> SmallGraph:
    """Layers that read one or two earlier ones, gradients of inputs and of weights, updates.

    A layer and its update share the weight, hence a device. 16 to 28 ops.
    """
    chance = random.Random(seed)
    graph = SmallGraph()
    layers = chance.randint(4, 7)
    reads: list[list[int]] = []
    for layer in range(layers):
        near = range(max(0, layer - 4), layer)
        reads.append(sorted(chance.sample(near, min(len(near), chance.randint(1, 2)))))
        graph.op(chance.randint(5, 60), chance.randint(0, 40), reads[layer], layer)
    unread = set(range(layers)) - {source for inputs in reads for source in inputs}
    loss = graph.op(chance.randint(5, 20), 0, sorted(unread))
    gradients: list[list[int]] = [[] for _ in range(layers)]
    for layer in reversed(range(layers)):
        known = [*(gradients[layer] or [loss]), *reads[layer]]
        if reads[layer]:
            back = graph.op(chance.randint(5, 60), chance.randint(0, 40), known)
            for source in reads[layer]:
                gradients[source].append(back)
        of_weight = graph.op(chance.randint(5, 60), chance.randint(0, 40), known)
        graph.op(chance.randint(5, 30), 0, [of_weight], layer)
    return graph


def solve(graph: SmallGraph, devices: int, known_us: int, seconds: float) -> tuple[int, bool]:
    """The shortest step in microseconds, at most `known_us`, and whether that is proven."""
    model = cp_model.CpModel()
    ops = range(len(graph.costs))
    step = model.new_int_var(0, known_us, "step")
    start = [model.new_int_var(0, known_us, f"start{op}") for op in ops]
    # Devices are equal: the n-th op needs no device beyond the n-th.
    on = [[model.new_bool_var(f"on{op}_{k}") for k in range(min(devices, op + 1))] for op in ops]
    intervals: list[list[cp_model.IntervalVar]] = [[] for _ in range(devices)]
    for op in ops:
        model.add_exactly_one(on[op])
        model.add(start[op] + graph.costs[op] <= step)
        for k, here in enumerate(on[op]):
            intervals[k].append(
                model.new_optional_fixed_size_interval_var(
                    start[op], graph.costs[op], here, f"run{op}_{k}"
                )
            )
    for device in intervals:
        model.add_no_overlap(device)
    for source, reader in graph.edges:
        finish = start[source] + graph.costs[source]
        model.add(start[reader] >= finish)
        for k, here in enumerate(on[source]):
            there = on[reader][k].negated()
            model.add(start[reader] >= finish + graph.crossing(source)).only_enforce_if(here, there)
    members: dict[int, list[int]] = {}
    for op, group in enumerate(graph.groups):
        if group is not None:
            members.setdefault(group, []).append(op)
    for first, *others in members.values():
        for other in others:
            for k, here in enumerate(on[other]):
                model.add(here == (on[first][k] if k < len(on[first]) else 0))
    model.minimize(step)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = 2
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE:
        raise AssertionError("the plan's own step is no solution")
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return known_us, False
    return round(solver.objective_value), status == cp_model.OPTIMAL


def compared(program: Path, seed: int, search: list[str], seconds: float) -> dict[str, object]:
    graph, devices = training_step(seed), 2 + seed % 3
    setting = Setting(devices, LINK, "off", UNLIMITED)
    with tempfile.NamedTemporaryFile("w", suffix=".pdg") as file:
        file.write(graph.text())
        file.flush()
        command = [str(program), "compare", file.name, *setting.options(0), *search]
        (row,) = answer([*command, "--algorithms", "auto", "--format", "json"])[0]
    # Starts are sums of costs and transfers: whole microseconds.
    step_us, rest = divmod(row["step_ns"], 1000)
    assert rest == 0, row
    optimum_us, proven = solve(graph, devices, step_us, seconds)
    if proven and row["bound_ns"] > optimum_us * 1000:
        raise AssertionError(f"seed {seed}: the bound {row['bound_ns']} ns is above the optimum")
    return {
        "seed": seed,
        "ops": len(graph.costs),
        "devices": devices,
        "step_us": step_us,
        "best_us": optimum_us,
        "proven": proven,
        "bound_us": row["bound_ns"] / 1000,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=Path, default=PROGRAM)
    parser.add_argument("--graphs", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=20, help="of the solver, each graph (20)")
    parser.add_argument("--steps", default="200", help="of the search (200)")
    parser.add_argument("--budget", help="instead of steps")
    parser.add_argument("--json-out", type=Path)
    options = parser.parse_args()
    search = ["--budget", options.budget] if options.budget else ["--steps", options.steps]
    rows = []
    for seed in range(options.graphs):
        rows.append(compared(options.program, seed, search, options.seconds))
        if sys.stderr.isatty():
            print(f"\r\033[K{seed + 1}/{options.graphs}", end="", file=sys.stderr)
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    if options.json_out is not None:
        options.json_out.write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")
    proven = [row for row in rows if row["proven"]]
    ratios = [row["step_us"] / row["best_us"] for row in proven]
    mean, worst = report.geometric_mean(ratios), max(ratios, default=1)
    bound = report.geometric_mean(row["best_us"] / row["bound_us"] for row in proven)
    print(f"{len(rows)} graphs, {len(proven)} optima proven")
    print(f"auto / optimum: mean {mean:.4f}, worst {worst:.4f}")
    print(f"optimal in {sum(ratio == 1 for ratio in ratios)}; optimum / bound: mean {bound:.4f}")
    good = len(proven) >= PROVEN_SHARE * len(rows) and mean <= MEAN and worst <= WORST
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

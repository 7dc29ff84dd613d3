"""How good the plans are: many graphs, machines, memory limits and algorithms.

usage: python bench/quality/run.py [--quick] [--folder DIR ...] [--algorithms A,B] [...]
       python bench/quality/run.py --check            compare with baseline.json
       python bench/quality/run.py --write-baseline   measure baseline.json anew

Every plan is made by a process of its own, one after another unless --jobs says more. See
docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import fnmatch
import functools
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import corpus
import report
import settings
from measure import Measured, Row

HERE = Path(__file__).parent
BASELINE = HERE / "baseline.json"
PROGRAM = HERE.parents[1] / "build" / "pardnn"
CACHE = HERE.parents[1] / "build" / "bench-quality"
# What the baseline holds of each plan, and how it is measured: in steps, which give the same plans
# on every machine.
BASELINE_MEMBERS = (*report.PLAN, "fits", "step_ns")
BASELINE_STEPS = "60"
BASELINE_SETTINGS = [
    *settings.every([2, 8], ["50GB/s+10us"], ["off"], [settings.UNLIMITED]),
    *settings.every([4], ["12GB/s+25us"], ["on"], [settings.UNLIMITED, "1.3"]),
]
BASELINE_ALGORITHMS = ["auto", "etf", "pardnn"]


def words(text: str) -> list[str]:
    return text.split(",")


def links(text: str) -> list[str]:
    for link in words(text):
        if link.count("+") != 1:
            raise argparse.ArgumentTypeError(f"found {link!r}, expected such as 12GB/s+25us")
    return words(text)


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    what = parser.add_argument_group("what is planned")
    what.add_argument("--graphs", default="*", metavar="PATTERN", help="names of graphs (*)")
    what.add_argument("--part", choices=("tuning", "held-out", "given"), help="only this part")
    what.add_argument("--quick", action="store_true", help="only graphs marked quick")
    what.add_argument("--large", action="store_true", help="also graphs marked large")
    what.add_argument("--folder", type=Path, action="append", default=[], metavar="DIR",
                      help="graphs of a folder besides")  # fmt: skip
    what.add_argument("--only-folders", action="store_true", help="no graph of corpus.toml")
    how = parser.add_argument_group("lists of what it is planned for, separated by commas")
    how.add_argument("--devices", type=words, default=["2", "4", "8", "16"], metavar="K,...")
    how.add_argument("--links", type=links, default=["50GB/s+10us", "12GB/s+25us"],
                     metavar="BANDWIDTH+OVERHEAD,...")  # fmt: skip
    how.add_argument("--contention", type=words, default=["off", "on"], metavar="off,on")
    how.add_argument("--memory", type=words, default=[settings.UNLIMITED, "2.0", "1.3", "1.1"],
                     metavar="unlimited,X,...", help="X: times the even share")  # fmt: skip
    how.add_argument("--algorithms", type=words, default=["auto", "etf", "pardnn"], metavar="A,...")
    how.add_argument("--sequence", choices=("free", "given", "fifo"), default="free")
    how.add_argument("--guarantee", choices=("any-timing",))
    how.add_argument("--budget", metavar="TIME", help="of each plan")
    how.add_argument("--steps", metavar="N", help="of each search (200 without --budget)")
    run = parser.add_argument_group("the run and its answer")
    run.add_argument("--program", type=Path, default=PROGRAM, help="(build/pardnn)")
    run.add_argument("--jobs", type=int, default=1, help="plans made at once (1)")
    run.add_argument("--details", action="store_true", help="also a line for each plan")
    run.add_argument("--json-out", type=Path, metavar="FILE")
    run.add_argument("--against", type=Path, metavar="OLD.json", help="print changes only")
    run.add_argument("--check", action="store_true", help="against the baseline; 1: a loss")
    run.add_argument("--write-baseline", action="store_true")
    return parser.parse_args(arguments)


def chosen_graphs(options: argparse.Namespace) -> list[corpus.Graph]:
    graphs = [] if options.only_folders else corpus.listed(CACHE)
    if options.quick:
        graphs = [graph for graph in graphs if graph.quick]
    graphs = [graph for graph in graphs if options.large or not graph.large]
    for folder in options.folder:
        graphs += corpus.of_folder(folder, CACHE)
    return [
        graph
        for graph in graphs
        if fnmatch.fnmatch(graph.name, options.graphs) and options.part in (None, graph.part)
    ]


def plan_one(measured: Measured, search: list[str], plan: tuple[settings.Setting, str]) -> Row:
    return measured.plan(*plan, search)


def measure(
    program: Path,
    graphs: list[corpus.Graph],
    wanted: list[settings.Setting],
    algorithms: list[str],
    search: list[str],
    jobs: int,
) -> list[Row]:
    rows: list[Row] = []
    total = len(graphs) * len(wanted) * len(algorithms)
    with ThreadPoolExecutor(jobs) as pool:
        for graph in graphs:
            graph.make(program)
            measured = Measured(program, graph)
            if any(setting.memory != settings.UNLIMITED for setting in wanted):
                _ = measured.whole_bytes  # before threads ask for it at once
            plans = [(setting, algorithm) for setting in wanted for algorithm in algorithms]
            one = functools.partial(plan_one, measured, search)
            for row in pool.map(one, plans):
                rows.append(row)
                if sys.stderr.isatty():
                    print(f"\r\033[K{len(rows)}/{total} {graph.name}", end="", file=sys.stderr)
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    return rows


def measure_baseline(options: argparse.Namespace) -> list[Row]:
    graphs = [graph for graph in corpus.listed(CACHE) if graph.quick]
    search = ["--steps", BASELINE_STEPS]
    rows = measure(
        options.program, graphs, BASELINE_SETTINGS, BASELINE_ALGORITHMS, search, options.jobs
    )
    return [{member: row[member] for member in BASELINE_MEMBERS} for row in rows]


def write_rows(file: Path, rows: list[Row]) -> None:
    file.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")


def check(options: argparse.Namespace) -> int:
    old, new = json.loads(BASELINE.read_text()), measure_baseline(options)
    losses = report.losses(old, new)
    for sentence in losses or [report.comparison(old, new)]:
        print(sentence)
    return 1 if losses else 0


def main() -> int:
    options = options_of()
    if not options.program.exists():
        sys.exit(f"found no program {options.program}: make build")
    CACHE.mkdir(parents=True, exist_ok=True)
    if options.check:
        return check(options)
    if options.write_baseline:
        write_rows(BASELINE, measure_baseline(options))
        return 0
    search = ["--budget", options.budget] if options.budget else ["--steps", options.steps or "200"]
    search += ["--sequence", options.sequence]
    if options.guarantee is not None:
        search += ["--guarantee", options.guarantee]
    graphs = chosen_graphs(options)
    devices = [int(count) for count in options.devices]
    wanted = [*settings.every(devices, options.links, options.contention, options.memory)]
    rows = measure(options.program, graphs, wanted, options.algorithms, search, options.jobs)
    if options.json_out is not None:
        write_rows(options.json_out, rows)
    if options.against is not None:
        print(report.comparison(json.loads(options.against.read_text()), rows))
        return 0
    if options.details:
        print(report.details(rows), end="\n\n")
    print(report.summary(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())

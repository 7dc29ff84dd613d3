"""CPU seconds of the planner on large graphs, against the bounds that the project keeps to.

usage: python bench/speed/run.py PROGRAM [--ops N] [--devices K ...] [--repeats N] [--json-out FILE]
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
from pathlib import Path

FAMILIES = ("transformer", "char-rnn", "inception")
# Seconds of one thread at 100,000 ops, memory unlimited.
BOUNDS = {
    "read": 0.15,
    "row etf": 0.3,
    "row pardnn": 2.0,
    "simulate with memory": 0.06,
}


def measure(program: Path, family: str, ops: int, devices: int, repeats: int) -> dict[str, float]:
    command = [str(program), family, str(ops), str(devices), str(repeats)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    rows = [json.loads(line) for line in lines]
    return {row["what"]: row["cpu_seconds"] for row in rows}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=Path)
    parser.add_argument("--ops", type=int, default=100_000)
    parser.add_argument("--devices", type=int, nargs="+", default=[4, 16])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json-out", type=Path)
    options = parser.parse_args()
    results = {}
    over = []
    for family, devices in itertools.product(FAMILIES, options.devices):
        name = f"{family}, {options.ops} ops, {devices} devices"
        results[name] = measure(options.program, family, options.ops, devices, options.repeats)
        print(f"{name}, CPU seconds")
        for what, seconds in results[name].items():
            bound = BOUNDS.get(what) if options.ops == 100_000 else None
            note = "" if bound is None else f"  (at most {bound})"
            print(f"  {what:22}{seconds:10.4f}{note}")
            if bound is not None and seconds > bound:
                over.append(f"{name}: {what} took {seconds:.3f} s, {bound} s is the bound")
    if options.json_out is not None:
        options.json_out.write_text(json.dumps(results, indent=2) + "\n")
    for sentence in over:
        print(sentence)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())

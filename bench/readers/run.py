"""Reads every file of a folder and compares what its reader counts with the folder's list.

The list is MANIFEST.tsv: a line of names, among them `path` and `counts`, then a line a file;
`counts` is a JSON object, of which the members that the reader also counts are compared. Graphs
without unknown costs and sizes are planned for four devices and checked. The exit status is 1 when
a count differs, a plan is wrong, or reading ends with a defect.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

READ = """
import json, sys
import pardnn
from pardnn import readers
from pardnn.readers.main import parse_options
try:
    reading = readers.read(sys.argv[1], parse_options(sys.argv[3:]))
except (readers.ReadError, pardnn.Error) as refusal:
    print(json.dumps({"refused": str(refusal)}))
    sys.exit()
reading.graph.write(sys.argv[2])
print(json.dumps({"format": reading.format, "counts": reading.counts, "notes": [*reading.notes]}))
"""
UNKNOWN = "expected a file of one of the formats"


@dataclass
class Result:
    """What became of a file. `cpu_s` and `peak_bytes`: of the process that read it."""

    path: str
    bytes: int
    format: str
    outcome: str
    cpu_s: float
    peak_bytes: int
    wrong: bool


def listed(folder: Path) -> Iterator[tuple[str, Any]]:
    lines = (folder / "MANIFEST.tsv").read_text().splitlines()
    names = lines[0].split("\t")
    for line in lines[1:]:
        row = dict(zip(names, line.split("\t"), strict=False))
        yield row["path"], json.loads(row["counts"])


def differences(expected: Any, found: dict[str, Any]) -> list[str]:
    if not isinstance(expected, dict):
        return []
    both = [name for name in expected if name in found]
    return [
        f"{name}: found {found[name]}, expected {expected[name]}"
        for name in both
        if json.loads(json.dumps(found[name])) != expected[name]
    ]


def measure(folder: Path, path: str, expected: Any, options: list[str], kept: Path) -> Result:
    file, out = folder / path, kept / "graph.pdg"
    command = [sys.executable, "-c", MEASURED, sys.executable, "-c", READ]
    done = subprocess.run(
        [*command, str(file), str(out), *options], capture_output=True, text=True, check=False
    )
    *lines, usage = done.stderr.splitlines() or [""]
    cpu_s, peak_bytes = (float(usage.split()[0]), int(usage.split()[1])) if usage else (0.0, 0)
    size = file.stat().st_size
    if not done.stdout:
        return Result(path, size, "-", "DEFECT " + " ".join(lines)[-200:], cpu_s, peak_bytes, True)
    said = json.loads(done.stdout)
    if "refused" in said:
        sentence = said["refused"].removeprefix(str(file)).lstrip(": ")
        refused = "UNREAD" if UNKNOWN in sentence else "refused"
        return Result(path, size, "-", f"{refused}: {sentence}", cpu_s, peak_bytes, False)
    wrong = differences(expected, said["counts"])
    outcome = "; ".join(wrong) or f"{len(said['counts'])} counts"
    if is_open(out):
        outcome += ", not planned: something is unknown"
    else:
        problem = plan(out, kept / "plan.json")
        outcome += f", {problem or 'planned'}"
        wrong += [problem] if problem else []
    return Result(path, size, said["format"], outcome, cpu_s, peak_bytes, bool(wrong))


# Runs a command and says what it used, on the last line of standard error.
MEASURED = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, file=sys.stderr)
"""


def is_open(graph: Path) -> bool:
    """Whether a cost or a size of the graph is unknown."""
    for line in graph.read_text().splitlines():
        words = line.split()
        if words[0] == "var" and words[2] == "?":
            return True
        if words[0] == "op" and ("?" in words[3].split(",") or "?" in words or "?*" in words):
            return True
    return False


def plan(graph: Path, out: Path) -> str | None:
    """What is wrong with the plan on four devices, or None."""
    for words in (
        ["plan", graph, "--devices", "4", "--steps", "1", "-o", out],
        ["check", graph, out],
    ):
        done = subprocess.run(
            ["pardnn", *map(str, words)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            return f"{words[0]} failed: {(done.stderr or done.stdout).strip()[-200:]}"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", type=Path, required=True, help="that holds MANIFEST.tsv")
    parser.add_argument("--only", default="", help="paths that contain this")
    parser.add_argument("--json-out", type=Path, help="write the results there")
    parser.add_argument("options", nargs="*", help="of the readers, behind --: --dim batch=32")
    found = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as kept:
        for path, expected in listed(found.folder):
            if found.only not in path or path.endswith((".pdg", ".pdg.gz")):
                continue
            result = measure(found.folder, path, expected, found.options, Path(kept))
            results.append(result)
            print(
                f"{'WRONG' if result.wrong else 'ok':5} {path}  {result.format}  "
                f"{result.cpu_s:.2f} s  {result.peak_bytes >> 20} MiB  {result.outcome}",
                flush=True,
            )
    if found.json_out:
        found.json_out.write_text(json.dumps([asdict(each) for each in results], indent=2) + "\n")
    wrong = sum(result.wrong for result in results)
    unread = sum(result.outcome.startswith("UNREAD") for result in results)
    print(f"{len(results)} files, {wrong} wrong, {unread} of no known format")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

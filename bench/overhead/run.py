#!/usr/bin/env python3
"""What pardnn costs where it cannot gain anything: step time on one worker, and time to start.

    python bench/overhead/run.py [--pairs N] [--json-out FILE] {step,start}

`step` runs a transformer as an ordinary run and through `pardnn run --devices 1`, by turns, and
compares the median step of each pair. `start` compares the time to the first step of a larger graph
over two workers with that of the ordinary run, first with an empty cache and then with a warm one.
Both sides use one thread of each kind and no graph rewriter. Needs the environment of TensorFlow.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "examples" / "transformer_dropout.py"
ORDINARY = ROOT / "tests" / "end_to_end" / "tensorflow" / "ordinary.py"
# A step of half a second or so on one core, and one of about 15,000 nodes.
HEAVY = ["--batch", "4", "--length", "128", "--vocabulary", "512", "--width", "512"]
HEAVY += ["--heads", "16", "--layers", "4", "--epochs", "1", "--steps", "16"]
DEEP = ["--layers", "16", "--width", "128", "--epochs", "1", "--steps", "5"]
TIMEOUT_S = 600
# The first two steps also set the function up.
SETTING_UP = 2


@dataclasses.dataclass(frozen=True)
class Run:
    """Seconds from the start of the process to its first loss, and of a step in the median."""

    first_loss_s: float
    step_s: float


def run(command: list[str], folder: pathlib.Path) -> Run:
    """Runs a script that prints a JSON line with its loss after every step."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder), "TF_CPP_MIN_LOG_LEVEL": "2"}
    log = folder / "log"
    start = time.perf_counter()
    stamps = []
    with (
        log.open("w") as errors,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment
        ) as process,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("{") and "loss" in json.loads(line):
                stamps.append(time.perf_counter() - start)
        status = process.wait(timeout=TIMEOUT_S)
    if status != 0:
        raise RuntimeError(f"status {status}: {' '.join(command)}\n{log.read_text()[-4000:]}")
    steps = [after - before for before, after in zip(stamps, stamps[1:], strict=False)]
    return Run(stamps[0], statistics.median(steps[SETTING_UP:]))


def ordinary(sizes: list[str], folder: pathlib.Path) -> Run:
    return run([sys.executable, str(ORDINARY), str(SCRIPT), *sizes], folder)


def placed(devices: int, sizes: list[str], folder: pathlib.Path) -> Run:
    options = ["--devices", str(devices)]
    return run([sys.executable, "-m", "pardnn.launch", *options, str(SCRIPT), *sizes], folder)


def compare_steps(pairs: int) -> dict[str, object]:
    """Median steps of interleaved pairs; the first placed run also fills the cache."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        found = []
        for _ in range(pairs):
            found.append((ordinary(HEAVY, folder), placed(1, HEAVY, folder)))
            one, other = found[-1]
            ratio = other.step_s / one.step_s
            print(
                f"step: {one.step_s * 1e3:.0f} ms ordinary, {other.step_s * 1e3:.0f} ms placed, "
                f"{ratio:.3f}",
                flush=True,
            )
    ratios = [other.step_s / one.step_s for one, other in found]
    print(f"median of {pairs} pairs: {statistics.median(ratios):.3f}")
    return {
        "pairs": [[one.step_s, other.step_s] for one, other in found],
        "median_ratio": statistics.median(ratios),
    }


def compare_starts(pairs: int) -> dict[str, object]:
    """Seconds to the first step beyond the ordinary run's."""
    found: dict[str, list[float]] = {"cold": [], "warm": []}
    for _ in range(pairs):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            usual = ordinary(DEEP, folder)
            for kind, beyond in found.items():
                there = placed(2, DEEP, folder)
                beyond.append(there.first_loss_s - usual.first_loss_s)
                print(
                    f"start: {usual.first_loss_s:.1f} s ordinary, {there.first_loss_s:.1f} s "
                    f"placed, {kind} cache: {beyond[-1]:.1f} s more",
                    flush=True,
                )
    medians = {kind: statistics.median(beyond) for kind, beyond in found.items()}
    print(", ".join(f"median {kind}: {value:.1f} s more" for kind, value in medians.items()))
    return {"more_s": found, "median_more_s": medians}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--json-out", type=pathlib.Path)
    parser.add_argument("what", choices=["step", "start"])
    options = parser.parse_args()
    compare = compare_steps if options.what == "step" else compare_starts
    results = compare(options.pairs)
    if options.json_out is not None:
        options.json_out.write_text(json.dumps(results, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

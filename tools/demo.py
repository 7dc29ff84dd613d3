#!/usr/bin/env python3
"""Shows the main job: a transformer too large for one memory-limited worker trains over several.

`make demo` runs it, `make demo FRAMEWORK=torch` with a torch script. Three runs of the same
unedited script: in one process that TensorFlow's own allocator, or for torch the system, limits,
which fails; in one process without a limit, for the losses that are right; and through `pardnn run`
over workers of that same limit. What is seen goes to stdout, and as data to build/demo.json. The
exit status is 0 only if the limited process failed for lack of memory and the workers gave the same
losses.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[1]
MIB = 1 << 20
# A run takes well under a minute on two free cores; this ends one that hangs.
TIMEOUT_S = 600


@dataclasses.dataclass(frozen=True)
class Story:
    """One framework's script, its sizes, the workers, and how its ordinary run is done.

    ``plain``: what the script is written with. ``limiter``: who refuses memory in one process.
    ``refusal``: the name of that error, and a word in the sentence that says so.
    """

    script: pathlib.Path
    sizes: str
    ordinary: pathlib.Path
    workers: int
    limit_mib: int
    plain: str
    limiter: str
    refusal: tuple[str, str]


STORIES = {
    "tensorflow": Story(
        script=ROOT / "examples" / "transformer_dropout.py",
        sizes="--epochs 1 --steps 12 --batch 8 --length 128 "
        "--vocabulary 512 --width 256 --heads 16 --layers 4",
        ordinary=ROOT / "tests" / "end_to_end" / "tensorflow" / "ordinary.py",
        workers=4,
        limit_mib=80,
        plain="Keras",
        limiter="TensorFlow's allocator",
        refusal=("ResourceExhaustedError", "OOM when allocating"),
    ),
    "torch": Story(
        script=ROOT / "examples" / "torch" / "tied_transformer.py",
        sizes="--steps 12 --micro-batches 1 --batch 8 --length 128 "
        "--vocabulary 512 --width 256 --heads 8 --layers 4",
        ordinary=ROOT / "tests" / "end_to_end" / "torch" / "ordinary.py",
        workers=4,
        limit_mib=80,
        plain="PyTorch",
        limiter="its memory",
        refusal=("RuntimeError", "can't allocate memory"),
    ),
}


class Run:
    """A program that was started: its output line by line, its status, and the end of its log."""

    def __init__(self, name: str, command: list[str], folder: pathlib.Path) -> None:
        self.log = folder / f"{name}.log"
        self.start = time.perf_counter()
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                command, cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True
            )
        self.alarm = threading.Timer(TIMEOUT_S, self.process.kill)
        self.alarm.daemon = True
        self.alarm.start()

    def lines(self) -> Iterator[str]:
        assert self.process.stdout is not None
        yield from self.process.stdout

    def end(self) -> int:
        """Waits for the program; its exit status."""
        for _ in self.lines():
            pass
        status = self.process.wait()
        self.alarm.cancel()
        return status

    def seconds(self) -> float:
        return time.perf_counter() - self.start

    def last_words(self) -> str:
        return "".join(f"    {line}\n" for line in self.log.read_text().splitlines()[-15:])


def say(text: str = "") -> None:
    print(text, flush=True)


def mib(number: float) -> str:
    return f"{number / MIB:.0f} MiB"


def losses_of(lines: Iterator[str]) -> Iterator[float]:
    """The value of "loss" on each line that is a JSON object which has one."""
    for line in lines:
        if line.startswith("{"):
            record = json.loads(line)
            if "loss" in record:
                yield record["loss"]


def start_ordinary(story: Story, name: str, options: list[str], folder: pathlib.Path) -> Run:
    result = folder / f"{name}.json"
    result.unlink(missing_ok=True)
    command = [sys.executable, str(story.ordinary), *options, "--json-out", str(result)]
    return Run(name, [*command, str(story.script), *story.sizes.split()], folder)


def program_path() -> pathlib.Path:
    """`pardnn run` of the environment that runs this; ends the demo where it is missing."""
    path = pathlib.Path(sys.executable).parent / "pardnn-run"
    if not path.exists():
        sys.exit(f"{path}: there is no such program; `make demo` installs it first")
    return path


def start_placed(story: Story, folder: pathlib.Path, limit_mib: int, workers: int) -> Run:
    (folder / "placed.json").unlink(missing_ok=True)
    program = str(program_path())
    options = ["--devices", str(workers), "--memory", f"{limit_mib}MiB"]
    options += ["--json-out", str(folder / "placed.json")]
    return Run("placed", [program, *options, str(story.script), *story.sizes.split()], folder)


def out_of_memory(story: Story, error: str | None) -> str | None:
    """The framework's own sentence about the memory it could not have, if that was the error."""
    name, words = story.refusal
    if error is None or not error.startswith(name):
        return None
    said = [line.strip() for line in error.splitlines() if words in line]
    return f"{name}: {said[0].removeprefix(f'{name}: ')}" if said else None


def show_one_process(
    story: Story, run: Run, folder: pathlib.Path, limit_mib: int
) -> dict[str, Any]:
    """Tells how the run in one limited process ended."""
    status = run.end()
    result = json.loads((folder / "limited.json").read_text())
    error = out_of_memory(story, result["error"])
    say(f"One process, {story.limiter} limited to {limit_mib} MiB:")
    say(f"    {error}" if error else f"    did not run out of memory, status {status}")
    if error is None:
        say(run.last_words())
    say(f"    after {len(result['losses'])} steps, exit status {status}\n")
    return {
        "limit_bytes": limit_mib * MIB,
        "status": status,
        "error": error,
        "losses": result["losses"],
    }


def show_ordinary(run: Run, folder: pathlib.Path) -> dict[str, Any]:
    """Tells what the unlimited run needed; ends the demo if even that failed."""
    status = run.end()
    if status != 0:
        sys.exit(f"the ordinary run failed with status {status}:\n{run.last_words()}")
    result: dict[str, Any] = json.loads((folder / "ordinary.json").read_text())
    say(f"A process without a limit trains, and needs {mib(result['peak_bytes'])}.\n")
    return {name: result[name] for name in ("losses", "peak_bytes", "step_s", "seconds")}


def show_placed(run: Run, folder: pathlib.Path, right: list[float]) -> dict[str, Any]:
    """Follows the run over several workers, each loss beside the right one."""
    losses: list[float] = []
    for step, loss in enumerate(losses_of(run.lines()), start=1):
        if step == 1:
            say(f"    first step after {run.seconds():.0f} s (start, capture, costs, plan)")
            say(f"    {'step':>4}  {'loss, one process':>20}  {'loss, workers':>20}")
        expected = right[step - 1] if step <= len(right) else None
        verdict = "same bits" if loss == expected else "DIFFERENT"
        say(f"    {step:>4}  {expected!s:>20}  {loss!s:>20}  {verdict}")
        losses.append(loss)
    status = run.end()
    if status != 0:
        say(f"    exit status {status}:\n{run.last_words()}")
    path = folder / "placed.json"
    functions = json.loads(path.read_text())["functions"] if path.exists() else []
    step_entry = next((entry for entry in functions if entry["training"]), {})
    return {"status": status, "losses": losses, "seconds": run.seconds(), **step_entry}


def show_table(placed: dict[str, Any], ordinary: dict[str, Any]) -> None:
    say()
    say(f"    {'worker':>6}  {'limit':>8}  {'predicted peak':>14}  {'measured peak':>13}")
    columns = ("limit_bytes", "predicted_peak_bytes", "measured_peak_bytes")
    rows = zip(*(placed[column] for column in columns), strict=True)
    for worker, (limit, predicted, measured) in enumerate(rows):
        say(f"    {worker:>6}  {mib(limit):>8}  {mib(predicted):>14}  {mib(measured):>13}")
    say(
        f"    a step takes {placed['measured_step_s']:.2f} s "
        f"({placed['predicted_step_s']:.2f} s predicted, {ordinary['step_s']:.2f} s in one process)"
    )


def verdict(summary: dict[str, Any], need_bytes: int) -> str:
    took = f"in {summary['seconds']:.0f} s"
    if not summary["passed"]:
        return f"FAILED {took}. Data: build/demo.json, logs: build/demo/"
    times = need_bytes / summary["limit_bytes"]
    return (
        f"PASSED {took}: a model that needs {times:.1f} times what a worker has was trained, "
        "with losses equal to the last bit. Data: build/demo.json"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--framework", choices=sorted(STORIES), default="tensorflow")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--memory", type=int, metavar="MIB", help="of a worker")
    options = parser.parse_args()
    story = STORIES[options.framework]
    workers = options.workers or story.workers
    limit_mib = options.memory or story.limit_mib
    program_path()
    start = time.perf_counter()
    folder = ROOT / "build" / "demo"
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

    say(f"The script is {story.script.relative_to(ROOT)}, which is plain {story.plain}:")
    say(f"    {story.sizes}\n")
    # Side by side: the limited one mostly waits, ten seconds for a request that is refused.
    limited = start_ordinary(story, "limited", ["--memory", str(limit_mib)], folder)
    unlimited = start_ordinary(story, "ordinary", ["--peak"], folder)
    one_process = show_one_process(story, limited, folder, limit_mib)
    ordinary = show_ordinary(unlimited, folder)

    say(f"pardnn run --devices {workers} --memory {limit_mib}MiB {story.script.name} ...")
    placed = show_placed(
        start_placed(story, folder, limit_mib, workers), folder, ordinary["losses"]
    )
    same = placed["losses"] == ordinary["losses"] and len(placed["losses"]) >= 10
    if "measured_peak_bytes" in placed:
        show_table(placed, ordinary)
    say()
    passed = one_process["error"] is not None and placed["status"] == 0 and same
    summary = {
        "script": str(story.script.relative_to(ROOT)),
        "arguments": story.sizes.split(),
        "workers": workers,
        "limit_bytes": limit_mib * MIB,
        "one_process": one_process,
        "ordinary": ordinary,
        "placed": placed,
        "losses_equal": same,
        "passed": passed,
        "seconds": time.perf_counter() - start,
    }
    (ROOT / "build" / "demo.json").write_text(json.dumps(summary, indent=2) + "\n")
    say(verdict(summary, ordinary["peak_bytes"]))
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())

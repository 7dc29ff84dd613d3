"""PyTorch: what a compiled step costs, how well peaks are predicted, how large a model is captured.

usage: python bench/torch/run.py WHAT [--json-out FILE]

overhead: one worker against plain PyTorch, interleaved, least of several runs; CPU seconds of all
  processes beside it.
peaks: predicted against measured bytes of each worker, for models that one worker or three hold.
capture: a transformer of 1.5 billion parameters on the meta device; seconds and memory.
unrolled: capture and plan of an LSTM's cells in a loop; seconds.
towers: a model of two independent towers on two workers against one, interleaved.
tied: gradients of a weight of two names over two devices, and by torch's own pipelining.
script: what each op of an unchanged script costs the rank that owns everything, and another one.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import script_ops
import tied_weights
import torch
from models import LARGE, SMALL, Case, Language, Unrolled, adam, entropy, words
from torch import nn

import pardnn.torch
from pardnn.errors import Refusal

ROUNDS, STEPS = 5, 5
MIB = 1 << 20


def plain_step(model: nn.Module, optimizer: torch.optim.Optimizer, x: Any, y: Any) -> None:
    loss = entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def compiled(case: Case, **options: Any) -> tuple[pardnn.torch.Step, Any]:
    torch.manual_seed(0)
    model = case.model()
    batch = case.batch()
    step = pardnn.torch.compile(model, entropy, case.optimizer(model), batch, **options)
    return step, batch


def cpu_seconds(step: pardnn.torch.Step | None) -> float:
    """Of this process and of the step's workers."""
    own = os.times()
    total = own.user + own.system
    for pid in step.worker_pids if step is not None else ():
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def least(calls: dict[str, tuple[Callable[[], Any], Any]]) -> dict[str, dict[str, float]]:
    """Of each: the least mean seconds over STEPS calls, the rounds of all interleaved, and the mean
    CPU seconds.
    """
    found = {name: {"s": float("inf"), "cpu_s": 0.0} for name in calls}
    for call, _ in calls.values():
        call()
    for _ in range(ROUNDS):
        for name, (call, step) in calls.items():
            begin, cpu_begin = time.perf_counter(), cpu_seconds(step)
            for _ in range(STEPS):
                call()
            seconds = (time.perf_counter() - begin) / STEPS
            found[name]["s"] = min(found[name]["s"], seconds)
            found[name]["cpu_s"] += (cpu_seconds(step) - cpu_begin) / STEPS / ROUNDS
    return found


def overhead() -> list[dict[str, Any]]:
    rows = []
    for name, case in SMALL.items():
        model = case.model()
        optimizer = case.optimizer(model)
        step, (x, y) = compiled(case, devices=1)
        with step:
            found = least(
                {
                    "plain": (lambda m=model, o=optimizer, x=x, y=y: plain_step(m, o, x, y), None),
                    "compiled": (lambda s=step, x=x, y=y: s(x, y), step),
                }
            )
        one, other = found["plain"], found["compiled"]
        ratios = {"ratio": other["s"] / one["s"], "cpu_ratio": other["cpu_s"] / one["cpu_s"]}
        rows.append({"model": name, "plain": one["s"], "compiled": other["s"], **ratios})
    return rows


def spread(case: Case) -> tuple[pardnn.torch.Step, Any]:
    """A step over three workers that may each hold little more than half of it."""
    step, _ = compiled(case, devices=1)
    step.close()
    (whole,) = step.plan.peaks.values()
    reserve = step.reserve_bytes
    share = (whole - reserve) * 0.45
    while True:
        try:
            return compiled(case, devices=3, memory=int(share + reserve), metered=True)
        except Refusal:
            share *= 1.2
            if share > whole:
                raise


def peaks() -> list[dict[str, Any]]:
    rows = []
    for name, case in LARGE.items():
        for step, (x, y) in (compiled(case, devices=1, metered=True), spread(case)):
            with step:
                for _ in range(2):
                    step(x, y)
                measured = step.measured_peaks()
            for device, found in measured.items():
                predicted = step.plan.peaks[device] - step.reserve_bytes
                rows.append(
                    {
                        "model": name,
                        "workers": len(measured),
                        "device": device,
                        "predicted_mib": predicted / MIB,
                        "measured_mib": found / MIB,
                        "ratio": found / predicted if predicted else None,
                    }
                )
    return rows


def capture() -> list[dict[str, Any]]:
    with torch.device("meta"):
        model = Language(50_257, 1600, 48, 25)
    count = sum(parameter.numel() for parameter in model.parameters())
    batch = words(8, 512, 50_257)
    begin = time.perf_counter()
    found = pardnn.torch.capture(model, entropy, adam(model), batch, measure=False)
    seconds = time.perf_counter() - begin
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    ops = len(found.graph.op_keys)
    return [{"parameters": count, "ops": ops, "seconds": seconds, "rss_mib": most / MIB}]


def unrolled() -> list[dict[str, Any]]:
    model = Unrolled(1000, 128, 4)
    begin, cpu_begin = time.perf_counter(), time.process_time()
    found = pardnn.torch.capture(model, entropy, adam(model), words(8, 46, 1000))
    captured = time.perf_counter()
    machine = pardnn.Machine.uniform(devices=3, memory=16 << 30, bandwidth=10**9, overhead=200_000)
    plan = pardnn.plan(found.graph, machine, sequence="given")
    return [
        {
            "ops": len(found.graph.op_keys),
            "capture": captured - begin,
            "plan": time.perf_counter() - captured,
            "cpu": time.process_time() - cpu_begin,
            "fits": plan.fits,
        }
    ]


def towers() -> list[dict[str, Any]]:
    one, (x, y) = compiled(SMALL["towers"], devices=1)
    two, _ = compiled(SMALL["towers"], devices=2)
    with one, two:
        steps = {"one": one, "two": two}
        found = least({name: (lambda s=s: s(x, y), s) for name, s in steps.items()})
    return [
        {
            **{name: of["s"] for name, of in found.items()},
            **{f"{name}_cpu": of["cpu_s"] for name, of in found.items()},
            "faster": found["one"]["s"] / found["two"]["s"],
            "predicted": one.plan.step_ns / two.plan.step_ns,
        }
    ]


def main() -> int:
    kinds = {
        "overhead": overhead, "peaks": peaks, "capture": capture, "unrolled": unrolled,
        "towers": towers, "tied": tied_weights.compared, "script": script_ops.measured,
    }  # fmt: skip
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=kinds)
    parser.add_argument("--json-out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rows = kinds[options.what]()
    for row in rows:
        print(
            "  ".join(
                f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items()
            )
        )
    if options.json_out is not None:
        options.json_out.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""PyTorch: what a compiled step costs, how well peaks are predicted, how large a model is captured.

usage: python bench/torch/run.py overhead|peaks|capture|towers|script [--json-out FILE]

overhead: one worker against plain PyTorch, interleaved, least of several runs.
peaks: predicted against measured bytes of each worker, for several models over three workers.
capture: a transformer of 1.5 billion parameters on the meta device; seconds and memory.
towers: a model of two independent towers on two workers against one, interleaved.
script: what each op of an unchanged script costs the rank that owns everything, and another one.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

import pardnn.torch

ROUNDS, STEPS = 5, 5
LAYERS = """
import json, sys, time
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

class Count(TorchDispatchMode):
    ops = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.ops += 1
        return func(*args, **(kwargs or {}))

what, name, width = sys.argv[1], sys.argv[2], int(sys.argv[3])
layers = [m for _ in range(30) for m in (nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width))]
model = nn.Sequential(*layers)
settings = {"momentum": 0.9} if name == "SGD" else {}
optimizer = getattr(torch.optim, name)(model.parameters(), lr=0.01, **settings)
x = torch.randn(64, width)

def step():
    begin = time.process_time()
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return time.process_time() - begin

if what == "count":
    step()
    with Count() as count:
        step()
    print(json.dumps(count.ops))
else:
    print(json.dumps(min(step() for _ in range(60))))
"""


class Block(nn.Module):
    """A transformer layer of plain modules."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, -1).transpose(1, 2)
            for part in self.qkv(self.norms[0](x)).chunk(3, dim=-1)
        )
        seen = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(nn.functional.gelu(self.up(self.norms[1](x))))


class Language(nn.Module):
    """A causal language model with a tied head."""

    def __init__(self, words: int, width: int, layers: int, heads: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(self.norm(self.blocks(self.embed(x))), self.embed.weight)


class Towers(nn.Module):
    """Two towers that meet in the last layer."""

    def __init__(self, width: int, depth: int) -> None:
        super().__init__()

        def tower() -> nn.Module:
            layers = [m for _ in range(depth) for m in (nn.Linear(width, width), nn.ReLU())]
            return nn.Sequential(*layers)

        self.towers = nn.ModuleList([tower(), tower()])
        self.last = nn.Linear(2 * width, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(torch.cat([tower(x) for tower in self.towers], dim=1))


def dense(width: int, depth: int) -> nn.Module:
    layers = [m for _ in range(depth) for m in (nn.Linear(width, width), nn.ReLU())]
    return nn.Sequential(*layers, nn.Linear(width, 10))


def convolutional(width: int) -> nn.Module:
    def block(before: int, after: int) -> list[nn.Module]:
        return [nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU()]

    return nn.Sequential(
        *block(3, width), *block(width, width), nn.MaxPool2d(2), *block(width, 2 * width),
        *block(2 * width, 2 * width), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(2 * width, 10),
    )  # fmt: skip


def entropy(output: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return nn.functional.cross_entropy(output.flatten(0, -2), y.flatten())


def classes(count: int) -> torch.Tensor:
    return torch.randint(0, 10, (count,))


def adam(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters())


def momentum(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)


def words() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randint(0, 500, (4, 64)), torch.randint(0, 500, (4, 64))


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[], Any], Any]] = {
    "dense": (lambda: dense(512, 8), lambda: (torch.randn(64, 512), classes(64)), adam),
    "language": (lambda: Language(500, 128, 4, 4), words, adam),
    "language, momentum": (lambda: Language(500, 192, 6, 4), words, momentum),
    "convolutional": (
        lambda: convolutional(32), lambda: (torch.randn(16, 3, 32, 32), classes(16)), momentum),
    "towers": (lambda: Towers(768, 6), lambda: (torch.randn(256, 768), classes(256)), momentum),
}  # fmt: skip


def plain_step(model: nn.Module, optimizer: torch.optim.Optimizer, x: Any, y: Any) -> None:
    loss = entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def least_seconds(calls: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Of each: the least mean over STEPS calls, the rounds of all interleaved."""
    least = dict.fromkeys(calls, float("inf"))
    for call in calls.values():
        call()
    for _ in range(ROUNDS):
        for name, call in calls.items():
            begin = time.perf_counter()
            for _ in range(STEPS):
                call()
            least[name] = min(least[name], (time.perf_counter() - begin) / STEPS)
    return least


def overhead() -> list[dict[str, Any]]:
    rows = []
    for name, (make, batch, optimizer_of) in MODELS.items():
        model = make()
        optimizer = optimizer_of(model)
        x, y = batch()
        with pardnn.torch.compile(model, entropy, optimizer, (x, y), devices=1) as step:
            found = least_seconds(
                {
                    "plain": lambda m=model, o=optimizer, x=x, y=y: plain_step(m, o, x, y),
                    "compiled": lambda s=step, x=x, y=y: s(x, y),
                }
            )
        rows.append({"model": name, **found, "ratio": found["compiled"] / found["plain"]})
    return rows


def peaks() -> list[dict[str, Any]]:
    rows = []
    for name, (make, batch, optimizer_of) in MODELS.items():
        model = make()
        x, y = batch()
        optimizer = optimizer_of(model)
        with pardnn.torch.compile(
            model, entropy, optimizer, (x, y), devices=3, metered=True
        ) as step:
            for _ in range(3):
                step(x, y)
            reserve = step.reserve_bytes
            for device, measured in step.measured_peaks().items():
                predicted = step.plan.peaks[device] - reserve
                rows.append(
                    {
                        "model": name,
                        "device": device,
                        "predicted": predicted,
                        "measured": measured,
                        "ratio": measured / predicted if predicted else None,
                    }
                )
    return rows


def capture() -> list[dict[str, Any]]:
    with torch.device("meta"):
        model = Language(50_257, 1600, 48, 25)
    count = sum(parameter.numel() for parameter in model.parameters())
    x, y = torch.randint(0, 50_257, (8, 512)), torch.randint(0, 50_257, (8, 512))
    begin = time.perf_counter()
    found = pardnn.torch.capture(model, entropy, adam(model), (x, y), measure=False)
    seconds = time.perf_counter() - begin
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    ops = len(found.graph.op_keys)
    return [{"parameters": count, "ops": ops, "seconds": seconds, "rss_bytes": most}]


def towers() -> list[dict[str, Any]]:
    x, y = torch.randn(256, 768), classes(256)
    steps = {}
    for devices in (1, 2):
        torch.manual_seed(0)
        model = Towers(768, 6)
        steps[devices] = pardnn.torch.compile(
            model, entropy, momentum(model), (x, y), devices=devices
        )
    found = least_seconds({str(n): lambda s=step: s(x, y) for n, step in steps.items()})
    predicted = steps[1].plan.step_ns / steps[2].plan.step_ns
    for step in steps.values():
        step.close()
    return [{"one": found["1"], "two": found["2"], "faster": found["1"] / found["2"],
             "predicted": predicted}]  # fmt: skip


def script() -> list[dict[str, Any]]:
    rows = []
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        file, found = Path(folder, "layers.py"), Path(folder, "found.json")
        file.write_text(LAYERS)

        def run(*words: str) -> Any:
            command = [sys.executable, *words]
            done = subprocess.run(command, env=environment, capture_output=True, check=True)
            return json.loads(done.stdout)

        launcher = ["-m", "pardnn.launch", "--devices", "2", "--algorithm", "one-device"]
        for name, width in [("SGD", 64), ("AdamW", 64), ("SGD", 512)]:
            options = [str(file), "time", name, str(width)]
            ops = run(str(file), "count", name, str(width))
            plain = run(*options)
            run(*launcher, "--json-out", str(found), *options)
            step = json.loads(found.read_text())["functions"][0]
            own, other = step["least_cpu_s"]
            if step["variable_bytes"][1]:
                own, other = other, own
            rows.append(
                {
                    "optimizer": name,
                    "width": width,
                    "ops": ops,
                    "plain_ms": plain * 1e3,
                    "owner_adds_us": (own - plain) / ops * 1e6,
                    "other_us": other / ops * 1e6,
                }
            )
    return rows


def main() -> int:
    rows_of = [overhead, peaks, capture, towers, script]
    kinds = {function.__name__: function for function in rows_of}
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
                f"{k} {v:.3f}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items()
            )
        )
    if options.json_out is not None:
        options.json_out.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

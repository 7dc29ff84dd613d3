"""What each op of an unchanged script costs the rank that owns everything, and another rank."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

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


def measured() -> list[dict[str, Any]]:
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

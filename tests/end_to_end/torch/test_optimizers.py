"""Optimizers that step on each rank over its own parameters change no bit; nor do others."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

TIMEOUT_S = 240.0
# Only the first model is planned: of the others weights are on rank 0, and biases on rank 1, away
# from their gradients.
SCRIPT = """
import copy
import torch
from torch import nn, optim

def made(cls, **settings):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 4))
    groups = [{"params": model[0].parameters()}, {"params": model[2].parameters(), "lr": 0.02}]
    return model, cls(groups, lr=0.01, **settings)

def train(model, optimizer, steps):
    for _ in range(steps):
        loss = model(torch.randn(16, 8)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()

for cls, settings in [
    (optim.SGD, {}),
    (optim.SGD, {"momentum": 0.9, "nesterov": True}),
    (optim.Adam, {"amsgrad": True}),
    (optim.AdamW, {"foreach": True}),
    (optim.Adagrad, {}),
    (optim.RMSprop, {"centered": True, "momentum": 0.5}),
    (optim.Adamax, {}),
    (optim.Adadelta, {}),
    (optim.RAdam, {}),
    (optim.NAdam, {}),
]:
    model, optimizer = made(cls, **settings)
    print(cls.__name__, train(model, optimizer, 7).hex())
    state = copy.deepcopy(optimizer.state_dict())
    for values in state["state"].values():
        print({k: v.double().sum().item() for k, v in values.items() if v is not None})
    model[0].bias.requires_grad_(False)  # from now on it has no gradient
    again = cls(model.parameters(), lr=0.01, **settings)
    optimizer.load_state_dict(state)
    print(train(model, optimizer, 2).hex(), train(model, again, 6).hex())
    print([p.double().sum().item().hex() for p in model.parameters()])
"""


def printed(folder: pathlib.Path, *launcher: str) -> str:
    script = folder / "train.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, *launcher, str(script)],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_own_steps_change_no_bit_of_parameters_or_state(tmp_path: pathlib.Path) -> None:
    expected = printed(tmp_path)
    assert len(expected.splitlines()) > 50
    assert printed(tmp_path, "-m", "pardnn.launch", "--devices", "2") == expected

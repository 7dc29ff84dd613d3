"""A model that no process holds whole: built without memory, made where it trains.

usage: python examples/torch_compile/deferred.py [--width N] [--memory SIZE] [--steps N]

With the defaults weights, gradients and the state of AdamW need 130 MiB; each of three processes
may hold 90 MiB.
"""

import argparse

import torch
from torch import nn

import pardnn.torch

parser = argparse.ArgumentParser()
parser.add_argument("--width", type=int, default=1024)
parser.add_argument("--memory", default="90MiB")
parser.add_argument("--steps", type=int, default=3)
options = parser.parse_args()

torch.manual_seed(0)
torch.set_num_threads(1)
with pardnn.torch.deferred():
    layers = [m for _ in range(8) for m in (nn.Linear(options.width, options.width), nn.ReLU())]
    model = nn.Sequential(*layers, nn.Linear(options.width, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
x, y = torch.randn(32, options.width), torch.randn(32, 1)

with pardnn.torch.compile(
    model, nn.functional.mse_loss, optimizer, (x, y), devices=3, memory=options.memory
) as step:
    print(step.report())
    for number in range(options.steps):
        print(f"step {number + 1}: loss {step(x, y).item():.4f}")
    for name, tensor in step.tensors():  # one at a time
        print(f"{name}: {tuple(tensor.shape)}, mean {tensor.mean().item():.2e}")

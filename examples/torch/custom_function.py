"""Functions with a derivative of their own, one computed by numpy, and hooks on gradients."""

import argparse
import json

import numpy as np
import torch
from torch import nn


class Clamped(torch.autograd.Function):
    """Clamps in the forward pass, and lets every gradient through."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(-1, 1)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * torch.where(x.abs() > 1, 0.5, 1.0)


class Sine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.cosine = np.cos(x.detach().numpy())
        return torch.from_numpy(np.sin(x.detach().numpy()))

    @staticmethod
    def backward(ctx, gradient):
        return gradient * torch.from_numpy(ctx.cosine)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--width", type=int, default=64)
    args = parser.parse_args()

    torch.manual_seed(8)
    first, second = nn.Linear(8, args.width), nn.Linear(args.width, 1)
    second.weight.register_hook(lambda gradient: gradient * 0.5)
    norms = []
    first.register_full_backward_hook(lambda module, given, got: norms.append(got[0].norm().item()))
    optimizer = torch.optim.Adagrad([*first.parameters(), *second.parameters()], lr=0.05)
    for step in range(args.steps):
        x = torch.randn(args.batch, 8)
        loss = (second(Sine.apply(Clamped.apply(first(x)))) - x.sum(1, keepdim=True)).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(json.dumps({"step": step, "loss": loss.item(), "norm": norms[-1]}))


if __name__ == "__main__":
    main()

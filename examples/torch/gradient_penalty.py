"""The loss holds a gradient: backward runs through backward. Spectral norms keep layers tame."""

import argparse
import json

import torch
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--width", type=int, default=64)
    args = parser.parse_args()

    torch.manual_seed(10)
    critic = nn.Sequential(
        spectral_norm(nn.Linear(12, args.width)), nn.Softplus(),
        nn.Linear(args.width, args.width), nn.Softplus(), nn.Linear(args.width, 1),
    )  # fmt: skip
    averaged = torch.optim.swa_utils.AveragedModel(critic)
    optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3)
    for step in range(args.steps):
        real, fake = torch.randn(2, args.batch, 12)
        mix = torch.rand(args.batch, 1)
        between = (mix * real + (1 - mix) * fake).requires_grad_()
        (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
        penalty = (slope.norm(2, dim=1) - 1).pow(2).mean()
        loss = critic(fake).mean() - critic(real).mean() + 10 * penalty
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        averaged.update_parameters(critic)
        print(json.dumps({"step": step, "loss": loss.item(), "penalty": penalty.item()}))
    print(json.dumps({"averaged": averaged(real).mean().item()}))


if __name__ == "__main__":
    main()

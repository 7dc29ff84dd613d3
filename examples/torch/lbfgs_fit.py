"""A curve is fitted by LBFGS, which calls its closure as often as it likes."""

import argparse
import json

import torch
from torch import nn


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--points", type=int, default=64)
    parser.add_argument("--width", type=int, default=32)
    args = parser.parse_args()

    torch.manual_seed(9)
    x = torch.linspace(-3, 3, args.points).unsqueeze(1)
    y = torch.sin(2 * x) + 0.1 * torch.randn_like(x)
    model = nn.Sequential(
        nn.Linear(1, args.width), nn.Tanh(), nn.Linear(args.width, args.width), nn.Tanh(),
        nn.Linear(args.width, 1),
    )  # fmt: skip
    optimizer = torch.optim.LBFGS(
        model.parameters(), lr=0.5, max_iter=6, line_search_fn="strong_wolfe"
    )
    calls = 0

    def closure():
        nonlocal calls
        calls += 1
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        return loss

    for step in range(args.steps):
        loss = optimizer.step(closure)
        print(json.dumps({"step": step, "loss": loss.item(), "calls": calls}))


if __name__ == "__main__":
    main()

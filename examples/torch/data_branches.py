"""What is computed depends on values: early exits, masks, sizes that only the data tells."""

import argparse
import json

import torch
from torch import nn


class EarlyExit(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.embed = nn.Linear(8, width)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.exits = nn.ModuleList(nn.Linear(width, 1) for _ in range(depth))

    def forward(self, x):
        x = torch.tanh(self.embed(x))
        for depth, (layer, leave) in enumerate(zip(self.layers, self.exits)):  # noqa: B007
            x = torch.tanh(layer(x))
            sure = leave(x)
            if sure.abs().mean() > 0.15:
                break
        return sure.squeeze(1), depth


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--batch", type=int, default=24)
    parser.add_argument("--width", type=int, default=48)
    parser.add_argument("--depth", type=int, default=4)
    args = parser.parse_args()

    torch.manual_seed(11)
    model = EarlyExit(args.width, args.depth)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for step in range(args.steps):
        x = torch.randn(args.batch, 8)
        found, depth = model(x)
        wrong = (found > 0) != (x[:, 0] > 0)
        loss = nn.functional.softplus(-found * x[:, 0].sign()).mean()
        if wrong.any():
            loss = loss + found[wrong].abs().sum() / args.batch
        worst = found.detach().topk(3).indices.tolist()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(json.dumps({
            "step": step, "loss": loss.item(), "depth": depth, "wrong": int(wrong.sum()),
            "rows": len(wrong.nonzero()), "worst": worst,
        }))  # fmt: skip


if __name__ == "__main__":
    main()

"""Activations are computed again in backward instead of being kept, dropout included."""

import argparse
import json

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Deep(nn.Module):
    def __init__(self, width, blocks):
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Dropout(0.1),
                nn.Linear(4 * width, width),
            )
            for _ in range(blocks)
        )  # fmt: skip
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        for block in self.blocks:
            x = x + checkpoint(block, x, use_reentrant=False)
        return self.head(x)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--blocks", type=int, default=4)
    args = parser.parse_args()

    torch.manual_seed(6)
    model = Deep(args.width, args.blocks)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, amsgrad=True)
    for step in range(args.steps):
        x = torch.randn(args.batch, args.width)
        loss = (model(x) - x.norm(dim=1, keepdim=True)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(json.dumps({"step": step, "loss": loss.item()}))


if __name__ == "__main__":
    main()

"""A small residual network: batch normalisation with running statistics, dropout, evaluation."""

import argparse
import json

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.first_norm = nn.BatchNorm2d(channels)
        self.second = nn.Conv2d(channels, channels, 3, padding=1, groups=2, bias=False)
        self.second_norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        y = torch.relu(self.first_norm(self.first(x)))
        return torch.relu(x + self.second_norm(self.second(y)))


def make_model(channels, blocks):
    return nn.Sequential(
        nn.Conv2d(3, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU(inplace=True),
        nn.MaxPool2d(2), *[Block(channels) for _ in range(blocks)],
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(channels, 10),
    )  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--channels", type=int, default=16)
    parser.add_argument("--blocks", type=int, default=2)
    parser.add_argument("--side", type=int, default=24)
    args = parser.parse_args()

    torch.manual_seed(4)
    model = make_model(args.channels, args.blocks)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3, momentum=0.9)
    held_out = torch.randn(16, 3, args.side, args.side)
    for step in range(args.steps):
        images = torch.randn(args.batch, 3, args.side, args.side)
        labels = torch.randint(0, 10, (args.batch,))
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(json.dumps({"step": step, "loss": loss.item()}))
        if step % 4 == 3:
            model.eval()
            with torch.inference_mode():
                spread = model(held_out).softmax(dim=1).std().item()
            model.train()
            print(json.dumps({"step": step, "spread": spread}))
    means = {n: b.sum().item() for n, b in model.named_buffers() if n.endswith("running_mean")}
    print(json.dumps(means))


if __name__ == "__main__":
    main()

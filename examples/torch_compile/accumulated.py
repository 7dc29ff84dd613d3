"""A large batch in four parts, whose gradients are added up and clipped before an update.

usage: python examples/torch_compile/accumulated.py [--updates N]
"""

import argparse

import torch
from torch import nn

import pardnn.torch

PARTS = 4

parser = argparse.ArgumentParser()
parser.add_argument("--updates", type=int, default=5)
options = parser.parse_args()


class Smoother(nn.Module):
    """Says what a noisy series was without noise."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(1, 32, num_layers=2, batch_first=True)
        self.out = nn.Linear(32, 1)

    def forward(self, x):
        return self.out(self.lstm(x)[0])


def loss_of_a_part(output, y):
    return nn.functional.mse_loss(output, y) / PARTS


torch.manual_seed(0)
torch.set_num_threads(1)
time = torch.linspace(0, 6, 40)
clean = torch.sin(time + torch.rand(32, 1) * 6).unsqueeze(-1)
noisy = clean + 0.3 * torch.randn_like(clean)
parts = list(zip(noisy.chunk(PARTS), clean.chunk(PARTS), strict=True))

model = Smoother()
optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
with pardnn.torch.compile(
    model,
    loss_of_a_part,
    optimizer,
    parts[0],
    devices=2,
    accumulate=PARTS,
    clip_grad_norm=1.0,
) as step:
    for number in range(options.updates):
        loss = sum(step(x, y).item() for x, y in parts)
        print(f"update {number + 1}: loss {loss:.4f}")

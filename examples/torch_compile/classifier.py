"""An ordinary classifier over two processes; the state it ends with is saved as usual.

usage: python examples/torch_compile/classifier.py [--steps N] [--out FILE]
"""

import argparse

import torch
from torch import nn

import pardnn.torch

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=20)
parser.add_argument("--out", default="classifier.pt")
options = parser.parse_args()

torch.manual_seed(0)
torch.set_num_threads(1)
points = torch.randn(512, 16)
labels = (points.pow(2).sum(1) > 16).long()
dataset = torch.utils.data.TensorDataset(points, labels)
loader = torch.utils.data.DataLoader(dataset, batch_size=64, shuffle=True, drop_last=True)

model = nn.Sequential(
    nn.Linear(16, 128),
    nn.ReLU(),
    nn.Dropout(0.1),
    nn.Linear(128, 128),
    nn.ReLU(),
    nn.Linear(128, 2),
)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.steps)

with pardnn.torch.compile(
    model, nn.functional.cross_entropy, optimizer, next(iter(loader)), devices=2
) as step:
    print(step.report())
    done = 0
    while done < options.steps:
        for x, y in loader:
            loss = step(x, y)
            scheduler.step()
            done += 1
            print(f"step {done}: loss {loss.item():.4f}")
            if done == options.steps:
                break
    torch.save(step.state_dict(), options.out)
model.load_state_dict(torch.load(options.out))

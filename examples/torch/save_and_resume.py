"""Training is saved with its optimizer and random numbers, begun anew, and goes on where it was."""

import argparse
import copy
import json
import pathlib
import tempfile

import torch
from torch import nn


def make(width):
    model = nn.Sequential(nn.Linear(8, width), nn.GELU(), nn.Dropout(0.1), nn.Linear(width, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    return model, optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 3, gamma=0.5)


def train(model, optimizer, schedule, steps):
    for _ in range(steps):
        x = torch.randn(16, 8)
        loss = nn.functional.cross_entropy(model(x), (x[:, 0] > 0).long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        print(json.dumps({"loss": loss.item(), "rate": schedule.get_last_lr()[0]}))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=5, help="before and after")
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--keep", type=pathlib.Path, help="keep the file here")
    args = parser.parse_args()

    torch.manual_seed(13)
    first = make(args.width)
    train(*first, args.steps)
    with tempfile.TemporaryDirectory() as folder:
        path = args.keep or pathlib.Path(folder) / "training.pt"
        state = [part.state_dict() for part in first]
        torch.save({"state": state, "random": torch.get_rng_state()}, path)
        second = make(args.width)
        found = torch.load(path)
    for part, saved in zip(second, found["state"]):
        part.load_state_dict(saved)
    torch.set_rng_state(found["random"])
    train(*second, args.steps)
    twin = copy.deepcopy(second[0])
    same = all(torch.equal(a, b) for a, b in zip(twin.parameters(), second[0].parameters()))
    print(json.dumps({"copied": same, "sum": sum(p.sum() for p in twin.parameters()).item()}))


if __name__ == "__main__":
    main()

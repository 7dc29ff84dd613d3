"""Products in bfloat16 under autocast, and a scaler that skips steps whose gradients overflow."""

import argparse
import json

import torch
from torch import nn


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--width", type=int, default=128)
    args = parser.parse_args()

    torch.manual_seed(7)
    model = nn.Sequential(
        nn.Linear(16, args.width), nn.GELU(), nn.Linear(args.width, args.width), nn.GELU(),
        nn.Linear(args.width, 4),
    )  # fmt: skip
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=3)
    for step in range(args.steps):
        x = torch.randn(args.batch, 16)
        if step == 4:
            x[0] = float("inf")
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = model(x).float().pow(2).mean()
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        print(json.dumps({"step": step, "loss": str(loss.item()), "scale": scaler.get_scale()}))
    total = sum(p.double().sum() for p in model.parameters()).item()
    print(json.dumps({"sum": total}))


if __name__ == "__main__":
    main()

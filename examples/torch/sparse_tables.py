"""Tables of words with sparse gradients: one optimizer for them, another one for the rest."""

import argparse
import json

import torch
from torch import nn


class BagOfWords(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.words = nn.Embedding(words, width, padding_idx=0, sparse=True)
        self.tags = nn.EmbeddingBag(words, width, mode="sum", sparse=True)
        self.head = nn.Sequential(nn.Linear(2 * width, width), nn.ReLU(), nn.Linear(width, 3))

    def forward(self, words, tags):
        return self.head(torch.cat([self.words(words).mean(1), self.tags(tags)], dim=1))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--words", type=int, default=1000)
    parser.add_argument("--width", type=int, default=32)
    args = parser.parse_args()

    torch.manual_seed(16)
    model = BagOfWords(args.words, args.width)
    tables = [model.words.weight, model.tags.weight]
    optimizers = [
        torch.optim.SparseAdam(tables, lr=0.01),
        torch.optim.AdamW(model.head.parameters(), lr=0.01),
    ]
    for step in range(args.steps):
        words = torch.randint(0, args.words, (args.batch, 12))
        tags = torch.randint(0, args.words, (args.batch, 4))
        loss = nn.functional.cross_entropy(model(words, tags), words.sum(1) % 3)
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        touched = model.words.weight.grad.coalesce()
        for optimizer in optimizers:
            optimizer.step()
        rows, norm = touched.values().shape[0], touched.values().norm().item()
        print(json.dumps({"step": step, "loss": loss.item(), "rows": rows, "norm": norm}))


if __name__ == "__main__":
    main()

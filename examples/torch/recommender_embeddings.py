"""Large tables of users and items; most of the model is what a batch hardly touches."""

import argparse
import json

import torch
from torch import nn


class Recommender(nn.Module):
    def __init__(self, users, items, width, sparse):
        super().__init__()
        self.users = nn.Embedding(users, width, sparse=sparse)
        self.items = nn.Embedding(items, width, sparse=sparse)
        self.history = nn.EmbeddingBag(items, width, mode="mean")
        self.score = nn.Sequential(nn.Linear(3 * width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, users, items, seen):
        parts = [self.users(users), self.items(items), self.history(seen)]
        return self.score(torch.cat(parts, dim=1)).squeeze(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rows", type=int, default=2000, help="users, and as many items")
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--sparse", action="store_true", help="sparse gradients of the tables")
    args = parser.parse_args()

    torch.manual_seed(12)
    model = Recommender(args.rows, args.rows, args.width, args.sparse)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for step in range(args.steps):
        users, items = torch.randint(0, args.rows, (2, args.batch))
        seen = torch.randint(0, args.rows, (args.batch, 6))
        liked = ((users + items) % 2).float()
        loss = nn.functional.binary_cross_entropy_with_logits(model(users, items, seen), liked)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(json.dumps({"step": step, "loss": loss.item()}))


if __name__ == "__main__":
    main()

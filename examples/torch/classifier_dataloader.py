"""A classifier on batches that worker processes prepare; the last batch of an epoch is smaller."""

import argparse
import json
import pathlib
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Blobs(Dataset):
    """Points around one centre per class."""

    def __init__(self, samples, features, classes):
        generator = torch.Generator().manual_seed(7)
        centres = torch.randn(classes, features, generator=generator)
        self.labels = torch.randint(0, classes, (samples,), generator=generator)
        self.points = centres[self.labels] + torch.randn(samples, features, generator=generator)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.points[index], self.labels[index]


def accuracy(model, loader):
    model.eval()
    right = total = 0
    with torch.no_grad():
        for points, labels in loader:
            right += (model(points).argmax(dim=1) == labels).sum().item()
            total += len(labels)
    model.train()
    return right / total


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--samples", type=int, default=300)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()

    torch.manual_seed(1)
    data = Blobs(args.samples, 32, 5)
    loader = DataLoader(data, args.batch, shuffle=True, num_workers=args.workers)
    layers = [nn.Linear(32, args.width), nn.ReLU()]
    for _ in range(args.layers):
        layers += [nn.Linear(args.width, args.width), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(args.width, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    best = -1.0
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "best.pt"
        for epoch in range(args.epochs):
            for points, labels in loader:
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(points), labels, label_smoothing=0.1)
                loss.backward()
                optimizer.step()
                print(json.dumps({"epoch": epoch, "batch": len(labels), "loss": loss.item()}))
            found = accuracy(model, loader)
            print(json.dumps({"epoch": epoch, "accuracy": found}))
            if found > best:
                best = found
                torch.save(model.state_dict(), path)
        model.load_state_dict(torch.load(path))
    print(json.dumps({"best": accuracy(model, loader)}))


if __name__ == "__main__":
    main()

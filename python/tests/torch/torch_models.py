"""Small models with what makes placement hard, and training with and without pardnn."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

import pardnn
from pardnn.torch import api

MB = 1_000_000


class Tied(nn.Module):
    """A language model whose head is the embedding's own weight, with dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(50, 16)
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(16, 50, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.encoder(self.embed(x))).flatten(0, 1)


class Convolutional(nn.Module):
    """A residual block with batch norm, and a maximum that remembers where it was."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.second = nn.Conv2d(8, 8, 3, padding=1)
        self.norms = nn.ModuleList([nn.BatchNorm2d(8), nn.BatchNorm2d(8)])
        self.last = nn.Linear(8 * 4 * 4, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.relu(self.norms[0](self.first(x)))
        h = torch.relu(h + self.norms[1](self.second(h)))
        return self.last(nn.functional.max_pool2d(h, 2).flatten(1))


class Recurrent(nn.Module):
    """Cells unrolled by a loop over an nn.LSTM's output."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(6, 8, num_layers=2, batch_first=True)
        self.cell = nn.LSTMCell(8, 8)
        self.out = nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        sequence, _ = self.lstm(x)
        h = c = sequence.new_zeros(x.shape[0], 8)
        for step in sequence.unbind(1):
            h, c = self.cell(step, (h, c))
        return self.out(h)


def layers() -> nn.Module:
    """Dense layers with dropout and batch norm."""
    return nn.Sequential(
        nn.Linear(12, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Dropout(0.2), nn.Linear(24, 5)
    )


@dataclass(frozen=True)
class Case:
    """A model with its data and its optimizer."""

    model: Callable[[], nn.Module]
    x: Callable[[], torch.Tensor]
    y: Callable[[], torch.Tensor]
    optimizer: Callable[[Any], torch.optim.Optimizer]

    def loss(self, output: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(output, y)


def _labels(count: int, classes: int) -> Callable[[], torch.Tensor]:
    return lambda: torch.randint(0, classes, (count,))


CASES = {
    "layers": Case(
        layers, lambda: torch.randn(6, 12), _labels(6, 5), lambda p: torch.optim.AdamW(p, lr=0.01)
    ),
    "tied": Case(
        Tied,
        lambda: torch.randint(0, 50, (2, 7)),
        _labels(14, 50),
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01),
    ),
    "convolutional": Case(
        Convolutional,
        lambda: torch.randn(4, 3, 8, 8),
        _labels(4, 5),
        lambda p: torch.optim.RMSprop(p, lr=0.01),
    ),
    "recurrent": Case(
        Recurrent, lambda: torch.randn(3, 5, 6), _labels(3, 3), lambda p: torch.optim.Adagrad(p)
    ),
}


def batches(case: Case, count: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    for _ in range(count):
        yield case.x(), case.y()


def plain_training(case: Case, steps: int) -> tuple[list[str], dict[str, torch.Tensor]]:
    """Losses, as text that shows every bit, and the model's state after so many steps."""
    torch.manual_seed(3)
    model = case.model()
    optimizer = case.optimizer(model.parameters())
    losses = []
    for x, y in batches(case, steps):
        loss = case.loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item().hex())
    return losses, dict(model.state_dict())


def to_place(case: Case) -> tuple[nn.Module, torch.optim.Optimizer, Any]:
    """A case as `plain_training` begins with it, and a batch like its own, drawn without a trace in
    the generator.
    """
    torch.manual_seed(3)
    model = case.model()
    optimizer = case.optimizer(model.parameters())
    state = torch.get_rng_state()
    example = next(batches(case, 1))
    torch.set_rng_state(state)
    return model, optimizer, example


def placed_training(
    case: Case, steps: int, place: Callable[[Any], pardnn.Plan], **options: Any
) -> tuple[list[str], dict[str, torch.Tensor]]:
    """The same over three processes, on the plan that ``place`` makes of the captured step."""
    model, optimizer, example = to_place(case)
    plan = place(api.capture(model, case.loss, optimizer, example))
    losses = []
    with api.compile(model, case.loss, optimizer, example, devices=3, plan=plan, **options) as step:
        for x, y in batches(case, steps):
            losses.append(step(x, y).item().hex())
        return losses, step.state_dict()


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[k], other[k]) for k in one)


def machine(devices: int = 3) -> pardnn.Machine:
    return pardnn.Machine.uniform(devices=devices, memory=10**12, bandwidth=10**9, overhead=100_000)


def planned(captured: Any) -> pardnn.Plan:
    return pardnn.plan(captured.graph, machine(), sequence="given", steps=5)


def anywhere(seed: int, among: int = 3) -> Callable[[Any], pardnn.Plan]:
    """Every op on a random one of the first ``among`` of three devices; only what looks into one
    memory stays together.
    """

    def place(captured: Any) -> pardnn.Plan:
        chance = random.Random(seed)
        group_device: dict[str, str] = {}
        placement = {}
        for line in captured.graph.text().splitlines():
            words = line.split()
            if words[0] not in ("op", "var") or "every=1" in words:
                continue
            group = re.search(r" @(\S+)", line)
            name = group.group(1) if group else words[1]
            placement[words[1]] = group_device.setdefault(name, f"d{chance.randrange(among)}")
        order = {f"d{n}": [] for n in range(3)}
        for key in at_order(captured.graph):
            order[placement[key]].append(key)
        return pardnn.simulate(captured.graph, machine(), placement, order)

    return place


def at_order(graph: pardnn.Graph) -> list[str]:
    """Keys of the ops in the program's order."""
    found = []
    for line in graph.text().splitlines():
        at = re.search(r" at=(\d+)", line)
        if at:
            found.append((int(at.group(1)), line.split()[1]))
    return [key for _, key in sorted(found)]

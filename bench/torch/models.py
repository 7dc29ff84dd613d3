"""The models that are measured, with their batches and optimizers."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import nn


class Block(nn.Module):
    """A transformer layer of plain modules."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, -1).transpose(1, 2)
            for part in self.qkv(self.norms[0](x)).chunk(3, dim=-1)
        )
        seen = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(nn.functional.gelu(self.up(self.norms[1](x))))


class Language(nn.Module):
    """A causal language model with a tied head."""

    def __init__(self, words: int, width: int, layers: int, heads: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(self.norm(self.blocks(self.embed(x))), self.embed.weight)


class Towers(nn.Module):
    """Two towers that meet in the last layer."""

    def __init__(self, width: int, depth: int) -> None:
        super().__init__()

        def tower() -> nn.Module:
            layers = [m for _ in range(depth) for m in (nn.Linear(width, width), nn.ReLU())]
            return nn.Sequential(*layers)

        self.towers = nn.ModuleList([tower(), tower()])
        self.last = nn.Linear(2 * width, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(torch.cat([tower(x) for tower in self.towers], dim=1))


class Recurrent(nn.Module):
    """nn.LSTM, whose layers are ops."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(width, width, num_layers=layers, batch_first=True)
        self.last = nn.Linear(width, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.lstm(x)[0][:, -1])


class Unrolled(nn.Module):
    """Cells in a loop, whose ops are many and small."""

    def __init__(self, words: int, width: int, layers: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.cells = nn.ModuleList([nn.LSTMCell(width, width) for _ in range(layers)])
        self.head = nn.Linear(width, words)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        zeros = [torch.zeros(x.shape[0], self.head.in_features) for _ in self.cells]
        states = [(zero, zero) for zero in zeros]
        outputs = []
        for h in self.embed(x).unbind(1):
            for number, cell in enumerate(self.cells):
                states[number] = cell(h, states[number])
                h = states[number][0]
            outputs.append(h)
        return self.head(torch.stack(outputs, 1))


class Encoder(nn.Module):
    """torch's own transformer layers, with dropout."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.last = nn.Linear(width, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.encoder(x).mean(1))


def dense(width: int, depth: int) -> nn.Module:
    layers = [m for _ in range(depth) for m in (nn.Linear(width, width), nn.ReLU())]
    return nn.Sequential(*layers, nn.Linear(width, 10))


def convolutional(width: int) -> nn.Module:
    def block(before: int, after: int) -> list[nn.Module]:
        return [nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU()]

    return nn.Sequential(
        *block(3, width), *block(width, width), nn.MaxPool2d(2), *block(width, 2 * width),
        *block(2 * width, 2 * width), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(2 * width, 10),
    )  # fmt: skip


def entropy(output: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return nn.functional.cross_entropy(output.flatten(0, -2), y.flatten())


def classes(count: int) -> torch.Tensor:
    return torch.randint(0, 10, (count,))


def adam(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters())


def momentum(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)


def plain(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.01)


def words(batch: int, length: int, count: int = 500) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randint(0, count, (batch, length)), torch.randint(0, count, (batch, length))


class Case(NamedTuple):
    model: Callable[[], nn.Module]
    batch: Callable[[], tuple[torch.Tensor, torch.Tensor]]
    optimizer: Callable[[nn.Module], torch.optim.Optimizer]


def vectors(batch: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(batch, width), classes(batch)


def images(batch: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(batch, 3, 32, 32), classes(batch)


def series(batch: int, length: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(batch, length, width), classes(batch)


SMALL = {
    "dense": Case(lambda: dense(512, 8), lambda: vectors(64, 512), adam),
    "language": Case(lambda: Language(500, 128, 4, 4), lambda: words(4, 64), adam),
    "language, momentum": Case(lambda: Language(500, 192, 6, 4), lambda: words(4, 64), momentum),
    "convolutional": Case(lambda: convolutional(32), lambda: images(16), momentum),
    "towers": Case(lambda: Towers(768, 6), lambda: vectors(256, 768), momentum),
}
# Large enough for tensors to be most of what a process holds.
LARGE = {
    "dense": Case(lambda: dense(1024, 12), lambda: vectors(64, 1024), adam),
    "dense, large batch": Case(lambda: dense(1024, 12), lambda: vectors(512, 1024), plain),
    "narrow and deep": Case(lambda: dense(512, 40), lambda: vectors(256, 512), adam),
    "language": Case(lambda: Language(2000, 256, 6, 4), lambda: words(8, 128, 2000), adam),
    "language, momentum": Case(
        lambda: Language(2000, 256, 6, 4), lambda: words(8, 128, 2000), momentum
    ),
    "language, many words": Case(
        lambda: Language(20_000, 256, 2, 4), lambda: words(4, 64, 20_000), adam
    ),
    "encoder": Case(lambda: Encoder(256, 6), lambda: series(16, 64, 256), adam),
    "convolutional": Case(lambda: convolutional(64), lambda: images(32), momentum),
    "towers": Case(lambda: Towers(1024, 6), lambda: vectors(512, 1024), momentum),
    "recurrent": Case(lambda: Recurrent(512, 3), lambda: series(16, 64, 512), adam),
    "unrolled": Case(lambda: Unrolled(4000, 512, 3), lambda: words(32, 24, 4000), momentum),
}

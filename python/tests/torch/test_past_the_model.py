"""What is not in forward() alone: repeated draws, strides, sparse gradients, held parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch_models import Case, anywhere, placed_training, plain_training, same

from pardnn.errors import Refusal
from pardnn.torch import api

torch.set_num_threads(1)


class Checkpointed(nn.Module):
    """A layer that is computed again for its gradients."""

    def __init__(self, p: float = 0.0, use_reentrant: bool = False) -> None:
        super().__init__()
        self.before, self.first, self.last = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 5)
        self.p, self.use_reentrant = p, use_reentrant

    def _inner(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.relu(self.first(x))
        return nn.functional.dropout(h, self.p) if self.p else h

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.before(x)
        return self.last(checkpoint(self._inner, h, use_reentrant=self.use_reentrant))


class Listed(nn.Module):
    """A layer whose weight is read through a plain list."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 5)
        self.weights = [self.layer.weight]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(x, self.weights[0])


class Inverse(nn.Module):
    """Its effects are ones that torch cannot trace."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ torch.linalg.inv(torch.eye(8) + self.layer.weight)


class Noisy(nn.Module):
    """Draws a number for each negative value."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.rrelu(self.layer(x), training=True)


def spectral() -> nn.Module:
    """A buffer that is overwritten before it is read."""
    return nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(8, 8)), nn.Linear(8, 5))


class Gated(nn.Module):
    """nn.GRU updates parts of a tensor in place, whose strides the next kernels look at."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(4, 8, num_layers=2, batch_first=True)
        self.last = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.gru(x.view(-1, 2, 4))[0][:, -1])


def bare() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 8, bias=False), nn.Tanh(), nn.Linear(8, 5, bias=False))


def of(
    model: Callable[[], nn.Module], kind: type[torch.optim.Optimizer] = torch.optim.AdamW
) -> Case:
    return Case(
        model,
        lambda: torch.randn(6, 8),
        lambda: torch.randint(0, 5, (6,)),
        lambda parameters: kind(parameters, lr=0.05),
    )


@pytest.mark.parametrize(
    "case",
    [
        of(Checkpointed),
        of(lambda: Checkpointed(p=0.3)),
        of(Gated, torch.optim.SGD),
        of(spectral),
        of(bare, torch.optim.Muon),
        of(lambda: Tables(looked_up), torch.optim.SparseAdam),
        of(lambda: Tables(looked_up), torch.optim.SGD),
    ],
    ids=[
        "checkpoint",
        "dropout",
        "gru",
        "spectral norm",
        "matrices alone",
        "sparse",
        "sparse, plainly",
    ],
)
def test_every_op_on_a_random_device_is_plain_training(case: Case) -> None:
    losses, state = plain_training(case, 4)
    placed, placed_state = placed_training(case, 4, anywhere(2))
    assert placed == losses
    assert same(placed_state, state)


class Tables(nn.Module):
    """Words and tags by tables with sparse gradients; ``tags`` gives the vectors of some tags."""

    def __init__(self, tags: Callable[[Any, torch.Tensor], torch.Tensor], **options: Any) -> None:
        super().__init__()
        self.words = nn.Embedding(50, 8, sparse=True, **options)
        self.table = nn.Embedding(40, 8, sparse=True)
        self.bag = nn.EmbeddingBag(40, 8, mode="sum", sparse=True)
        self.tags = tags

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.words(x.abs().ceil().long()).mean(1)
        return h * self.tags(self, x.floor().long().remainder(40))


def looked_up(model: Tables, tags: torch.Tensor) -> torch.Tensor:
    return model.table(tags).sum(1)


def bagged(model: Tables, tags: torch.Tensor) -> torch.Tensor:
    return model.bag(tags)


def twice(model: Tables, tags: torch.Tensor) -> torch.Tensor:
    return model.table(tags).sum(1) + model.table(tags + 1).sum(1)


def test_a_loss_that_looks_into_the_model_sees_it_change() -> None:
    def run(is_placed: bool) -> list[float]:
        torch.manual_seed(1)
        model = nn.Linear(8, 5)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)

        def loss_fn(output: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return nn.functional.cross_entropy(output, y) + model.weight.pow(2).sum()

        batches = [(torch.randn(6, 8), torch.randint(0, 5, (6,))) for _ in range(3)]
        if is_placed:
            with api.compile(model, loss_fn, optimizer, batches[0]) as step:
                return [step(*batch).item() for batch in batches]
        losses = []
        for x, y in batches:
            loss = loss_fn(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    assert run(is_placed=True) == run(is_placed=False)


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (lambda: Checkpointed(use_reentrant=True), r"cannot be captured: When use_reentrant=True"),
        (Listed, r"past_the_model.py.*line \d+.*reach it as an attribute of the model"),
        (Inverse, r"past_the_model.py:\d+: this cannot be captured"),
        (Noisy, "how many random numbers it draws depends on values"),
        (lambda: Tables(bagged), r"past_the_model.py.*line \d+.*an nn.Embedding that is used once"),
        (lambda: Tables(twice), r"past_the_model.py.*line \d+.*an nn.Embedding that is used once"),
        (
            lambda: Tables(looked_up, padding_idx=0),
            r"past_the_model.py.*line \d+.*how often padding_idx is read",
        ),
    ],
    ids=["reentrant", "list", "inverse", "rrelu", "bag", "twice", "padding"],
)
def test_what_would_train_otherwise_is_refused(model: Callable[[], nn.Module], reason: str) -> None:
    made = model()
    optimizer = torch.optim.SGD(made.parameters(), lr=0.1)
    y = torch.randint(0, 5, (6,))
    with pytest.raises(Refusal, match=reason):
        api.capture(made, nn.functional.cross_entropy, optimizer, (torch.randn(6, 8), y))


def test_hooks_that_would_be_left_out_are_refused() -> None:
    example = (torch.randn(6, 8), torch.randint(0, 5, (6,)))
    model = bare()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hook = model[0].weight.register_hook(lambda gradient: gradient * 0.1)
    with pytest.raises(Refusal, match=r"0\.weight has a hook on its gradient"):
        api.capture(model, nn.functional.cross_entropy, optimizer, example)
    hook.remove()
    optimizer.register_step_pre_hook(lambda *arguments: None)
    with pytest.raises(Refusal, match="hooks around its step"):
        api.capture(model, nn.functional.cross_entropy, optimizer, example)

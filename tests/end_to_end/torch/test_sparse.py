"""Sparse gradients of embeddings, whatever optimizers do with them, change no bit."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

TIMEOUT_S = 240.0
# The gradient is read, changed, added to another one, set to zero; a table is used twice.
SCRIPT = """
import torch
from torch import nn, optim

class Tables(nn.Module):
    def __init__(self, padding):
        super().__init__()
        self.words = nn.Embedding(200, 16, sparse=True, padding_idx=padding)
        self.tags = nn.EmbeddingBag(200, 16, mode="sum", sparse=True)
        self.head = nn.Linear(32, 1)

    def forward(self, words, tags):
        h = self.words(words).mean(1) + self.words(tags).sum(1)
        return self.head(torch.cat([h, self.tags(tags)], 1))

for cls, settings, padding in [
    (optim.SGD, {}, None), (optim.SGD, {"momentum": 0.9}, 0), (optim.Adagrad, {}, 0)
]:
    torch.manual_seed(0)
    model = Tables(padding)
    optimizer = cls(model.parameters(), lr=0.1, **settings)
    for step in range(4):
        words, tags = torch.randint(0, 200, (8, 5)), torch.randint(0, 200, (8, 3))
        loss = model(words, tags).square().mean()
        optimizer.zero_grad(set_to_none=step != 2)
        loss.backward()
        if step == 1:
            model(words, tags).sum().backward()
            model.tags.weight.grad.mul_(0.5)
        gradient = model.words.weight.grad.coalesce()
        print(gradient._nnz(), gradient.values().norm().item(), gradient.to_dense().sum().item())
        optimizer.step()
        print(cls.__name__, loss.item().hex())
    print([p.detach().double().sum().item().hex() for p in model.parameters()])
print(gradient)
"""


def printed(folder: pathlib.Path, placement: str | None, *launcher: str) -> str:
    script = folder / "train.py"
    script.write_text(SCRIPT)
    placed = {} if placement is None else {"PARDNN_RANDOM_PLACEMENT": placement}
    done = subprocess.run(
        [sys.executable, *launcher, str(script)],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", **placed},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("placement", [None, "3"], ids=["planned", "random"])
def test_sparse_gradients_are_those_of_one_process(
    placement: str | None, tmp_path: pathlib.Path
) -> None:
    expected = printed(tmp_path, None)
    assert len(expected.splitlines()) > 25
    assert printed(tmp_path, placement, "-m", "pardnn.launch", "--devices", "3") == expected

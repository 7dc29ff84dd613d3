"""Predicted peaks against measured ones: ops' inner memory, messages and updates included."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch_models import MB

from pardnn.torch import api

sys.path.append(str(Path(__file__).resolve().parents[3] / "bench" / "torch"))
from models import LARGE

torch.set_num_threads(1)
# Of a process that holds little, what Python and gloo hold counts.
SMALL_BYTES = 1 * MB


def dense() -> nn.Module:
    return nn.Sequential(*(nn.Linear(1024, 1024) for _ in range(4)))


def measured_and_predicted(
    model: nn.Module, loss: Any, optimizer: torch.optim.Optimizer, batch: Any, **options: Any
) -> list[tuple[int, int]]:
    with api.compile(model, loss, optimizer, batch, metered=True, **options) as step:
        for _ in range(2):
            step(*batch)
        found = step.measured_peaks()
        return [(found[d], peak - step.reserve_bytes) for d, peak in step.plan.peaks.items()]


def is_close(measured: int, predicted: int, slack: float = 0) -> bool:
    """``slack``: bytes that may be predicted without being needed."""
    least = (predicted - slack) / 1.08 - SMALL_BYTES
    return least <= measured <= predicted * 1.03 + SMALL_BYTES


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.SGD])
def test_one_device_holds_what_was_predicted(kind: Any) -> None:
    """Four weights of 4.2 MB; Adam holds 2 more of each, and 3 for a moment."""
    model = dense()
    batch = torch.randn(8, 1024), torch.randn(8, 1024)
    optimizer = kind(model.parameters(), lr=0.01)
    ((measured, predicted),) = measured_and_predicted(
        model, nn.functional.mse_loss, optimizer, batch, devices=1
    )
    weights = {torch.optim.Adam: 4 * 4 + 3, torch.optim.SGD: 4 * 2}[kind]
    assert predicted == pytest.approx(weights * 4.2 * MB, rel=0.05)
    assert is_close(measured, predicted)


def test_gradients_that_stay_are_predicted() -> None:
    model = dense()
    batch = torch.randn(8, 1024), torch.randn(8, 1024)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    ((measured, predicted),) = measured_and_predicted(
        model, nn.functional.mse_loss, optimizer, batch, devices=1, accumulate=2
    )
    assert predicted == pytest.approx((4 * 2 + 1) * 4.2 * MB, rel=0.05)
    assert is_close(measured, predicted)


def test_three_devices_hold_what_was_predicted() -> None:
    """But for what the update of a weight leaves for the next, where a device has only one."""
    model = dense()
    batch = torch.randn(256, 1024), torch.randn(256, 1024)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    found = measured_and_predicted(
        model, nn.functional.mse_loss, optimizer, batch, devices=3, memory=65 * MB
    )
    assert all(is_close(*peaks, slack=4.2 * MB) for peaks in found), found


def entropy(output: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return nn.functional.cross_entropy(output.flatten(0, -2), y.flatten())


@pytest.mark.long
@pytest.mark.parametrize("name", LARGE)
def test_models_of_many_kinds_hold_what_was_predicted(name: str) -> None:
    case = LARGE[name]
    model = case.model()
    ((measured, predicted),) = measured_and_predicted(
        model, entropy, case.optimizer(model), case.batch(), devices=1
    )
    assert is_close(measured, predicted)

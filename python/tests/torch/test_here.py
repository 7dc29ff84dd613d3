"""Several devices in one process: the same programs, with copies at the cuts."""

from __future__ import annotations

import pytest
import torch
from torch_models import CASES, anywhere, batches, plain_training, same, to_place

from pardnn.errors import UsageError
from pardnn.torch import api, deferring

torch.set_num_threads(1)


@pytest.mark.parametrize("name", CASES)
def test_every_op_on_a_random_device_changes_no_bit(name: str) -> None:
    case = CASES[name]
    losses, state = plain_training(case, 3)
    model, optimizer, example = to_place(case)
    plan = anywhere(5)(api.capture(model, case.loss, optimizer, example))
    assert plan.bytes_sent > 0
    three = ["cpu", "cpu", "cpu"]
    with api.compile(model, case.loss, optimizer, example, devices=three, plan=plan) as step:
        placed = [step(x, y).item().hex() for x, y in batches(case, 3)]
        assert placed == losses
        assert same(step.state_dict(), state)


def test_a_deferred_model_is_made_on_its_devices() -> None:
    case = CASES["layers"]
    torch.manual_seed(4)
    ordinary = case.model()
    torch.manual_seed(4)
    with deferring.deferred():
        model = case.model()
    optimizer = case.optimizer(model.parameters())
    example = next(batches(case, 1))
    with api.compile(model, case.loss, optimizer, example, devices=["cpu", "cpu"]) as step:
        assert same(step.state_dict(), dict(ordinary.state_dict()))


def test_a_device_that_nobody_has_tried_is_refused() -> None:
    case = CASES["layers"]
    model = case.model()
    optimizer = case.optimizer(model.parameters())
    with pytest.raises(UsageError, match="CPUs only"):
        api.compile(model, case.loss, optimizer, next(batches(case, 1)), devices=["cuda:0", "cpu"])

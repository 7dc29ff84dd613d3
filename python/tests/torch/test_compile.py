"""Training over processes: losses and parameters are those of plain PyTorch, bit for bit."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest
import torch
from torch import nn
from torch_models import (
    CASES,
    MB,
    anywhere,
    batches,
    placed_training,
    plain_training,
    planned,
    same,
)

import pardnn
from pardnn.errors import Refusal, UsageError
from pardnn.torch import api, deferring

torch.set_num_threads(1)
STEPS = 4


@pytest.mark.parametrize("name", CASES)
def test_every_op_on_a_random_device_changes_no_bit(name: str) -> None:
    losses, state = plain_training(CASES[name], STEPS)
    placed_losses, placed_state = placed_training(CASES[name], STEPS, anywhere(7))
    assert placed_losses == losses
    assert same(placed_state, state)


def test_the_planners_placement_changes_no_bit() -> None:
    losses, state = plain_training(CASES["tied"], STEPS)
    placed_losses, placed_state = placed_training(CASES["tied"], STEPS, planned)
    assert placed_losses == losses
    assert same(placed_state, state)


def dense(width: int) -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Linear(8, width), nn.ReLU(), nn.Linear(width, width), nn.Linear(width, 4)
    )


def test_scheduler_clipping_accumulation_and_groups_are_those_of_plain_training() -> None:
    case = CASES["layers"]

    def start() -> tuple[nn.Module, torch.optim.Optimizer, Any]:
        torch.manual_seed(5)
        model = case.model()
        ends = [{"params": model[0].parameters(), "lr": 0.1}, {"params": model[1].parameters()},
                {"params": model[4].parameters(), "weight_decay": 0.1}]  # fmt: skip
        optimizer = torch.optim.AdamW(ends, lr=0.01)
        return model, optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)

    model, optimizer, scheduler = start()
    plain = []
    for number, (x, y) in enumerate(batches(case, 6)):
        loss = case.loss(model(x), y)
        loss.backward()
        if number % 2 == 1:
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            optimizer.zero_grad()
            scheduler.step()
        plain.append(loss.item())
    state = dict(model.state_dict())

    model, optimizer, scheduler = start()
    generator = torch.get_rng_state()
    example = next(iter(batches(case, 1)))
    torch.set_rng_state(generator)
    options: Any = {"devices": 2, "accumulate": 2, "clip_grad_norm": 0.5}
    with api.compile(model, case.loss, optimizer, example, **options) as step:
        placed = []
        for number, (x, y) in enumerate(batches(case, 6)):
            placed.append(step(x, y).item())
            if number % 2 == 1:
                scheduler.step()
        assert placed == plain
        assert same(step.state_dict(), state)
        kept = step.optimizer_state()
        assert kept["0.weight"]["exp_avg"].shape == (24, 12)


def test_state_goes_in_and_out() -> None:
    model = dense(16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = torch.randn(4, 8), torch.randn(4, 4)
    with api.compile(model, nn.functional.mse_loss, optimizer, (x, y)) as step:
        before = step.state_dict()
        assert same(before, dict(model.state_dict()))
        first = step(x, y)
        assert not same(step.state_dict(), before)
        step.load_state_dict(before)
        assert step(x, y).equal(first)
        with pytest.raises(UsageError, match="misses 0.weight"):
            step.load_state_dict({name: t for name, t in before.items() if name != "0.weight"})
        assert step.report().startswith("step ") and "d1: " in step.report()


class Masked(nn.Module):
    """A buffer that is not part of the state, and one that is; a weight of two names."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4, bias=False)
        self.again = nn.Linear(4, 4, bias=False)
        self.again.weight = self.first.weight
        self.register_buffer("mask", torch.tensor([1.0, 0.0, 1.0, 0.0]), persistent=False)
        self.register_buffer("scale", torch.tensor(2.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.again(self.first(x) * self.mask) * self.scale


def test_the_state_is_what_the_modules_own_would_be() -> None:
    model = Masked()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = torch.randn(2, 4), torch.randn(2, 4)
    with api.compile(model, nn.functional.mse_loss, optimizer, (x, y)) as step:
        state = step.state_dict()
        assert list(state) == list(model.state_dict()) == ["scale", "first.weight", "again.weight"]
        other = {"scale": torch.tensor(3.0), "mask": torch.ones(4)}
        answers = [kept.load_state_dict(other, strict=False) for kept in (model, step)]
        assert answers[0] == answers[1]
        assert answers[1].missing_keys == ["first.weight", "again.weight"]
        assert same(step.state_dict(), dict(model.state_dict()))
        for kept in (model, step):
            with pytest.raises(RuntimeError, match="mask"):
                kept.load_state_dict({**state, "mask": torch.ones(4)})
            with pytest.raises(RuntimeError, match=r"first\.weight"):
                kept.load_state_dict({**state, "first.weight": torch.ones(5, 4)})
        assert step.state_dict()["scale"] == 3.0  # nothing of a wrong state is taken


def test_a_model_too_large_for_one_process_trains_over_three() -> None:
    """Weights, gradients, momenta of 3 layers: 3 * 3 * 4.2 MB, where each may hold 34 MB."""

    def huge() -> nn.Module:
        return nn.Sequential(*(nn.Linear(1024, 1024) for _ in range(3)))

    x, y = torch.randn(2, 1024), torch.randn(2, 1024)
    model = huge()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    with pytest.raises(Refusal, match="does not fit"):
        api.compile(model, nn.functional.mse_loss, optimizer, (x, y), devices=1, memory=40 * MB)
    with api.compile(
        model, nn.functional.mse_loss, optimizer, (x, y), devices=3, memory=40 * MB
    ) as step:
        losses = [step(x, y).item() for _ in range(3)]
        assert all(peak <= 40 * MB for peak in step.plan.peaks.values())
    plain = []
    for _ in range(3):
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        plain.append(loss.item())
    assert losses == plain


def test_a_deferred_model_is_the_ordinary_one_and_leaves_the_generator_alike() -> None:
    torch.manual_seed(11)
    ordinary = CASES["tied"].model()
    after = torch.get_rng_state()
    torch.manual_seed(11)
    with deferring.deferred():
        model = CASES["tied"].model()
    assert torch.equal(torch.get_rng_state(), after)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = CASES["tied"].x(), CASES["tied"].y()
    with api.compile(model, CASES["tied"].loss, optimizer, (x, y)) as step:
        assert same(step.state_dict(), dict(ordinary.state_dict()))


def test_what_is_initialised_behind_deferred_is_refused() -> None:
    with deferring.deferred():
        model = nn.Linear(3, 3)
    with torch.no_grad():
        model.weight.fill_(0.0)
    with pytest.raises(Refusal, match="weight was made or initialised after"):
        deferring.recipe_of(model)


@pytest.mark.parametrize("devices", [2, ["cpu", "cpu"]])
def test_devices_and_a_machine_of_another_number_are_refused(devices: Any) -> None:
    model = dense(8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    example = (torch.randn(4, 8), torch.randn(4, 4))
    three = pardnn.Machine.uniform(devices=3, memory=10**9)
    with pytest.raises(UsageError, match=r"are 2 and machine has 3"):
        options: Any = {"devices": devices, "machine": three}
        api.compile(model, nn.functional.mse_loss, optimizer, example, **options)


def test_a_meta_model_cannot_train_and_says_what_can() -> None:
    with torch.device("meta"):
        model = nn.Linear(3, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    example = (torch.randn(2, 3), torch.randn(2, 3))
    with pytest.raises(Refusal, match="deferred"):
        api.compile(model, nn.functional.mse_loss, optimizer, example)


def test_a_batch_of_another_shape_is_refused_in_one_sentence() -> None:
    model = dense(8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    example = (torch.randn(4, 8), torch.randn(4, 4))
    with api.compile(model, nn.functional.mse_loss, optimizer, example) as step:
        with pytest.raises(UsageError, match="drop the last, smaller batch"):
            step(torch.randn(3, 8), torch.randn(3, 4))
        step(*example)


def test_a_dead_worker_is_named_and_nothing_is_left() -> None:
    model = dense(8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = torch.randn(4, 8), torch.randn(4, 4)
    step = api.compile(model, nn.functional.mse_loss, optimizer, (x, y), devices=2)
    processes = step._workers._processes
    os.kill(processes[1].pid, signal.SIGKILL)
    with pytest.raises(api.WorkerError, match="worker 1 failed: it was ended by SIGKILL"):
        for _ in range(3):
            step(x, y)
    assert all(process.poll() is not None for process in processes)


def test_a_worker_that_gets_no_more_memory_is_named() -> None:
    model = nn.Sequential(*(nn.Linear(1024, 1024) for _ in range(3)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    example = (torch.randn(2, 1024), torch.randn(2, 1024))
    place = anywhere(1, among=1)  # all of 3 * 3 * 4.2 MB on the first of them
    plan = place(api.capture(model, nn.functional.mse_loss, optimizer, example))
    limits: list[Any] = [
        {"devices": 3, "memory": 18 * MB},
        {"machine": pardnn.Machine.uniform(devices=3, memory=18 * MB)},
    ]
    for limit in limits:
        with pytest.raises(api.WorkerError, match=r"worker 0 got no more memory, of which it may"):
            step = api.compile(
                model, nn.functional.mse_loss, optimizer, example, plan=plan, **limit
            )
            step(*example)

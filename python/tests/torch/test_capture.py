"""The graph of a step: what is in it, what is refused, and what it leaves alone."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch_models import CASES, MB, at_order, batches

import pardnn
from pardnn.errors import Refusal
from pardnn.torch import api, costs, measuring, nodes, tracing
from pardnn.torch.calls import Layout

MSE = nn.functional.mse_loss
XY = (torch.randn(4, 3), torch.randn(4, 3))


def captured(model: nn.Module, example: Any = XY, **options: Any) -> api.Captured:
    optimizer = torch.optim.Adam(model.parameters(), **options)
    return api.capture(model, MSE, optimizer, example, measure=False)


def lines(graph: pardnn.Graph, start: str) -> list[str]:
    return [line for line in graph.text().splitlines() if line.startswith(start)]


def test_parameters_states_and_updates_are_together() -> None:
    graph = captured(nn.Linear(3, 3)).graph
    assert [line.split()[1:3] for line in lines(graph, "var ")] == [
        ["state/bias/0", "4"],
        ["state/bias/1", "12"],
        ["state/bias/2", "12"],
        ["state/weight/0", "4"],
        ["state/weight/1", "36"],
        ["state/weight/2", "36"],
        ["var/bias", "12"],
        ["var/weight", "36"],
    ]
    (update,) = lines(graph, "op update/weight ")
    (read,) = [line for line in lines(graph, "op ") if " < var/weight " in line]
    assert update.split("@")[1].split()[0] == read.split("@")[1].split()[0]
    assert at_order(graph)[-1].startswith("release/")


def test_a_tied_weight_is_one_variable() -> None:
    case = CASES["tied"]
    model = case.model()
    optimizer = case.optimizer(model.parameters())
    graph = api.capture(model, case.loss, optimizer, next(batches(case, 1)), measure=False).graph
    assert not lines(graph, "var var/head.weight")
    assert len(lines(graph, "var var/embed.weight")) == 1


def test_a_model_on_meta_has_the_graph_of_the_real_one() -> None:
    with torch.device("meta"):
        meta = nn.Linear(3, 3)
    assert captured(meta).graph.op_keys == captured(nn.Linear(3, 3)).graph.op_keys


class Branch(nn.Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = super().forward(x)
        if h.sum() > 0:  # the line to be named
            h = h * 2
        return h


class Chosen(nn.Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = super().forward(x)
        return h[h > 0].mean() + h


class Numpy(nn.Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = super().forward(x)
        return h * float(h.detach().numpy().max())


@pytest.mark.parametrize("model", [Branch, Chosen, Numpy])
def test_what_depends_on_values_is_refused_with_the_users_line(model: type[nn.Linear]) -> None:
    with pytest.raises(Refusal, match=r"test_capture\.py"):
        captured(model(3, 3))


def test_an_optimizer_of_other_parameters_is_refused() -> None:
    optimizer = torch.optim.SGD(nn.Linear(2, 2).parameters(), lr=0.1)
    with pytest.raises(Refusal, match="not one of the model's"):
        api.capture(nn.Linear(3, 3), MSE, optimizer, XY)


def test_a_closure_and_a_vector_loss_are_refused() -> None:
    model = nn.Linear(3, 3)
    with pytest.raises(Refusal, match="LBFGS"):
        api.capture(model, MSE, torch.optim.LBFGS(model.parameters()), XY)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(Refusal, match="one element"):
        api.capture(model, lambda output, y: output - y, optimizer, XY)


def test_the_model_the_optimizer_and_the_generator_are_left_alone() -> None:
    class Remembers(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.last = super().forward(x)
            return nn.functional.dropout(self.last)

    model = Remembers(3, 3)
    optimizer = torch.optim.Adam(model.parameters())
    before = torch.get_rng_state()
    weight = model.weight.detach().clone()
    api.capture(model, MSE, optimizer, XY)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(model.weight, weight) and model.weight.grad is None
    assert not hasattr(model, "last")
    assert not optimizer.state


def test_equal_ops_are_measured_once_and_remembered(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    model = nn.Sequential(*(nn.Linear(3, 3, bias=False) for _ in range(4)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    ops = nodes.ops_of(tracing.trace(model, MSE, optimizer, XY))
    measured: list[str] = []
    really = measuring.measured

    def counted(asked: Any) -> Any:
        measured.extend(asked)
        return really(asked)

    monkeypatch.setattr(measuring, "measured", counted)
    first = costs.costs_of(ops)
    assert len(measured) == len(set(measured)) < len(ops)
    assert costs.costs_of(ops) == first
    assert len(measured) == len(set(measured))
    assert all(cost.ns > 0 for cost in first.values())


def test_an_op_that_crashes_is_left_out_and_the_next_is_measured() -> None:
    crash = measuring.Asked("__import__('os').abort()", [], [])
    wrong = measuring.Asked("torch.zeros(2) + torch.zeros(3)", [], [])
    right = measuring.Asked("t[0] + 1", [], [Layout.of(torch.empty(2, 3))])
    found = dict(measuring.measured({"crash": crash, "wrong": wrong, "right": right}))
    assert found.keys() == {"right"}
    assert found["right"].ns > 0 and found["right"].bytes == [2 * 3 * 4]


def test_what_an_op_needs_besides_its_output_is_measured() -> None:
    """A sum of 4 MB of ones more: those are there while it runs."""
    asked = measuring.Asked("(t[0] + 1).sum()", [], [Layout.of(torch.empty(1000, 1000))])
    ((_, found),) = measuring.measured({"sum": asked})
    assert found.bytes == [4]
    assert found.workspace == pytest.approx(4 * MB, rel=0.1)

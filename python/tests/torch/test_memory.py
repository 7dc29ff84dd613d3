"""Memory by liveness over storages is what torch's own tools say of the same models."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from torch._inductor.fx_passes import memory_estimator
from torch.distributed._tools.mem_tracker import MemTracker
from torch_models import at_order

import pardnn
from pardnn.torch import api

sys.path.append(str(Path(__file__).resolve().parents[3] / "bench" / "torch"))
from models import LARGE, entropy

NAMES = ["dense", "language", "convolutional"]


def peak_of(captured: api.Captured) -> int:
    """Bytes that one device holds at most, without what ops need inside."""
    graph = captured.graph
    everywhere = {line.split()[1] for line in graph.text().splitlines() if " every=1" in line}
    keys = {*graph.op_keys, *graph.var_keys} - everywhere
    machine = pardnn.Machine.uniform(devices=1, memory=10**12)
    placement = dict.fromkeys(keys, "d0")
    return pardnn.simulate(graph, machine, placement, {"d0": at_order(graph)}).peaks["d0"]


@pytest.mark.parametrize("name", NAMES)
def test_a_whole_step_holds_what_torchs_tracker_counts(name: str) -> None:
    """Parameters, state, gradients, activations; an update may leave some for the next besides."""
    case = LARGE[name]
    model = case.model()
    optimizer = case.optimizer(model)
    x, y = case.batch()
    predicted = peak_of(api.capture(model, entropy, optimizer, (x, y), measure=False))
    tracker = MemTracker()
    tracker.track_external(model, optimizer)
    with tracker:
        for _ in range(2):  # the first one makes the optimizer's state
            entropy(model(x), y).backward()
            optimizer.step()
            optimizer.zero_grad()
            tracker.reset_mod_stats()
    (found,) = tracker.get_tracker_snapshot("peak").values()
    assert predicted == pytest.approx(found["Total"], rel=0.03)


@pytest.mark.parametrize("name", NAMES)
def test_forward_and_backward_hold_what_inductors_estimator_counts(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On one device, with inputs, parameters and gradients."""
    case = LARGE[name]
    model = case.model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    found = api.capture(model, entropy, optimizer, case.batch(), measure=False)
    monkeypatch.setattr(memory_estimator, "device_filter", lambda device: True)
    profile = memory_estimator.build_memory_profile(
        found.trace.module.graph, lambda node: node.op != "placeholder"
    )
    assert peak_of(found) == pytest.approx(max(profile), rel=0.03)

"""The gradient of an embedding that is its model's head as well: plain PyTorch, pardnn over two
devices with the weight's readers apart, and torch.distributed.pipelining over two stages.
"""

from __future__ import annotations

import tempfile
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing
from models import Language, entropy, words
from torch import nn
from torch.distributed.pipelining import ScheduleGPipe, SplitPoint, pipeline

import pardnn
import pardnn.torch


def _model() -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    return (Language(500, 64, 2, 4), *words(4, 32))


def _plain() -> torch.Tensor:
    model, x, y = _model()
    entropy(model(x), y).backward()
    return model.embed.weight.grad


def _placed() -> torch.Tensor:
    """From the weight before and after a step without momentum, the second half of the model on the
    second device.
    """
    model, x, y = _model()
    rate = 2.0**-4  # so that dividing by it is exact
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    machine = pardnn.Machine.uniform(devices=2, memory=1 << 34, bandwidth=10**9)
    captured = pardnn.torch.capture(model, entropy, optimizer, (x, y), measure=False)
    plan = pardnn.plan(captured.graph, machine, algorithm="chunks", sequence="given")
    assert plan.bytes_sent > 0
    with pardnn.torch.compile(
        model, entropy, optimizer, (x, y), machine=machine, plan=plan
    ) as step:
        step(x, y)
        after = step.state_dict()["embed.weight"]
    expected = model.embed.weight.detach() - after
    return expected / rate


def _stage(rank: int, store: str, out: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", store=dist.FileStore(store, 2), rank=rank, world_size=2)
    model, x, y = _model()
    pipe = pipeline(model, (x,), split_spec={"blocks.1": SplitPoint.BEGINNING})
    stage = pipe.build_stage(rank, torch.device("cpu"))
    schedule = ScheduleGPipe(stage, 1, loss_fn=entropy)
    if rank == 0:
        schedule.step(x)
    else:
        schedule.step(target=y)
    found = {n: p.grad for n, p in stage.submod.named_parameters() if "embed" in n}
    torch.save(found, f"{out}/{rank}")
    dist.barrier()
    dist.destroy_process_group()


def _pipelined() -> list[torch.Tensor]:
    """Of each stage that has the weight."""
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(_stage, (f"{folder}/store", folder), 2)
        found = [torch.load(f"{folder}/{rank}") for rank in range(2)]
    return [gradient for stage in found for gradient in stage.values()]


def compared() -> list[dict[str, Any]]:
    """Norms of the gradient, and the largest difference to plain PyTorch's."""
    plain = _plain()
    gradients = {"plain": plain, "pardnn, two devices": _placed()}
    for number, gradient in enumerate(_pipelined()):
        gradients[f"pipelining, stage {number}"] = gradient
    return [
        {
            "by": name,
            "norm": gradient.norm().item(),
            "differs_by": (gradient - plain).abs().max().item(),
        }
        for name, gradient in gradients.items()
    ]

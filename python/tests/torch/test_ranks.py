"""A step over the ranks of a job of torchrun's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from pardnn.errors import UsageError
from pardnn.torch import api


def test_two_ranks_train_as_one_process_does() -> None:
    script = Path(__file__).with_name("trained_by_ranks.py")
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    ended = subprocess.run(
        [*torchrun, "--nproc-per-node=2", str(script)],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    for rank in range(2):
        assert f"rank {rank} of 2 has trained alike" in ended.stdout


def test_without_torchrun_there_are_no_ranks() -> None:
    model = nn.Linear(3, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    example = (torch.randn(2, 3), torch.randn(2, 3))
    with pytest.raises(UsageError, match="torchrun"):
        api.compile(model, nn.functional.mse_loss, optimizer, example, devices="ranks")

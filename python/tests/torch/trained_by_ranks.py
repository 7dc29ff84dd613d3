"""What `test_ranks.py` has torchrun start: every rank trains and compares with plain training."""

from __future__ import annotations

from itertools import islice

import torch
import torch.distributed as dist
from torch_models import CASES, batches, plain_training, same, to_place

from pardnn.torch import api

torch.set_num_threads(1)
case = CASES["tied"]
losses, state = plain_training(case, 3)
model, optimizer, example = to_place(case)
with api.compile(model, case.loss, optimizer, example, devices="ranks", memory="200MiB") as step:
    assert [step(x, y).item().hex() for x, y in islice(batches(case, 3), 3)] == losses
    assert same(step.state_dict(), state)
    assert step.optimizer_state().keys() == {n for n, _ in model.named_parameters()}
    print(f"rank {dist.get_rank()} of {dist.get_world_size()} has trained alike", flush=True)
dist.destroy_process_group()

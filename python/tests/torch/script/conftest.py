"""One thread: processes that tests fork do not inherit a pool."""

import torch

torch.set_num_threads(1)

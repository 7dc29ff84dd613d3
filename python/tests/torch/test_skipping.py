"""Dropout of another device moves the generator, and needs no memory for it."""

from __future__ import annotations

import pytest
import torch

from pardnn.torch.skipping import skip_bernoulli

torch.set_num_threads(1)


@pytest.mark.parametrize("count", [0, 1, 5, 16, 17, 16_384, 100_001])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_what_was_skipped_is_what_would_have_been_drawn(count: int, dtype: torch.dtype) -> None:
    torch.manual_seed(5)
    torch.empty(count, dtype=dtype).bernoulli_(0.3)
    expected = torch.get_rng_state()
    torch.manual_seed(5)
    skip_bernoulli(count, dtype, 0.3)
    assert torch.equal(torch.get_rng_state(), expected)

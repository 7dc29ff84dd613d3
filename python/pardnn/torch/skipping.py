"""Takes from torch's generator what dropout takes elsewhere, without the memory it needs there."""

from __future__ import annotations

import functools

import torch

_FEW, _CHUNK = 16, 1 << 14


def skip_bernoulli(count: int, dtype: torch.dtype, p: float) -> None:
    """As if so many numbers of this type had been drawn by ``bernoulli_(p)``."""
    chunk = _enough(dtype) or count
    left = count if chunk > _FEW else min(count, _FEW)
    while left > 0:
        torch.empty(min(left, chunk), dtype=dtype).bernoulli_(p)
        left -= chunk


@functools.cache
def _enough(dtype: torch.dtype) -> int | None:
    """Of how many numbers a draw moves the generator as a larger one does, or the larger one in
    pieces; None if neither is so. MKL takes one seed for all; torch's own kernel goes one by one.
    """

    def after(*counts: int) -> torch.Tensor:
        generator = torch.Generator()
        generator.manual_seed(0)
        for count in counts:
            torch.empty(count, dtype=dtype).bernoulli_(0.5, generator=generator)
        return generator.get_state()

    whole = after(3 * _CHUNK)
    if torch.equal(whole, after(_FEW)):
        return _FEW
    return _CHUNK if torch.equal(whole, after(_CHUNK, _CHUNK, _CHUNK)) else None

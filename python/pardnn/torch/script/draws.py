"""Random numbers: what one rank draws, the others draw too, so that all generators stay alike."""

from __future__ import annotations

import torch

from pardnn.torch.script.mode import Call
from pardnn.torch.skipping import skip_bernoulli

_BERNOULLI = torch.ops.aten.bernoulli_.float
# How many numbers these draw depends on values, which only one rank has.
COUNTED_BY_VALUES = frozenset(
    {
        "poisson",
        "binomial",
        "multinomial",
        "_standard_gamma",
        "_sample_dirichlet",
        "rrelu_with_noise",
        "rrelu_with_noise_",
    }
)


def state() -> bytes:
    """The state of torch's generator."""
    return bytes(torch.get_rng_state().tolist())


def follow(state: bytes) -> None:
    """Puts torch's generator into a state."""
    torch.set_rng_state(torch.frombuffer(bytearray(state), dtype=torch.uint8))


def repeat(call: Call) -> None:
    """Takes from this rank's generator what the op took elsewhere; the results are dropped.

    How many numbers are drawn depends on shapes alone, but some kernels refuse impossible values,
    so inputs that are not here are one half everywhere.
    """
    if call.facts.func is _BERNOULLI and call.kwargs.get("generator") is None:
        drawn = call.tensors[0]
        p = call.args[1] if len(call.args) > 1 else call.kwargs.get("p", 0.5)
        skip_bernoulli(drawn.numel(), drawn.dtype, p)
        return
    given: dict[int, torch.Tensor] = {}
    for tensor, home in zip(call.tensors, call.homes, strict=True):
        stand_in = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype)
        if home is None:
            stand_in.copy_(tensor)
        else:
            stand_in.fill_(0.5 if tensor.dtype.is_floating_point else 0)
        given[id(tensor)] = stand_in
    call.run(given)

"""Results of ops: what decides their shapes, and hollow ones of the same shapes."""

from __future__ import annotations

from typing import Any

import torch

from pardnn.errors import Refusal
from pardnn.torch.script.hollow import Home, hollow, home_of, settle
from pardnn.torch.script.mode import Call

_MASKS = (torch.bool, torch.uint8)


def describe(call: Call, out: Any) -> Any:
    """What is needed to make hollow results: plain values that can be compared and sent."""
    if isinstance(out, (tuple, list)):
        return (type(out), [describe(call, one) for one in out])
    if not isinstance(out, torch.Tensor):
        return ("value", out)
    if out.layout != torch.strided:
        raise Refusal(
            f"{call.facts.name} makes a sparse tensor, which cannot be on one of several ranks "
            "yet; make the embedding with sparse=False"
        )
    for number, tensor in enumerate(call.tensors):
        if tensor is out:
            return ("input", number)
    nbytes = out.untyped_storage().nbytes()
    like = (tuple(out.shape), out.stride(), out.dtype, out.storage_offset(), nbytes)
    return ("tensor", like)


def make(call: Call, known: Any, owner: int) -> Any:
    """Hollow results of the described shapes that are at home with ``owner``."""
    kind, what = known
    if kind == "tensor":
        size, stride, dtype, offset, nbytes = what
        return hollow(size, stride, dtype, offset, Home(owner), nbytes)
    if kind == "input":
        return call.tensors[what]
    if kind == "value":
        return what
    return kind(make(call, part, owner) for part in what)


def settle_all(call: Call, out: Any, unseen: int | None = None) -> None:
    """Makes results at home where the op ran, but for the one that all ranks have."""
    if isinstance(out, (tuple, list)):
        for number, one in enumerate(out):
            if number != unseen:
                settle_all(call, one)
    elif isinstance(out, torch.Tensor) and home_of(out) is None:
        storage = out.untyped_storage()._cdata
        for tensor in call.tensors:
            if tensor is out:
                return
            if tensor.untyped_storage()._cdata == storage:
                raise Refusal(f"{call.func} makes a view and does not say so; please report it")
        settle(out, Home(call.where))


def key_of(call: Call) -> Any:
    """What decides the shapes of the results; None where values do."""
    if call.facts.sized_by_values:
        return None
    if call.facts.masks_size and any(t.dtype in _MASKS for t in call.tensors):
        return None
    return call.func, _key(call.args), _key(call.kwargs.items())


def _key(values: Any) -> tuple[Any, ...]:
    parts: list[Any] = []
    for value in values:
        if isinstance(value, torch.Tensor):
            parts.append((value.shape, value.stride(), value.dtype))
        elif isinstance(value, (list, tuple)):
            parts.append(tuple(value) if _all_numbers(value) else _key(value))
        elif isinstance(value, torch.Generator):
            parts.append(torch.Generator)
        elif type(value) is float:
            parts.append(float)
        else:
            parts.append((type(value), value))
    return tuple(parts)


def _all_numbers(values: Any) -> bool:
    return all(type(value) in (int, float, bool) for value in values)

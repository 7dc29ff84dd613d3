"""Sparse tensors over ranks.

Indices and values have homes like any others; the sparse tensor that holds them is an object that
every rank has, and is at home where its values are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from pardnn.torch.sparse import joined, parts_of

if TYPE_CHECKING:
    from pardnn.torch.script.mode import Call

# Their results hold as many values as all their inputs together.
_ADDING = frozenset({"add", "add_", "sub", "sub_", "cat"})


def apart(call: Call, out: Any) -> Any:
    """Results whose parts lie in no input's memory, as every rank has to know of memories."""
    if not isinstance(out, torch.Tensor) or out.layout == torch.strided:
        return out
    known = {part.untyped_storage()._cdata for t in call.tensors for part in parts_of(t)}
    parts = parts_of(out)
    if all(part.untyped_storage()._cdata not in known for part in parts):
        return out
    return joined(out, [part.clone() for part in parts])


def place_of(part: torch.Tensor) -> tuple[Any, ...]:
    """Where in which memory a dense tensor lies."""
    storage = part.untyped_storage()
    return storage._cdata, part.storage_offset(), tuple(part.shape), part.stride()


def plausible(call: Call, out: torch.Tensor) -> torch.Tensor:
    """A fake sparse result with as many values as it may have: torch's rules say none."""
    of_inputs = [parts_of(t) for t in call.tensors if t.layout == torch.sparse_coo]
    if not of_inputs:
        return out
    adding = call.facts.name in _ADDING
    counts = [indices.shape[1] for indices, _ in of_inputs]
    count = sum(counts) if adding else counts[0]
    indices, values = parts_of(out)
    return joined(
        out,
        [
            indices.new_empty(indices.shape[0], count),
            values.new_empty(count, *values.shape[1:]),
        ],
    )

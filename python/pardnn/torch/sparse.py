"""Sparse tensors, as embeddings with ``sparse=True`` have for gradients: indices and values."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from pardnn.errors import Refusal

MAKE = torch.ops.aten._sparse_coo_tensor_with_dims_and_tensors.default
"""The op that makes one: of sparse and dense dimensions, the shape, indices, values."""


def parts_of(tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The dense tensors that it consists of: indices and values, or itself. Raises Refusal."""
    if tensor.layout == torch.strided:
        return (tensor,)
    if tensor.layout != torch.sparse_coo:
        raise Refusal(
            f"a tensor of layout {tensor.layout} cannot be on one of several ranks; use dense "
            "tensors or torch.sparse_coo"
        )
    return tensor._indices(), tensor._values()


def sparse_of(
    indices: torch.Tensor, values: torch.Tensor, shape: Sequence[int], coalesced: bool = False
) -> torch.Tensor:
    """The sparse tensor that consists of these two, without a look at what is in them."""
    made: torch.Tensor = MAKE(
        indices.shape[0],
        values.dim() - 1,
        shape,
        indices,
        values,
        is_coalesced=coalesced,
        dtype=values.dtype,
        layout=torch.sparse_coo,
        device=values.device,
    )
    return made


def joined(like: torch.Tensor, parts: Sequence[torch.Tensor]) -> torch.Tensor:
    """The tensor that consists of these parts as ``like`` consists of its own."""
    if like.layout == torch.strided:
        return parts[0]
    indices, values = parts
    return sparse_of(indices, values, like.shape, like.is_coalesced())

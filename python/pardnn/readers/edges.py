"""Edges with a size each, as outputs of the ops that they leave."""

from __future__ import annotations


class Edges:
    """Collects edges by key; an op has one output for each size among the edges that leave it.

    ``inputs``: references to outputs by reader, in the order added. ``count``: edges added.
    """

    def __init__(self) -> None:
        self.inputs: dict[str, list[str]] = {}
        self.count = 0
        self._sizes: dict[str, dict[int | None, int]] = {}

    def add(self, source: str, reader: str, size: int | None) -> None:
        """An edge that carries ``size`` bytes, None where that is not known."""
        known = self._sizes.setdefault(source, {})
        output = known.setdefault(size, len(known))
        reference = f"{source}:{output}" if output else source
        self.inputs.setdefault(reader, []).append(reference)
        self.count += 1

    def outputs(self, source: str) -> list[int | None]:
        """Bytes of the outputs of an op, in the order in which edges named them."""
        return list(self._sizes.get(source, {}))

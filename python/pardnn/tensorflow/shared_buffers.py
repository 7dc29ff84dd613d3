"""Which tensors of a step are in one buffer, as aliases of the first that was in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import tensorflow as tf

from pardnn.tensorflow import compat, semantics
from pardnn.tensorflow.loops import Regions


class SharedBuffers:
    """The buffers of `nodes`, which are in topological order."""

    def __init__(self, nodes: Sequence[tf.Operation], regions: Regions) -> None:
        self._regions = regions
        self._roots: dict[str, str] = {}
        self._readers: dict[str, list[str]] = {}
        for node in nodes:
            sources = self.sources(node)
            for source, output in zip(sources, node.outputs, strict=True):
                root = output.name if source.alias is None else self.root(node.inputs[source.alias])
                self._roots[output.name] = root
            for index, tensor in enumerate(node.inputs):
                if not any(source.alias == index for source in sources):
                    self._readers.setdefault(self.root(tensor), []).append(node.name)

    def sources(self, node: tf.Operation) -> list[semantics.Source]:
        """Where the bytes of each output of `node` come from."""
        if node.type in compat.FUNCTIONAL_OPS:
            return self._regions.of(node).sources
        return semantics.sources(node, self._regions.statics)

    def root(self, tensor: tf.Tensor) -> str:
        """The tensor that a buffer is named by, which the others in it are aliases of."""
        return self._roots.get(tensor.name, tensor.name)

    def readers(self, root: str) -> list[str]:
        """Nodes that read a buffer, once for each edge; those that only alias it do not count."""
        return self._readers.get(root, [])

    def names_of(self, tensor: tf.Tensor) -> Iterator[str]:
        """`tensor`, and those it is an alias of."""
        while True:
            yield str(tensor.name)
            alias = self.sources(tensor.op)[tensor.value_index].alias
            if alias is None:
                return
            tensor = tensor.op.inputs[alias]

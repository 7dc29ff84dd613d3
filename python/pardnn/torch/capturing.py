"""The training step of a model as a graph that the planner takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

import pardnn
from pardnn.errors import Refusal
from pardnn.torch import optimizers
from pardnn.torch.costs import Cost, costs_of
from pardnn.torch.gradients import gradient_rows
from pardnn.torch.nodes import ops_of
from pardnn.torch.step_graph import StepGraph, step_graph
from pardnn.torch.tracing import Trace, trace


@dataclass
class Captured:
    """The training step of a model as a graph: what `pardnn.plan` takes.

    ``graph``: forward, loss, backward, new buffers and the optimizer's updates, with costs in ns
    of one thread of this machine and all sizes in bytes; its ops carry the program's order.
    """

    graph: pardnn.Graph
    step: StepGraph
    updates: list[optimizers.Update]

    @property
    def trace(self) -> Trace:
        """The step in torch's terms."""
        return self.step.trace

    @property
    def sparse(self) -> list[str]:
        """The parameters that have sparse gradients."""
        return [name for name, rows in gradient_rows(self.trace).items() if rows is not None]

    def write(self, path: str) -> None:
        """Write the graph file; a name ending in .gz is compressed."""
        self.graph.write(path)


def capture(
    model: nn.Module,
    loss_fn: Callable[[Any, Any], torch.Tensor],
    optimizer: torch.optim.Optimizer,
    example_batch: tuple[Any, Any],
    *,
    measure: bool = True,
    accumulate: int = 1,
) -> Captured:
    """The graph of one training step: ``loss_fn(model(x), y)``, backward, ``optimizer.step()``.

    ``example_batch`` is ``(x, y)`` with the shapes of the real ones; ``x`` may be a tensor, a tuple
    of positional or a dictionary of keyword arguments. Nothing of the model's size is allocated:
    the model may be on the meta device or built inside of `deferred()`. Without ``measure`` costs
    are estimated from arithmetic and bytes. ``accumulate``: calls whose gradients are added up;
    with more than one, gradients are held all the time. Raises Refusal, naming the user's line, for
    what no graph can hold, such as sizes or branches that depend on values.
    """
    return capture_with(
        lambda make: make(), model, loss_fn, optimizer, example_batch, measure, accumulate
    )


def capture_with(
    shared: Callable[[Callable[[], Any]], Any],
    model: nn.Module,
    loss_fn: Callable[[Any, Any], torch.Tensor],
    optimizer: torch.optim.Optimizer,
    example_batch: tuple[Any, Any],
    measure: bool,
    accumulate: int,
) -> Captured:
    """As `capture`; ``shared`` makes what has to be the same for all who capture this."""
    traced = trace(model, loss_fn, optimizer, example_batch)
    ops = ops_of(traced)
    rows_of = gradient_rows(traced)
    sparse = [name for name, rows in rows_of.items() if rows is not None]
    if sparse and accumulate > 1:
        raise Refusal(
            f"{sparse[0]} has sparse gradients, which are not added up over calls; "
            "use accumulate=1, or sparse=False"
        )

    def measured() -> tuple[list[Cost], list[optimizers.Update]]:
        found = costs_of(ops, measure)
        updates = optimizers.updates_of(optimizer, model, rows_of)
        return [found[op.node] for op in ops], updates

    costs, updates = shared(measured)
    cost_of = {op.node: cost for op, cost in zip(ops, costs, strict=True)}
    step = step_graph(traced, cost_of, updates, ops, accumulate > 1)
    return Captured(step.graph, step, updates)

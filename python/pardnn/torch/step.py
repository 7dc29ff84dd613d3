"""A training step over devices, as a program calls it."""

from __future__ import annotations

import atexit
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import nn
from torch.nn.modules.module import _IncompatibleKeys
from torch.utils import _pytree as pytree

import pardnn
from pardnn.errors import UsageError
from pardnn.quantities import show_bytes
from pardnn.torch import optimizers, ranks
from pardnn.torch.capturing import Captured
from pardnn.torch.deferring import Recipe
from pardnn.torch.here import Here
from pardnn.torch.placing import Placed
from pardnn.torch.planning import RESERVE_BYTES
from pardnn.torch.step_graph import variable_key
from pardnn.torch.tensors import Packed
from pardnn.torch.workers import Workers

AnyWorkers: TypeAlias = Workers | ranks.Ranks | Here


@dataclass(frozen=True)
class Options:
    """What a step is besides its graph; see `pardnn.torch.compile`."""

    accumulate: int
    clip_grad_norm: float | None


class Step:
    """A training step over devices: ``loss = step(x, y)``.

    Each call computes loss and gradients and, every ``accumulate`` calls, updates the parameters
    with the optimizer's settings of that moment, so schedulers work as usual. Parameters, buffers
    and the optimizer's state live in the workers; the model given to `compile` keeps the values it
    had. ``plan``: the plan in use.
    """

    def __init__(
        self,
        captured: Captured,
        plan: pardnn.Plan,
        optimizer: torch.optim.Optimizer,
        workers: AnyWorkers,
        placed: Placed,
        options: Options,
    ) -> None:
        self.plan = plan
        self._captured = captured
        self._optimizer = optimizer
        self._workers = workers
        self._placed = placed
        self._options = options
        self._calls = 0
        # The workers end with the step, or with this process.
        weakref.finalize(self, workers.end)
        atexit.register(workers.end)

    def __call__(self, x: Any, y: Any) -> torch.Tensor:
        """The loss of one batch; shapes are those of the example. Raises WorkerError."""
        leaves, spec = pytree.tree_flatten((x, y))
        self._expect_known(leaves, spec)
        generator = Packed.of(torch.get_rng_state()) if self._placed.is_random else None
        self._calls += 1
        is_due = self._calls % self._options.accumulate == 0
        is_clipped = is_due and self._options.clip_grad_norm is not None
        groups = optimizers.group_settings(self._optimizer) if is_due else None
        request = (generator, groups, is_clipped)
        answers = self._workers.step(
            [request] * len(self._placed.programs),
            [[leaves[i] for i in program.reads_batch] for program in self._placed.programs],
        )
        loss, state, _ = next(answer for answer in answers if answer[0] is not None)
        if state is not None:
            torch.set_rng_state(state.tensor())
        if is_clipped:
            factor = Packed.of(self._clipping([norms for *_, norms in answers]))
            self._workers.ask_all("update", lambda n: (groups, factor))
        if is_due:
            self._optimizer._opt_called = True  # what schedulers ask
        return loss.tensor()

    def _expect_known(self, leaves: Sequence[Any], spec: Any) -> None:
        traced = self._captured.trace
        known = traced.placeholders[len(traced.placeholders) - traced.inputs :]
        if spec != traced.spec:
            raise UsageError("this batch is built otherwise than example_batch was")
        for leaf, node in zip(leaves, known, strict=True):
            like = node.meta["val"]
            if leaf.shape != like.shape or leaf.dtype != like.dtype:
                raise UsageError(
                    f"a tensor of this batch is {leaf.dtype} {tuple(leaf.shape)}; the step was "
                    f"compiled for {like.dtype} {tuple(like.shape)}: compile one more step for it, "
                    "or drop the last, smaller batch (DataLoader(drop_last=True))"
                )
            if leaf.stride() != like.stride():
                raise UsageError(
                    f"a tensor of this batch has strides {leaf.stride()}, the example had "
                    f"{like.stride()}; give both alike, as .contiguous() does"
                )

    def _clipping(self, found: Sequence[Any]) -> torch.Tensor:
        """The factor of torch.nn.utils.clip_grad_norm_ over all gradients, wherever they are."""
        norm_of: dict[str, torch.Tensor] = {}
        for names, norms in found:
            norm_of.update(zip(names, norms.tensor().unbind() if norms else (), strict=True))
        norms = [norm_of[name] for name in self._captured.trace.parameters if name in norm_of]
        total = torch.linalg.vector_norm(torch.stack(norms), 2.0)
        most = self._options.clip_grad_norm
        assert most is not None
        return torch.clamp(most / (total + 1e-6), max=1.0)

    def state_dict(self) -> dict[str, torch.Tensor]:
        """All that the model's own state_dict() has, under the same names, in the same order."""
        return dict(self.tensors())

    def tensors(self) -> Iterator[tuple[str, torch.Tensor]]:
        """The same one after another, so that no more than one need be in memory."""
        for name, first in self._placed.names.items():
            yield name, self._workers.get(self._placed.device_of[first], first)

    def load_state_dict(
        self, state: Mapping[str, torch.Tensor], strict: bool = True
    ) -> _IncompatibleKeys:
        """New values of parameters and buffers, as nn.Module has it: answers the names that are
        missing and those that the model has not. Raises UsageError for either where ``strict``, and
        for a tensor of another shape; then nothing is changed.
        """
        names = self._placed.names
        missing = [name for name in names if name not in state]
        unexpected = [name for name in state if name not in names]
        if strict and (missing or unexpected):
            raise UsageError(
                f"the state misses {', '.join(missing) or 'nothing'} and has "
                f"{', '.join(unexpected) or 'nothing'} that the model has not"
            )
        shapes = self._captured.trace.shapes
        present = {name: first for name, first in names.items() if name in state}
        for name, first in present.items():
            if state[name].shape != shapes[first]:
                raise UsageError(
                    f"{name} has shape {tuple(state[name].shape)} in the state and "
                    f"{tuple(shapes[first])} in the model"
                )
        for name, first in present.items():
            self._put(first, state[name])
        return _IncompatibleKeys(missing, unexpected)

    def _put(self, name: str, tensor: torch.Tensor) -> None:
        trained = name in self._placed.trained
        self._workers.put(self._placed.device_of[name], name, tensor.detach(), trained)

    def fill(self, model: nn.Module, recipe: Recipe | None) -> None:
        """Parameters, buffers and the optimizer's state go to the workers, where ``recipe`` makes
        them if there is one.
        """
        placed, workers, optimizer = self._placed, self._workers, self._optimizer
        if recipe is not None:
            wanted: list[dict[str, bool]] = [{} for _ in placed.programs]
            for name, device in placed.device_of.items():
                wanted[device][name] = name in placed.trained
            workers.ask_all("make", lambda n: (recipe, wanted[n]))
        else:
            for name, tensor in (*model.named_parameters(), *model.named_buffers()):
                self._put(name, tensor)
        name_of = {id(parameter): name for name, parameter in model.named_parameters()}
        held = {name_of[id(p)]: state for p, state in optimizer.state.items() if id(p) in name_of}
        self.load_optimizer_state({name: state for name, state in held.items() if state})

    def optimizer_state(self) -> dict[str, dict[str, Any]]:
        """The optimizer's state of each trained parameter, by name."""
        return {
            name: self._workers.ask(self._placed.device_of[name], "state_of", name)
            for name in self._captured.trace.trained
        }

    def load_optimizer_state(self, state: Mapping[str, Mapping[str, Any]]) -> None:
        """The other way round."""
        for name, held in state.items():
            self._workers.ask(self._placed.device_of[name], "set_state_of", name, dict(held))

    @property
    def reserve_bytes(self) -> int:
        """Bytes of each device that plans leave for messages and for torch itself."""
        return RESERVE_BYTES

    @property
    def worker_pids(self) -> list[int]:
        """Of the processes that train."""
        return self._workers.pids

    def measured_peaks(self) -> dict[str, int]:
        """The most bytes in use on each device in the last step, compiled with ``metered=True``."""
        answers = self._workers.ask_all("most_bytes", lambda n: ())
        return dict(zip(self.plan.limits, answers, strict=True))

    def report(self) -> str:
        """Where things are, in a few lines."""
        plan = self.plan
        of = plan.device_of
        lines = [
            f"step {plan.step_ns / 1e6:.1f} ms predicted, {len(plan.transfers)} transfers of "
            f"{show_bytes(plan.bytes_sent)}, found by {plan.algorithm}"
        ]
        for device, peak in plan.peaks.items():
            held = sum(of[variable_key(n)] == device for n in self._captured.trace.parameters)
            ops = sum(where == device for where in of.values())
            lines.append(
                f"{device}: {show_bytes(peak)} of {show_bytes(plan.limits[device])}, {held} "
                f"parameters, {ops} ops and variables"
            )
        return "\n".join(lines)

    def close(self) -> None:
        """Ends the workers; what they hold is gone."""
        self._workers.end()

    def __enter__(self) -> Step:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

"""A worker: a process that holds one device's part of a model and runs its program.

usage: python -m pardnn.torch.worker DESCRIPTOR
It obeys its chief over the open socket DESCRIPTOR and ends with it. Requests are tuples of a name
and arguments; an answer is ("ok", value) or ("error", text).
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.connection import Connection
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from pardnn.torch import optimizers, tensors
from pardnn.torch.deferring import Recipe
from pardnn.torch.meter import HighWater, allow, code_bytes, keep_freed, keep_little, keep_nothing
from pardnn.torch.programs import Program
from pardnn.torch.runtime import Run
from pardnn.torch.tensors import Packed

# A limit of so many times the predicted peak leaves room for what the allocator keeps.
_ROOMY = 2
_TIMEOUT = timedelta(minutes=10)
Groups = list[dict[str, Any]]
# Names of parameters, and the norms of their gradients.
Norms = tuple[list[str], Packed | None]


@dataclass(frozen=True)
class Setup:
    """What a worker is told first.

    ``limit``: bytes it may have beyond what it has before its parameters; None: no limit.
    ``peak``: bytes that the plan has it hold at most. ``store``: a file by which the workers find
    each other. ``trained``: names of the parameters of each group of the optimizer that live here;
    ``sparse``: whether a group's gradients are.
    """

    number: int
    count: int
    store: str
    threads: int
    limit: int | None
    peak: int
    program: Program
    optimizer: type[torch.optim.Optimizer]
    settings: dict[str, Any]
    groups: list[dict[str, Any]]
    trained: list[list[str]]
    sparse: list[bool]
    metered: bool


class Worker:
    """Holds one device's part and does what it is asked, in a process group that exists."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        torch.set_num_threads(setup.threads)
        self._program = setup.program.function()
        self._tensors: dict[str, torch.Tensor] = {}
        self._run = Run(self._tensors)
        self._optimizer: torch.optim.Optimizer | None = None
        if setup.count > 1:
            dist.barrier()  # connections are made before the limit holds
        self._warm_up()
        if setup.metered:
            keep_nothing()
        elif setup.limit is None or setup.limit > _ROOMY * setup.peak:
            keep_freed()
        else:
            keep_little(setup.limit)
        if setup.limit is not None:
            allow(setup.limit)
        self._code_bytes = code_bytes() if setup.metered else 0
        self._high_water = HighWater()

    def _warm_up(self) -> None:
        """The first update imports half of torch, which is none of the model's memory."""
        tiny: Any = [[nn.Parameter(torch.zeros(1, 1))] for _ in self._setup.groups]
        setup = self._setup
        optimizer = optimizers.alike(setup.optimizer, setup.settings, setup.groups, tiny)
        for (parameter,), is_sparse in zip(tiny, setup.sparse, strict=True):
            # Of two dimensions, since some take matrices alone.
            parameter.grad = optimizers.gradient_like(parameter, 1 if is_sparse else None)
        with torch.random.fork_rng(devices=[]):
            optimizer.step()

    def make(self, recipe: Recipe, trained: dict[str, bool]) -> None:
        """Makes the tensors named in ``trained`` as the constructor would have."""
        for name, tensor in recipe.make(lambda name: name in trained):
            self.keep(name, tensor.detach(), trained[name])

    def keep(self, name: str, tensor: torch.Tensor, trained: bool) -> None:
        """Takes a tensor: a parameter, or anything else that has a name."""
        known = self._tensors.get(name)
        if known is None:
            self._tensors[name] = nn.Parameter(tensor) if trained else tensor
        else:
            with torch.no_grad():
                known.copy_(tensor)

    def tensor(self, name: str) -> torch.Tensor:
        """One of the tensors that are here."""
        return self._tensors[name].detach()

    def step(
        self,
        batch: Sequence[torch.Tensor],
        generator: Packed | None,
        groups: Groups | None,
        is_clipped: bool,
    ) -> tuple[Packed | None, Packed | None, Norms | None]:
        """Forward and backward, and an update with the settings of ``groups`` if there are any.

        ``batch``: the tensors that the program reads. Answers the loss and the generator's state
        where they are here, and the norms of gradients that are to be clipped; these are updated
        once all norms are known.
        """
        if self._setup.metered:
            self._high_water.reset()
        if generator is not None:
            torch.set_rng_state(generator.tensor())
        reads = dict(zip(self._setup.program.reads_batch, batch, strict=True))
        with torch.enable_grad():
            loss = self._program(self._run, self._run.values(), reads)
        answer = Packed.of(loss) if self._setup.program.has_loss else None
        state = None
        if generator is not None and answer is not None:
            state = Packed.of(torch.get_rng_state())
        if is_clipped:
            return answer, state, self._norms()
        if groups is not None:
            self.update(groups, None)
        return answer, state, None

    def _norms(self) -> Norms:
        """The norm of each gradient that is here."""
        held = {n: t.grad for n, t in self._tensors.items() if t.grad is not None}
        norms = [torch.linalg.vector_norm(gradient, 2.0) for gradient in held.values()]
        return list(held), Packed.of(torch.stack(norms)) if norms else None

    def update(self, groups: Groups, factor: Packed | None) -> None:
        """One step of the optimizer, with the settings that its groups have now, of the gradients
        multiplied by ``factor``.
        """
        if factor is not None:
            for tensor in self._tensors.values():
                if tensor.grad is not None:
                    tensor.grad.mul_(factor.tensor())
        optimizer = self._made_optimizer()
        for group, now in zip(optimizer.param_groups, groups, strict=True):
            group.update(now)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    def _made_optimizer(self) -> torch.optim.Optimizer:
        if self._optimizer is None:
            setup = self._setup
            held = [[self._tensors[name] for name in names] for names in setup.trained]
            parameters: Any = held
            self._optimizer = optimizers.alike(
                setup.optimizer, setup.settings, setup.groups, parameters
            )
        return self._optimizer

    def state_of(self, name: str) -> dict[str, Any]:
        """The optimizer's state of a parameter: tensors and numbers."""
        return dict(self._made_optimizer().state.get(self._tensors[name], {}))

    def set_state_of(self, name: str, state: dict[str, Any]) -> None:
        """The other way round."""
        self._made_optimizer().state[self._tensors[name]] = state

    def most_bytes(self) -> int:
        """The most bytes of its own in the last step, beyond those before parameters, without the
        code that torch's kernels have generated since.
        """
        return self._high_water.bytes() - (code_bytes() - self._code_bytes)


class _Obedient:
    """A worker that its chief speaks with over a socket."""

    def __init__(self, connection: Connection, setup: Setup) -> None:
        self._connection = connection
        store = dist.FileStore(setup.store, setup.count)
        dist.init_process_group(
            "gloo", store=store, rank=setup.number, world_size=setup.count, timeout=_TIMEOUT
        )
        self._worker = Worker(setup)
        self._reads = len(setup.program.reads_batch)

    def obey(self) -> None:
        """Until the chief ends it or is gone."""
        while True:
            try:
                name, *arguments = tensors.receive_object(self._connection)
            except (EOFError, ConnectionResetError):
                return
            if name == "end":
                return
            try:
                answer = self._do(name, arguments)
            except Exception as error:  # noqa: BLE001  the chief decides what it means
                traceback.print_exc()
                tensors.send_object(self._connection, ("error", f"{type(error).__name__}: {error}"))
                continue
            tensors.send_object(self._connection, ("ok", answer))
            if name == "get":
                tensors.send(self._connection, self._worker.tensor(*arguments))

    def _do(self, name: str, arguments: list[Any]) -> Any:
        if name == "get":
            return None
        if name == "put":
            name, trained = arguments
            return self._worker.keep(name, tensors.receive(self._connection), trained)
        if name == "step":
            arguments.insert(0, [tensors.receive(self._connection) for _ in range(self._reads)])
        return getattr(self._worker, name)(*arguments)


def main(arguments: Sequence[str]) -> int:
    """Returns the exit status."""
    connection = Connection(int(arguments[0]))
    try:
        setup = tensors.receive_object(connection)
    except EOFError:
        return 0
    worker = _Obedient(connection, setup)
    tensors.send_object(connection, ("ok", os.getpid()))
    worker.obey()
    return 0


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    # Gloo's threads may still hold what other workers never fetched.
    os._exit(status)

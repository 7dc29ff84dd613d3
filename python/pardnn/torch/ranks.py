"""The devices of a step as ranks of a job that torchrun has started, on one host or several: every
rank runs the user's script, holds its own part and runs its own program.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import torch
import torch.distributed as dist

import pardnn
from pardnn.errors import UsageError
from pardnn.torch.worker import Setup, Worker

T = TypeVar("T")


def join() -> int:
    """Joins the job, unless this process has; answers how many ranks it has. Raises UsageError."""
    if not dist.is_initialized():
        if not dist.is_torchelastic_launched():
            raise UsageError("devices='ranks' is for scripts that torchrun starts")
        dist.init_process_group("gloo")
    if dist.get_backend() != "gloo":
        raise UsageError(
            "devices='ranks' needs a process group of gloo's: init_process_group('gloo')"
        )
    return dist.get_world_size()


def of_first(make: Callable[[], T]) -> T:
    """What the first rank makes, on all of them."""
    found = [make() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(found)
    answer: Any = found[0]
    return answer


def plan_of_first(graph: pardnn.Graph, make: Callable[[], pardnn.Plan]) -> pardnn.Plan:
    """The plan that the first rank makes, on all of them, by way of its file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "plan.json")

        def text() -> bytes:
            make().write(str(path))
            return path.read_bytes()

        path.write_bytes(of_first(text))
        return pardnn.Plan.read(str(path), graph)


class Ranks:
    """What `pardnn.torch.workers.Workers` is, as one of them has it: all ask for the same."""

    def __init__(self, setup: Setup) -> None:
        self._number = setup.number
        self._worker = Worker(setup)
        self.pids: list[int] = []

    def step(
        self, requests: Sequence[Sequence[Any]], batches: Sequence[Sequence[torch.Tensor]]
    ) -> list[Any]:
        """The answers of all ranks to a step."""
        number = self._number
        return _gathered(self._worker.step(batches[number], *requests[number]))

    def ask(self, number: int, name: str, *arguments: Any) -> Any:
        """One rank's answer."""
        answer = [getattr(self._worker, name)(*arguments) if number == self._number else None]
        dist.broadcast_object_list(answer, number)
        return answer[0]

    def ask_all(self, name: str, arguments_of: Callable[[int], Sequence[Any]]) -> list[Any]:
        """The answers of all ranks."""
        return _gathered(getattr(self._worker, name)(*arguments_of(self._number)))

    def put(self, number: int, name: str, tensor: torch.Tensor, trained: bool) -> None:
        """Every rank has the tensor; the one whose it is takes it."""
        if number == self._number:
            self._worker.keep(name, tensor.clone(), trained)

    def get(self, number: int, name: str) -> torch.Tensor:
        """A rank's tensor, on all ranks."""
        is_here = number == self._number
        tensor = self._worker.tensor(name) if is_here else None
        layout = [(tensor.shape, tensor.stride(), tensor.dtype) if tensor is not None else None]
        dist.broadcast_object_list(layout, number)
        shape, stride, dtype = layout[0] or ((), (), None)
        content = torch.empty(shape, dtype=dtype) if tensor is None else tensor.contiguous()
        dist.broadcast(content, number)
        return torch.empty_strided(shape, stride, dtype=dtype).copy_(content)

    def end(self) -> None:
        """The job goes on."""


def _gathered(answer: Any) -> list[Any]:
    answers: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(answers, answer)
    return answers

"""All devices of a step in this process: one program, with copies at the cuts.

The program is that of `pardnn.torch.programs`, written for all devices at once: each op runs on its
device, and a value that is read elsewhere is copied there right behind the op that makes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from pardnn.torch.calls import Constants
from pardnn.torch.gradients import Gradient
from pardnn.torch.nodes import Op, Value, value_of
from pardnn.torch.programs import (
    Line,
    Program,
    Programs,
    around_draw,
    call_text,
    gradient_text,
    with_ends,
)
from pardnn.torch.step_graph import Item
from pardnn.torch.worker import Setup, Worker


class _OnDevice(Constants):
    """Constants, where a device stands for the one that an op runs on."""

    def __init__(self, devices: Sequence[torch.device]) -> None:
        super().__init__()
        self._devices = devices
        self.number = 0

    def _argument(self, argument: Any, read: Callable[[torch.fx.Node], str]) -> str:
        if isinstance(argument, torch.device):
            argument = self._devices[self.number]
        return super()._argument(argument, read)

    def device(self, number: int) -> str:
        """The text of a device."""
        return f"torch.{self._devices[number]!r}"


class _Writer:
    """Writes the program of all devices."""

    def __init__(self, shared: Programs, devices: Sequence[torch.device]) -> None:
        self._shared = shared
        self._constants = _OnDevice(devices)
        self._lines: list[Line] = []

    def write(self) -> Program:
        shared = self._shared
        everywhere = [(Value(n, 0), f"batch[{i}]") for i, n in enumerate(shared.batch)]
        everywhere += [(Value(n, 0), self._constants.text(shared.tensor(n))) for n in shared.held]
        for value, text in everywhere:
            for number in self._needing(value.node):
                variable = self._variable(value, number)
                moved = f"run.copied({text}, {self._constants.device(number)})"
                self._line(f"{variable} = {moved}", (), (variable,))
        for item in shared.order:
            self._item(item)
        variable = self._variable(shared.loss, shared.loss_device)
        self._line(f"return {variable}", (variable,))
        source = "\n".join(["def program(run, state, batch):", *with_ends(self._lines)]) + "\n"
        return Program(source, self._constants.items, tuple(range(len(shared.batch))), True)

    def _needing(self, node: torch.fx.Node) -> list[int]:
        return [number for number, nodes in enumerate(self._shared.needed) if node in nodes]

    def _line(self, text: str, reads: Sequence[str], makes: Sequence[str] = ()) -> None:
        self._lines.append(Line(text, reads, makes))

    def _variable(self, value: Value, number: int) -> str:
        return f"{value.node.name}_{value.number}_on{number}"

    def _item(self, item: Item) -> None:
        shared = self._shared
        if isinstance(item, Op) and item.everywhere:
            for number in self._needing(item.node):
                self._call(item, number)
            return
        home = shared.device_of(item)
        assert home is not None
        if isinstance(item, Op):
            self._call(item, home)
            for number in range(len(item.outputs)):
                self._copy(Value(item.node, number), home)
        elif isinstance(item, torch.fx.Node):
            value = Value(item, 0)
            if shared.is_read(value):
                variable = self._variable(value, home)
                self._line(f"{variable} = state[{shared.name_of[item]!r}]", (), (variable,))
                self._copy(value, home)
        elif isinstance(item, Gradient):
            variables = [self._variable(value, home) for value in item.reads]
            self._line(gradient_text(item, variables), variables)
        else:
            variable = self._variable(shared.new_buffers[item], home)
            self._line(f"run.write({item!r}, {variable})", (variable,))

    def _call(self, op: Op, number: int) -> None:
        self._constants.number = number
        reads = [self._variable(value, number) for value in op.inputs]
        call = call_text(
            self._constants, op.node, lambda read: self._variable(value_of(read), number)
        )
        makes = [self._variable(Value(op.node, n), number) for n in range(len(op.outputs))]
        is_many = isinstance(op.node.meta.get("val"), (tuple, list))
        made = f"({', '.join(makes)},)" if is_many else makes[0]
        again = self._shared.again
        before, after = around_draw(op.node, again, again.values())
        self._lines += before
        self._line(f"{made} = {call}", reads, makes)
        self._lines += after

    def _copy(self, value: Value, home: int) -> None:
        for crossing in self._shared.crossings_of.get(value, ()):
            source, copy = self._variable(value, home), self._variable(value, crossing.reader)
            text = f"{copy} = run.copied({source}, {self._constants.device(crossing.reader)})"
            self._line(text, (source,), (copy,))


def program_of(shared: Programs, devices: Sequence[torch.device]) -> Program:
    """The program of all devices."""
    return _Writer(shared, devices).write()


class Here:
    """What `pardnn.torch.workers.Workers` is, in this process: one that holds everything."""

    def __init__(self, setup: Setup, device_of: Mapping[str, torch.device]) -> None:
        self._worker = Worker(setup)
        self._device_of = device_of
        self.pids: list[int] = []

    def step(
        self, requests: Sequence[Sequence[Any]], batches: Sequence[Sequence[torch.Tensor]]
    ) -> list[Any]:
        """The answer to a step."""
        return [self._worker.step(batches[0], *requests[0])]

    def ask(self, number: int, name: str, *arguments: Any) -> Any:
        """The answer to a request."""
        return getattr(self._worker, name)(*arguments)

    def ask_all(self, name: str, arguments_of: Callable[[int], Sequence[Any]]) -> list[Any]:
        """The same."""
        if name == "make":
            recipe, trained = arguments_of(0)
            for made, tensor in recipe.make(lambda name: name in trained):
                self.put(0, made, tensor.detach(), trained[made])
            return [None]
        return [self.ask(0, name, *arguments_of(0))]

    def put(self, number: int, name: str, tensor: torch.Tensor, trained: bool) -> None:
        """Takes a tensor to its device."""
        self._worker.keep(name, tensor.to(self._device_of[name], copy=True), trained)

    def get(self, number: int, name: str) -> torch.Tensor:
        """A tensor, on the CPU."""
        return self._worker.tensor(name).to("cpu", copy=True)

    def end(self) -> None:
        """Nothing else runs."""

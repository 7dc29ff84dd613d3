"""The program of each device: straight Python code that calls torch's ops, sends what others read,
receives what it reads, and forgets every tensor behind its last use.

All devices follow the order of the trace, at the times that the plan predicts. A value is sent
right behind the op that makes it, a receiver asks for it before its first op that starts after the
transfer does, and a sender waits for the end of a transfer before its first op that starts after
that end. So every wait is for something earlier, no two devices ever wait for each other, and
copies live as long as the plan says.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch

from pardnn.torch.calls import Constants, Layout, names_of
from pardnn.torch.gradients import Gradient
from pardnn.torch.nodes import Op, Value, tensor_of, value_of
from pardnn.torch.step_graph import Item, StepGraph

aten = torch.ops.aten


@dataclass
class Program:
    """What one device runs.

    ``source``: a function `program(run, state, batch)` in a module's text. ``constants``: what its
    ``c`` holds: layouts, ops by name, types, tensors. ``reads_batch``: numbers of the batch's
    tensors that it reads. ``has_loss``: whether it answers the loss, else None.
    """

    source: str
    constants: list[Any] = field(default_factory=list)
    reads_batch: tuple[int, ...] = ()
    has_loss: bool = False

    def function(self) -> Callable[..., Any]:
        """The program, ready to be called."""
        names = names_of(self.constants)
        exec(compile(self.source, "<pardnn program>", "exec"), names)
        return names["program"]


class Crossing(NamedTuple):
    """A value on its way to another device, from ``begin_ns`` to ``end_ns``."""

    begin_ns: int
    end_ns: int
    tag: int
    value: Value
    home: int
    reader: int


@dataclass(frozen=True)
class Placement:
    """Where and when everything is: by the plan, in numbers of devices.

    ``device_of``: of each op, parameter and buffer by its node; ops that are made everywhere have
    none. ``start_ns``: by position in the step's order, -1 for what is made everywhere.
    ``transfer_ns``: begin and end of each value's way to each reader.
    """

    devices: int
    device_of: Mapping[torch.fx.Node, int]
    start_ns: Sequence[int]
    transfer_ns: Mapping[tuple[Value, int], tuple[int, int]]


class Line:
    """A statement with the variables that it reads and makes."""

    def __init__(self, text: str, reads: Sequence[str] = (), makes: Sequence[str] = ()) -> None:
        self.text, self.reads, self.makes = text, list(reads), list(makes)


class _Writer:
    """Writes the program of one device."""

    def __init__(self, shared: Programs, device: int) -> None:
        self._shared = shared
        self._device = device
        self._lines: list[Line] = []
        self._constants = Constants()
        self._coming = sorted(c for c in shared.crossings if c.reader == device)[::-1]
        self._leaving: list[tuple[int, int]] = []  # ends and tags of what was sent, a heap
        self._handles: dict[Value, str] = {}  # received, not yet waited for
        self._has_written = False
        again = shared.again.items()
        self._drawn_again = {first for node, first in again if shared.runs(node, device)}

    def write(self) -> Program:
        shared, device = self._shared, self._device
        needed = shared.needed[device]
        batch = [number for number, node in enumerate(shared.batch) if node in needed]
        for number in batch:
            variable = _name(Value(shared.batch[number], 0))
            self._line(f"{variable} = batch[{number}]", (), (variable,))
        for node in shared.held:
            if node in needed:
                variable = _name(Value(node, 0))
                tensor = self._constants.text(shared.tensor(node))
                self._line(f"{variable} = {tensor}", (), (variable,))
        for number, item in enumerate(shared.order):
            self._item(item, shared.placement.start_ns[number])
        self._begin_writing()
        has_loss = shared.loss_device == device
        if has_loss:
            variable = self._read(shared.loss)
            self._line(f"return {variable}", (variable,))
        source = "\n".join(["def program(run, state, batch):", *with_ends(self._lines)])
        return Program(source + "\n", self._constants.items, tuple(batch), has_loss)

    def _item(self, item: Item, start_ns: int) -> None:
        shared, device = self._shared, self._device
        if isinstance(item, Op) and item.everywhere:
            if item.node in shared.needed[device]:
                self._call(item)
            return
        if shared.device_of(item) != device:
            if isinstance(item, Op) and item.is_random:
                self._burn(item)
            return
        self._pass(start_ns)
        if isinstance(item, torch.fx.Node):
            self._read_state(item)
        elif isinstance(item, Op):
            self._call(item)
            for number in range(len(item.outputs)):
                self._send(Value(item.node, number))
        elif isinstance(item, Gradient):
            variables = [self._read(value) for value in item.reads]
            self._line(gradient_text(item, variables), variables)
        else:
            self._begin_writing()
            variable = self._read(shared.new_buffers[item])
            self._line(f"run.write({item!r}, {variable})", (variable,))

    def _line(self, text: str, reads: Sequence[str] = (), makes: Sequence[str] = ()) -> None:
        self._lines.append(Line(text, reads, makes))

    def _pass(self, now_ns: int) -> None:
        """Asks for what is on its way by now, and waits for what has arrived by now, in the order
        of the plan, so that memory is let go before more is taken.
        """
        while True:
            begin_ns = self._coming[-1].begin_ns if self._coming else math.inf
            end_ns = self._leaving[0][0] if self._leaving else math.inf
            if min(begin_ns, end_ns) > now_ns:
                return
            if end_ns <= begin_ns:
                self._line(f"run.sent({heapq.heappop(self._leaving)[1]})")
            else:
                self._receive()

    def _receive(self) -> None:
        coming = self._coming.pop()
        layout = self._constants.text(Layout.of(tensor_of(coming.value)))
        handle = f"h{coming.tag}"
        text = f"{handle} = run.receive({layout}, {coming.home}, {coming.tag})"
        self._line(text, (), (handle,))
        self._handles[coming.value] = handle

    def _begin_writing(self) -> None:
        """Buffers are written to once nothing is sent out of them any more; others, which do the
        same, must be able to send meanwhile.
        """
        if not self._has_written:
            self._has_written = True
            while self._coming:
                self._receive()
            self._line("run.settle()")

    def _read(self, value: Value) -> str:
        """The variable of a value; waits for it where it is under way."""
        variable = _name(value)
        handle = self._handles.pop(value, None)
        if handle is not None:
            self._line(f"{variable} = run.wait({handle})", (handle,), (variable,))
        return variable

    def _read_state(self, node: torch.fx.Node) -> None:
        value = Value(node, 0)
        if self._shared.is_read(value):
            variable = _name(value)
            self._line(f"{variable} = state[{self._shared.name_of[node]!r}]", (), (variable,))
            self._send(value)

    def _call(self, op: Op) -> None:
        node = op.node
        reads = {value: self._read(value) for value in op.inputs}
        call = call_text(self._constants, node, lambda read: reads[value_of(read)])
        before, after = around_draw(node, self._shared.again, self._drawn_again)
        self._lines += before
        makes = [_name(Value(node, number)) for number in range(len(op.outputs))]
        if isinstance(node.meta.get("val"), (tuple, list)):
            self._line(f"({', '.join(makes)},) = {call}", list(reads.values()), makes)
        else:
            self._line(f"{makes[0]} = {call}", list(reads.values()), makes)
        self._lines += after

    def _burn(self, op: Op) -> None:
        """Draws as many numbers as the op does where it runs, so that all generators agree."""
        if op.node in self._shared.again:
            return
        self._lines += around_draw(op.node, {}, self._drawn_again)[0]

        def made(read: torch.fx.Node) -> str:
            layout = self._constants.text(Layout.of(tensor_of(value_of(read))))
            return layout if is_bernoulli else f"run.made({layout})"

        is_bernoulli = op.node.target is aten.bernoulli.p
        if is_bernoulli:
            self._line(f"run.skip({self._constants.arguments(op.node, made)})")
            return
        self._line(call_text(self._constants, op.node, made))

    def _send(self, value: Value) -> None:
        for crossing in self._shared.crossings_of.get(value, ()):
            variable = _name(value)
            self._line(f"run.send({variable}, {crossing.reader}, {crossing.tag})", (variable,))
            heapq.heappush(self._leaving, (crossing.end_ns, crossing.tag))


def call_text(
    constants: Constants, node: torch.fx.Node, read: Callable[[torch.fx.Node], str]
) -> str:
    """The call that a node is; ``read`` says what stands for a node that it reads."""
    if node.target is aten.bernoulli.p:
        return f"run.bernoulli({constants.arguments(node, read)})"
    return constants.call(node, read)


def gradient_text(gradient: Gradient, variables: Sequence[str]) -> str:
    """The call that hands a gradient over; ``variables``: of its values, then of its indices."""
    read = ", ".join(variables)
    return f"run.gradient({gradient.parameter!r}, {gradient.is_own}, {read})"


def around_draw(
    node: torch.fx.Node,
    again: Mapping[torch.fx.Node, torch.fx.Node],
    drawn_again: Collection[torch.fx.Node],
) -> tuple[list[Line], list[Line]]:
    """What stands before and behind an op that may draw random numbers.

    ``again``: of each op that draws those of another once more, that one. ``drawn_again``: the ops
    whose numbers this program draws once more.
    """
    first = again.get(node)
    if first is not None:
        line = Line(f"run.draw_again({_state(first)})", (_state(first),))
        return [line], [Line("run.draw_on()")]
    if node in drawn_again:
        return [Line(f"{_state(node)} = run.generator()", (), (_state(node),))], []
    return [], []


def with_ends(lines: Sequence[Line]) -> list[str]:
    """The lines, with `del` behind the last use of each variable."""
    last: dict[str, int] = {}
    for number, line in enumerate(lines):
        for variable in (*line.reads, *line.makes):
            last[variable] = number
    texts = ["  pass"]
    for number, line in enumerate(lines):
        texts.append(f"  {line.text}")
        if line.text.startswith("return "):
            break
        ended = dict.fromkeys(v for v in (*line.reads, *line.makes) if last[v] == number)
        if ended:
            texts.append(f"  del {', '.join(ended)}")
    return texts


def _state(node: torch.fx.Node) -> str:
    """The variable of the generator's state before a node draws from it."""
    return f"{node.name}_generator"


def _name(value: Value) -> str:
    return f"{value.node.name}_{value.number}"


class Programs:
    """The programs of all devices of one step under one placement."""

    def __init__(self, step: StepGraph, placement: Placement) -> None:
        trace = step.trace
        self.placement = placement
        self.order = step.order
        self.again = trace.again
        self._trace = trace
        names = [*trace.parameters, *trace.buffers]
        self._state = dict(zip(names, trace.placeholders, strict=False))
        self.name_of = {node: name for name, node in self._state.items()}
        self.batch = trace.placeholders[len(names) :]
        self.held = [node for node in trace.module.graph.nodes if node.op == "get_attr"]
        self.loss = value_of(trace.outputs[0])
        news = trace.outputs[1 + len(trace.trained) :]
        self.new_buffers = {n: value_of(v) for n, v in zip(trace.buffers, news, strict=True)}
        self.loss_device = placement.device_of.get(self.loss.node, 0)
        self._readers = self._find_readers()
        self.needed = [self._needed(device) for device in range(placement.devices)]
        self.crossings = self._find_crossings()
        self.crossings_of: dict[Value, list[Crossing]] = {}
        for crossing in self.crossings:
            self.crossings_of.setdefault(crossing.value, []).append(crossing)

    def program(self, device: int) -> Program:
        """The program of one device."""
        return _Writer(self, device).write()

    def device_of(self, item: Item) -> int | None:
        """Where something is done; None: everywhere."""
        if isinstance(item, Gradient):
            item = self._state[item.parameter]
        if isinstance(item, str):
            item = self._state[item]
        return self.placement.device_of.get(item.node if isinstance(item, Op) else item)

    def runs(self, node: torch.fx.Node, device: int) -> bool:
        """Whether an op runs on a device."""
        return self.placement.device_of.get(node) == device

    def reads_of(self, item: Item) -> tuple[Value, ...]:
        """What is read to do it."""
        if isinstance(item, Op):
            return item.inputs
        if isinstance(item, Gradient):
            return item.reads
        return (self.new_buffers[item],) if isinstance(item, str) else ()

    def is_read(self, value: Value) -> bool:
        """Whether anybody reads a value which is not made everywhere."""
        return value in self._readers

    def tensor(self, node: torch.fx.Node) -> torch.Tensor:
        """A tensor that the model's code holds besides its parameters and buffers."""
        held = getattr(self._trace.module, str(node.target))
        assert isinstance(held, torch.Tensor)
        return held.detach()

    def _find_readers(self) -> dict[Value, set[int]]:
        readers: dict[Value, set[int]] = {}
        reads = [
            (value, self.device_of(item)) for item in self.order for value in self.reads_of(item)
        ]
        for value, device in [*reads, (self.loss, self.loss_device)]:
            if device is not None and self.device_of(value.node) is not None:
                readers.setdefault(value, set()).add(device)
        return readers

    def _needed(self, device: int) -> set[torch.fx.Node]:
        """What is made everywhere and the device really reads, itself or through more of that."""
        needed = {self.loss.node} if self.loss_device == device else set()
        for item in reversed(self.order):
            everywhere = isinstance(item, Op) and item.everywhere and item.node in needed
            if everywhere or self.device_of(item) == device:
                needed.update(value.node for value in self.reads_of(item))
        return needed

    def _find_crossings(self) -> list[Crossing]:
        crossings: list[Crossing] = []
        for value in sorted(self._readers, key=lambda v: (v.node.name, v.number)):
            home = self.device_of(value.node)
            assert home is not None
            for reader in sorted(self._readers[value] - {home}):
                begin_ns, end_ns = self.placement.transfer_ns[value, reader]
                tag = len(crossings)
                crossings.append(Crossing(begin_ns, end_ns, tag, value, home, reader))
        return crossings

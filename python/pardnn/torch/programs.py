"""The program of each device: straight Python code that calls torch's ops, sends what others read,
receives what it reads, and forgets every tensor behind its last use.

All devices follow the order of the trace. A value is sent right behind the op that makes it, and
its receiver asks for it at the same place of that order, so no two devices ever wait for each
other: the one that is farthest behind can always go on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from pardnn.torch.calls import Constants, Layout, names_of
from pardnn.torch.nodes import Op, Value, tensor_of, value_of
from pardnn.torch.tracing import Trace

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


class _Line:
    """A statement with the variables that it reads and makes."""

    def __init__(self, text: str, reads: Sequence[str] = (), makes: Sequence[str] = ()) -> None:
        self.text, self.reads, self.makes = text, list(reads), list(makes)


class _Writer:
    """Writes the program of one device."""

    def __init__(self, shared: Programs, device: int) -> None:
        self._shared = shared
        self._device = device
        self._lines: list[_Line] = []
        self._constants = Constants()
        self._handles: dict[Value, str] = {}  # received, not yet waited for
        self._batch: set[int] = set()

    def write(self, is_metered: bool) -> Program:
        shared, device = self._shared, self._device
        for name, node in shared.state.items():
            value = Value(node, 0)
            if shared.device(node) == device and shared.readers(value):
                variable = _name(value)
                self._line(f"{variable} = state[{name!r}]", (), (variable,))
            self._cross(value)
        for number, node in enumerate(shared.batch):
            if node in shared.needed[device]:
                variable = _name(Value(node, 0))
                self._line(f"{variable} = batch[{number}]", (), (variable,))
                self._batch.add(number)
        for node in shared.held:
            if node in shared.needed[device]:
                variable = _name(Value(node, 0))
                self._line(
                    f"{variable} = {self._constants.text(shared.tensor(node))}", (), (variable,)
                )
        for op in shared.ops:
            if op.everywhere:
                if op.node in shared.needed[device]:
                    self._call(op)
                continue
            if shared.device(op.node) == device:
                self._call(op)
            elif op.is_random:
                self._burn(op)
            for number in range(len(op.outputs)):
                self._cross(Value(op.node, number))
        has_loss = self._end()
        source = "\n".join(["def program(run, state, batch):", *self._with_ends(is_metered)])
        return Program(source + "\n", self._constants.items, tuple(sorted(self._batch)), has_loss)

    def _line(self, text: str, reads: Sequence[str] = (), makes: Sequence[str] = ()) -> None:
        self._lines.append(_Line(text, reads, makes))

    def _read(self, value: Value) -> str:
        """The variable of a value; waits for it where it is under way."""
        variable = _name(value)
        handle = self._handles.pop(value, None)
        if handle is not None:
            self._line(f"{variable} = run.wait({handle})", (handle,), (variable,))
        return variable

    def _call(self, op: Op) -> None:
        node = op.node
        reads = {value: self._read(value) for value in op.inputs}
        call = self._text(node, lambda read: reads[value_of(read)])
        makes = [_name(Value(node, number)) for number in range(len(op.outputs))]
        if isinstance(node.meta.get("val"), (tuple, list)):
            self._line(f"({', '.join(makes)},) = {call}", list(reads.values()), makes)
        else:
            self._line(f"{makes[0]} = {call}", list(reads.values()), makes)

    def _text(self, node: torch.fx.Node, read: Callable[[torch.fx.Node], str]) -> str:
        if node.target is aten.bernoulli.p:
            return f"run.bernoulli({self._constants.arguments(node, read)})"
        return self._constants.call(node, read)

    def _burn(self, op: Op) -> None:
        """Draws as many numbers as the op does where it runs, so that all generators agree."""

        def made(read: torch.fx.Node) -> str:
            return f"run.made({self._constants.text(Layout.of(tensor_of(value_of(read))))})"

        self._line(self._text(op.node, made))

    def _cross(self, value: Value) -> None:
        """Sends the value to those that read it elsewhere, or asks for it."""
        shared = self._shared
        home = shared.device(value.node)
        for reader, tag in shared.crossings(value):
            if home == self._device:
                variable = self._read(value)
                self._line(f"run.send({variable}, {reader}, {tag})", (variable,))
            elif reader == self._device:
                layout = self._constants.text(Layout.of(tensor_of(value)))
                handle = f"h{tag}"
                self._line(f"{handle} = run.receive({layout}, {home}, {tag})", (), (handle,))
                self._handles[value] = handle

    def _end(self) -> bool:
        """New buffers, gradients, and the loss where it was made."""
        shared, device = self._shared, self._device
        for name, value in shared.new_buffers.items():
            if shared.device(shared.state[name]) == device:
                variable = self._read(value)
                self._line(f"run.write({name!r}, {variable})", (variable,))
        for name, value in shared.gradients.items():
            if shared.device(shared.state[name]) == device:
                variable = self._read(value)
                own = value not in shared.shared_gradients
                self._line(f"run.gradient({name!r}, {variable}, {own})", (variable,))
        if shared.loss_device != device:
            return False
        variable = self._read(shared.loss)
        self._line(f"return {variable}", (variable,))
        return True

    def _with_ends(self, is_metered: bool) -> list[str]:
        """The lines, with `del` behind the last use of each variable."""
        last: dict[str, int] = {}
        for number, line in enumerate(self._lines):
            for variable in (*line.reads, *line.makes):
                last[variable] = number
        texts = ["  pass"]
        for number, line in enumerate(self._lines):
            texts.append(f"  {line.text}")
            if line.text.startswith("return "):
                break
            if is_metered:
                texts.append("  run.meter()")
            ended = dict.fromkeys(v for v in (*line.reads, *line.makes) if last[v] == number)
            if ended:
                texts.append(f"  del {', '.join(ended)}")
        return texts


def _name(value: Value) -> str:
    return f"{value.node.name}_{value.number}"


class Programs:
    """The programs of all devices of one step under one placement.

    ``device_of``: the device of each op, parameter and buffer by its node; ops that are made
    everywhere have none.
    """

    def __init__(
        self, trace: Trace, ops: list[Op], device_of: Mapping[torch.fx.Node, int], devices: int
    ) -> None:
        self.ops = ops
        self._trace = trace
        self._device_of = device_of
        names = [*trace.parameters, *trace.buffers]
        self.state = dict(zip(names, trace.placeholders, strict=False))
        self.batch = trace.placeholders[len(names) :]
        self.held = [node for node in trace.module.graph.nodes if node.op == "get_attr"]
        loss, *rest = trace.outputs
        self.loss = value_of(loss)
        gradients = dict(zip(trace.trained, rest, strict=False))
        self.gradients = {n: value_of(g) for n, g in gradients.items() if g is not None}
        self.new_buffers = {
            name: value_of(new)
            for name, new in zip(trace.buffers, rest[len(gradients) :], strict=True)
            if value_of(new).node is not self.state[name]
        }
        self.loss_device = device_of.get(self.loss.node, 0)
        self.shared_gradients = self._shared_memory()
        self._readers = self._find_readers()
        self.needed = [self._needed(device) for device in range(devices)]
        self._tags = self._number_crossings()

    def program(self, device: int, is_metered: bool = False) -> Program:
        """The program of one device; ``is_metered`` reads the memory in use behind each line."""
        return _Writer(self, device).write(is_metered)

    def device(self, node: torch.fx.Node) -> int | None:
        """Where a node is; None: everywhere."""
        return self._device_of.get(node)

    def readers(self, value: Value) -> set[int]:
        """The devices that read a value which is not made everywhere."""
        return self._readers.get(value, set())

    def crossings(self, value: Value) -> list[tuple[int, int]]:
        """To which devices a value is sent, each with the tag of the message."""
        return self._tags.get(value, [])

    def tensor(self, node: torch.fx.Node) -> torch.Tensor:
        """A tensor that the model's code holds besides its parameters and buffers."""
        held = getattr(self._trace.module, str(node.target))
        assert isinstance(held, torch.Tensor)
        return held.detach()

    def _find_readers(self) -> dict[Value, set[int]]:
        readers: dict[Value, set[int]] = {}

        def note(value: Value, device: int | None) -> None:
            if device is not None and self.device(value.node) is not None:
                readers.setdefault(value, set()).add(device)

        for op in self.ops:
            for value in op.inputs:
                note(value, self.device(op.node))
        for name, value in (*self.new_buffers.items(), *self.gradients.items()):
            note(value, self.device(self.state[name]))
        note(self.loss, self.loss_device)
        return readers

    def _needed(self, device: int) -> set[torch.fx.Node]:
        """What is made everywhere and the device really reads, itself or through more of that."""
        needed = {
            value.node
            for name, value in (*self.new_buffers.items(), *self.gradients.items())
            if self.device(self.state[name]) == device
        }
        if self.loss_device == device:
            needed.add(self.loss.node)
        for op in reversed(self.ops):
            if self.device(op.node) == device or (op.everywhere and op.node in needed):
                needed.update(value.node for value in op.inputs)
        return needed

    def _number_crossings(self) -> dict[Value, list[tuple[int, int]]]:
        tags: dict[Value, list[tuple[int, int]]] = {}
        tag = 0
        for value in sorted(self._readers, key=lambda v: (v.node.name, v.number)):
            for device in sorted(self._readers[value] - {self.device(value.node)}):
                tag += 1
                tags.setdefault(value, []).append((device, tag))
        return tags

    def _shared_memory(self) -> set[Value]:
        """Gradients that lie in memory which is not theirs alone."""
        root: dict[Value, Value] = {}
        for op in self.ops:
            for number, alias in enumerate(op.alias_of):
                value = Value(op.node, number)
                root[value] = (
                    value if alias is None else root.get(op.inputs[alias], op.inputs[alias])
                )
        count: dict[Value, int] = {}
        for value in self.gradients.values():
            count[root.get(value, value)] = count.get(root.get(value, value), 0) + 1
        own = {
            Value(op.node, n)
            for op in self.ops
            if not op.everywhere
            for n in range(len(op.outputs))
        }
        return {
            value
            for value in self.gradients.values()
            if count[root.get(value, value)] > 1 or root.get(value, value) not in own
        }

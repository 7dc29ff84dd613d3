"""An ONNX model as a graph: what becomes a variable, an input, an op."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pardnn
from pardnn.readers.content import Content
from pardnn.readers.errors import ReadError, quoted
from pardnn.readers.names import Keys
from pardnn.readers.onnx import model as models
from pardnn.readers.onnx import rules, values
from pardnn.readers.onnx.guesses import guess
from pardnn.readers.reading import Options, Reading, started
from pardnn.readers.tensors import Tensor
from pardnn.readers.values import if_possible

_SMALL_BYTES = 1 << 16
_ONNX = ("", "ai.onnx")


def read_model(content: Content, options: Options) -> Reading:
    """The graph of the model that the content is."""
    model = models.parsed(content)
    try:
        return _read(model, content, options)
    except (AttributeError, TypeError):
        models.check_texts(model, content)  # bytes where text belongs fail anywhere
        raise


def _read(model: Any, content: Content, options: Options) -> Reading:
    counts = _counts(model)
    new_values = models.with_training(model)
    models.strip(model.graph)
    model = models.inlined(model, content)
    still_open = models.bind(model, options, content)
    shapes = models.infer(model, guess)
    builder = _Builder(model, shapes, content, counts, new_values)
    builder.add_all()
    return Reading(builder.graph, "onnx", builder.notes(still_open), counts)


def _counts(model: Any) -> dict[str, object]:
    """Numbers of the file as it is."""
    graph = model.graph
    inner = list(_inner_graphs(graph))
    counts = {
        "ir": model.ir_version,
        "n": len(graph.node),
        "init": len(graph.initializer),
        "functions": len(model.functions),
        "train": len(model.training_info),
        "value_info": len(graph.value_info),
        "external": sum(tensor.data_location == 1 for tensor in graph.initializer),
        "subgraphs": len(inner),
        "subn": sum(len(each.node) for each in inner),
        "gradops": sum(_is_of_training(node.op_type) for node in graph.node),
    }
    return {name: count for name, count in counts.items() if count or name in ("n", "init")}


def _is_of_training(op_type: str) -> bool:
    return "Grad" in op_type or op_type == "YieldOp" or op_type in rules.IN_PLACE


def _inner_graphs(graph: Any) -> Any:
    for inner in models.subgraphs(graph.node):
        yield inner
        yield from _inner_graphs(inner)


@dataclass
class _Value:
    """A tensor by name: its reference in the graph, or the variable that it is the value of."""

    tensor: Tensor
    reference: str = ""
    variable: str = ""
    backward: bool = False
    is_made: bool = False  # by an op, and not by one that is everywhere


@dataclass
class _Missing:
    sizes: list[str] = field(default_factory=list)
    inside: int = 0


class _Builder:
    """Adds a model's parts to a graph."""

    def __init__(
        self,
        model: Any,
        shapes: Any,
        content: Content,
        counts: dict[str, object],
        new_values: dict[str, str],
    ) -> None:
        self.graph = started("onnx", "unknown", counts)
        self._model, self._content = model, content
        self._keys = Keys()
        self._values: dict[str, _Value] = {}
        self._files = values.ExternalFiles(content)
        self._missing = _Missing()
        self._has_gradients = False
        self._outputs = {each.name for each in model.graph.output}
        self._shapes = {
            tensor.name: values.of_initializer(tensor, self._place(f"tensor {tensor.name}"))
            for tensor in shapes.graph.initializer
        }
        infos = (*shapes.graph.value_info, *shapes.graph.output, *shapes.graph.input)
        self._shapes |= {info.name: values.of_info(info) for info in infos}
        self._new_values = new_values  # tensors by the variable whose next value they are
        self._nodes = list(model.graph.node)
        self._updated = self._buffers()
        self._only_updated = self._updated - self._read_elsewhere()
        self._initial = {each.name for each in model.graph.initializer}
        self._initial |= {
            name for node in self._nodes if node.op_type == "Constant" for name in node.output
        }

    def add_all(self) -> None:
        """Everything, in the order of the file."""
        graph = self._model.graph
        for place, node in enumerate(self._nodes):  # names of ops win over those of tensors
            self._keys.claim(node.name or next(iter(node.output), node.op_type), place)
        for tensor in graph.initializer:
            self._add_initializer(tensor)
        for sparse in graph.sparse_initializer:
            size = values.of_sparse(sparse, self._place(f"tensor {sparse.values.name}"))
            self._add_variable(sparse.values.name, size)
        gradients = {name.split("_grad")[0] for name in self._outputs if "_grad" in name}
        self._has_gradients = any(info.name in gradients for info in graph.input)
        for info in graph.input:
            if info.name in self._values:
                continue
            tensor = self._shapes[info.name]
            if info.name in gradients or info.name in self._updated:
                self._add_variable(info.name, tensor)
            else:
                self._add_input(info.name, tensor, "Input")
        self._declare_outputs()
        for place, node in enumerate(self._nodes):
            self._add_node(node, self._keys.of(place))
        for name, source in self._new_values.items():
            self._add_update(name, source)

    def notes(self, still_open: list[str]) -> list[str]:
        """What was assumed and what is missing."""
        notes = ["an ONNX model has no times"]
        if self._has_gradients:
            notes.append("gradients are outputs of the model: the optimizer is not in it")
        if still_open:
            flags = " ".join(f"--dim {name}=N" for name in still_open if not name.startswith("of "))
            notes.append(
                f"the dimensions {', '.join(still_open[:8])} are open; "
                f"{flags or '--shape INPUT=N,N,...'} binds them"
            )
        if self._missing.sizes:
            names = self._missing.sizes
            notes.append(f"{len(names)} tensors have no size, the first is {quoted(names[0])}")
        if self._missing.inside:
            notes.append(
                f"{self._missing.inside} ops in the bodies of loops, branches and searches are "
                "one op with what is around them, and their tensors are not counted"
            )
        if missing := self._files.missing():
            notes.append(
                f"{len(missing)} files of external data are not there, such as "
                f"{quoted(missing[0])}; sizes come from shapes"
            )
        return notes

    def _place(self, what: str) -> str:
        return f"{self._content.name}: {what}"

    def _buffers(self) -> set[str]:
        """Inputs of the model that ops write into."""
        inputs = {info.name for info in self._model.graph.input}
        nodes = (node for node in self._model.graph.node if node.op_type in rules.IN_PLACE)
        return {node.input[0] for node in nodes if node.input and node.input[0] in inputs}

    def _read_elsewhere(self) -> set[str]:
        """Tensors that ops read, other than those that they write into."""
        read: dict[str, None] = {}
        for node in self._nodes:
            skipped = 1 if node.op_type in rules.IN_PLACE else 0
            read.update((name, None) for name in node.input[skipped:])
            for inner in models.subgraphs([node]):
                self._names_inside(inner, read)
        return set(read)

    def _names_inside(self, graph: Any, read: dict[str, None]) -> None:
        for node in graph.node:
            read.update((name, None) for name in node.input)
            for inner in models.subgraphs([node]):
                self._names_inside(inner, read)

    def _new(self, name: str, value: _Value) -> None:
        if name in self._values:
            place = self._place(f"tensor {quoted(name)}")
            raise ReadError(place, "a second op or value that makes it", "one")
        self._values[name] = value

    def _add_initializer(self, tensor: Any) -> None:
        place = self._place(f"tensor {tensor.name}")
        self._files.check(tensor)
        found = values.of_initializer(tensor, place)
        elements, size = found.elements or 0, found.bytes_at(place)
        is_weight = values.is_float(tensor.data_type) and elements > 1
        is_updated = tensor.name in self._new_values
        if is_weight or is_updated or size is None or size > _SMALL_BYTES:
            self._add_variable(tensor.name, found)
        else:
            self._add_input(tensor.name, found, "Constant")

    def _add_variable(self, name: str, tensor: Tensor) -> None:
        """A variable, and the op through which others read it."""
        key = self._keys.new(name)
        size = tensor.bytes_at(self._place(f"tensor {name}"))
        self.graph.var(key, size, group=key)
        read = ""
        if name not in self._only_updated:
            read = self._keys.new(f"{name}.read")
            self.graph.op(read, "Read", 0, [key], ["=0"], group=key, phase="f")
        self._new(name, _Value(tensor, read, key))

    def _add_input(self, name: str, tensor: Tensor, op_type: str) -> None:
        """A value that is on every device: of the batch, or a small constant."""
        key = self._keys.new(name)
        self.graph.op(key, op_type, 0, [], [self._size(name, tensor)], every=True)
        self._new(name, _Value(tensor, key))

    def _size(self, name: str, tensor: Tensor) -> int | None:
        size = tensor.bytes_at(self._place(f"tensor {name}"))
        if size is None:
            self._missing.sizes.append(name)
        return size

    def _declare_outputs(self) -> None:
        """References to what ops make, so that ops may stand in any order."""
        backward: set[str] = set()
        for place, node in enumerate(self._nodes):
            names = [name for name in node.output if name]
            is_backward = (
                "Grad" in node.op_type
                or node.op_type == "YieldOp"
                or any(name in backward for name in node.input)
            )
            if is_backward:
                backward.update(names)
            is_constant = self._is_constant(node)
            key = self._keys.of(place)
            for number, name in enumerate(names):
                reference = f"{key}:{number}" if number else key
                tensor = self._shapes.get(name, Tensor())
                self._new(name, _Value(tensor, reference, "", is_backward, not is_constant))

    def _add_node(self, node: Any, key: str) -> None:
        place = self._place(f"op {key}")
        names = [name for name in node.input if name]
        inner, keeps_values = self._captured(node, key)
        read = [self._value(name, place) for name in dict.fromkeys((*names, *inner))]
        made = [self._values[name] for name in node.output if name]
        if self._is_constant(node):
            self._add_constant(node, key, made[0].tensor)
            return
        inputs = [value.reference for value in read]
        outputs = self._made(node, read, place)
        group = key if keeps_values else None
        if node.op_type in rules.IN_PLACE and read and read[0].variable:
            group, reader = read[0].variable, inputs[0]
            inputs[0] = f"!{group}"
            if reader:
                inputs.append(f"^{reader}")
            if len(outputs) > 1:
                outputs[1] = "=0"
        tensors = [value.tensor for value in made]
        sizes = [value.tensor.bytes_at(place) for value in (*read, *made)]
        is_whole = None not in sizes and not any(True for _ in models.subgraphs([node]))
        moved = sum(size for size in sizes if size is not None) if is_whole else None
        backward = bool(made) and made[0].backward
        self.graph.op(
            key,
            self._type(node),
            None,
            inputs,
            outputs,
            group=group,
            phase="u" if node.op_type in rules.IN_PLACE else "b" if backward else "f",
            flops=if_possible(rules.flops(node, [value.tensor for value in read], tensors)),
            moved=if_possible(moved),
            name=node.name or None,
        )

    def _add_update(self, name: str, source: str) -> None:
        """The op that gives a variable its value for the next step."""
        place = self._place(f"the update of {quoted(name)}")
        variable, new = self._value(name, place), self._value(source, place)
        if not variable.variable:
            raise ReadError(place, "a tensor that ops make", "a value that the model states")
        key = variable.variable
        inputs = [new.reference, f"!{key}", f"^{variable.reference}"]
        self.graph.op(self._keys.new(f"{name}.update"), "Assign", 0, inputs, group=key, phase="u")

    def _value(self, name: str, place: str) -> _Value:
        found = self._values.get(name)
        if found is None:
            raise ReadError(place, f"the input {quoted(name)}, which nothing makes", "a tensor")
        return found

    def _captured(self, node: Any, key: str) -> tuple[list[str], bool]:
        """Tensors of this graph that subgraphs read; whether values of their own are variables."""
        found: dict[str, None] = {}
        keeps = False
        for inner in models.subgraphs([node]):
            keeps = self._look_inside(inner, key, set(), found) or keeps
        return [name for name in found if name in self._values], keeps

    def _look_inside(self, graph: Any, key: str, outer: set[str], found: dict[str, None]) -> bool:
        own = {info.name for info in graph.input} | {each.name for each in graph.initializer}
        own |= {name for node in graph.node for name in node.output} | outer
        keeps = False
        for tensor in graph.initializer:
            self._files.check(tensor)
            place = self._place(f"tensor {tensor.name}")
            size = values.of_initializer(tensor, place).bytes_at(place)
            if size is None or size > _SMALL_BYTES or values.is_float(tensor.data_type):
                self.graph.var(self._keys.new(tensor.name), size, group=key)
                keeps = True
        for node in graph.node:
            self._missing.inside += 1
            found.update((name, None) for name in node.input if name not in own)
            for inner in models.subgraphs([node]):
                keeps = self._look_inside(inner, key, own, found) or keeps
        found.update((info.name, None) for info in graph.output if info.name not in own)
        return keeps

    def _is_constant(self, node: Any) -> bool:
        """Whether an op makes the same value in each step, out of nothing or out of constants."""
        if len(node.output) != 1 or node.domain not in _ONNX:
            return False
        if node.op_type == "Constant":
            return not node.input
        fixed = node.op_type == "ConstantOfShape" and list(node.input)
        shape = self._shapes.get(node.output[0], Tensor())
        return bool(fixed) and node.input[0] in self._initial and shape.elements is not None

    def _add_constant(self, node: Any, key: str, tensor: Tensor) -> None:
        """A value that the model states in a node; what looks like a weight is a variable."""
        name, place = node.output[0], self._place(f"op {key}")
        is_weight = node.op_type == "ConstantOfShape"
        for attribute in node.attribute:
            if attribute.HasField("t") and node.op_type == "Constant":
                tensor = values.of_initializer(attribute.t, place)
            elif attribute.HasField("t"):
                is_weight = values.is_float(attribute.t.data_type)
        size = tensor.bytes_at(place)
        if (is_weight and (tensor.elements or 0) > 1) or (size or 0) > _SMALL_BYTES:
            variable = self._keys.new(f"{name}.value")
            self.graph.var(variable, size, group=variable)
            self.graph.op(key, "Read", 0, [variable], ["=0"], group=variable, phase="f")
        else:
            self.graph.op(key, "Constant", 0, [], [self._size(name, tensor)], every=True)

    def _made(self, node: Any, read: list[_Value], place: str) -> list[int | str | None]:
        """The outputs of an op as the graph has them."""
        outputs: list[int | str | None] = []
        for name in filter(None, node.output):
            size: int | str | None
            if node.op_type in rules.VIEWS and read and not outputs:
                size = "=0"
            else:
                size = self._size(name, self._values[name].tensor)
                taken = self._taken_over(node, size, read, place) if not outputs else None
                size = size if taken is None else f"{size}~{taken}"
            if name in self._outputs:
                size = f"{'?' if size is None else size}*"
            outputs.append(size)
        return outputs

    def _taken_over(
        self, node: Any, size: int | None, read: list[_Value], place: str
    ) -> int | None:
        """The input whose buffer an element-wise op may write its output to."""
        if node.op_type not in rules.ELEMENTWISE or not size:
            return None
        for number, value in enumerate(read):
            if value.is_made and value.tensor.bytes_at(place) == size:
                return number
        return None

    def _type(self, node: Any) -> str:
        domain = "" if node.domain in _ONNX else f"{node.domain}."
        return pardnn.escape_key(f"{domain}{node.op_type}"[:200] or "unnamed")

"""A symbol as a graph: values become variables or inputs, ops get the shapes that follow."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

import pardnn
from pardnn.readers.content import Content
from pardnn.readers.errors import ReadError, quoted
from pardnn.readers.mxnet import shapes
from pardnn.readers.mxnet.symbol import Input, Node, Symbol, integers, parse
from pardnn.readers.names import Keys
from pardnn.readers.reading import Options, Reading, started
from pardnn.readers.tensors import Dims, Tensor, shown
from pardnn.readers.values import if_possible

NAME = "mxnet"
OPTIONS: tuple[str, ...] = ("shapes",)

# Ops whose first input is data and whose others are parameters, from this number on.
_LAYERS = {"Convolution", "Convolution_v1", "Deconvolution", "FullyConnected", "Embedding"}
_LAYERS |= {"BatchNorm", "BatchNorm_v1", "CuDNNBatchNorm", "InstanceNorm", "LeakyReLU"}
_PARAMETERS = (
    *("_weight", "_bias", "_gamma", "_beta", "_moving_mean", "_moving_var"),
    *("_running_mean", "_running_var", "_alpha", "_parameters"),
)
# Operators of before 2016 keep these without naming them.
_KEPT = {"BatchNorm": ("moving_mean", "moving_var")}
_VIEWS = {"Flatten", "flatten", "Reshape", "reshape", "identity", "_copy", "BlockGrad"}
_TAKES_OVER = {"Activation", "relu", "sigmoid", "tanh", "Dropout", "elemwise_add", "_Plus", "_plus"}
_SUBGRAPH_MARK = "_sg_"


def recognise(content: Content) -> bool:
    """Nodes with an op each, the numbers of the arguments, and the outputs."""
    found = content.object("nodes", "arg_nodes", "heads")
    if found is None or not isinstance(found["nodes"], list) or not found["nodes"]:
        return False
    first = found["nodes"][0]
    return isinstance(first, dict) and {"op", "inputs"} <= first.keys()


def read(content: Content, options: Options) -> Reading:
    """The graph of a symbol."""
    symbol = parse(content.json, content.name)
    counts = _counts(symbol, content.json)
    builder = _Builder(symbol, content, options, counts)
    builder.add_all()
    return Reading(builder.graph, NAME, builder.notes(), counts)


def _counts(symbol: Symbol, top: dict[str, object]) -> dict[str, object]:
    rows = top["nodes"]
    assert isinstance(rows, list)
    keys = [key for key in ("attr", "attrs", "param") if any(key in row for row in rows)]
    return {
        "n": len(symbol.nodes),
        "ops": sum(node.op is not None for node in symbol.nodes),
        "e": sum(len(node.inputs) for node in symbol.nodes),
        "attrkey": ",".join(keys),
        "inlen": sorted({len(each) for row in rows for each in row.get("inputs", [])}),
        "subgraphs": sum(bool(node.inner) for node in symbol.nodes),
        "bwd": sum(node.source is not None for node in symbol.nodes),
        "ctrl_deps": sum(len(node.controls) for node in symbol.nodes),
    }


@dataclass
class Inference:
    """Tensors of a symbol by node, as far as they follow from those that are known."""

    tensors: list[list[Tensor]]
    unknown_ops: dict[str, int]


def infer(symbol: Symbol, given: dict[int, Tensor]) -> Inference:
    """Shapes of everything, out of those of values by the number of their node."""
    found = Inference([[given.get(node.number, Tensor())] for node in symbol.nodes], {})
    for node in symbol.nodes:
        if node.op is None:
            continue
        inputs = [_at(found.tensors, each) for each in node.inputs]
        answer = _outputs(node, inputs)
        if answer is None:
            found.unknown_ops[node.op] = found.unknown_ops.get(node.op, 0) + 1
            answer = [Tensor()], {}
        found.tensors[node.number] = answer[0]
        for place, dims in answer[1].items():
            if place < len(node.inputs):
                source, output = node.inputs[place]
                _learn(found.tensors, symbol.nodes[source], output, dims)
    return found


def _at(tensors: list[list[Tensor]], reference: Input) -> Tensor:
    made = tensors[reference[0]]
    return made[reference[1]] if reference[1] < len(made) else Tensor()


def _learn(tensors: list[list[Tensor]], node: Node, output: int, dims: Dims) -> None:
    """Gives a value without a shape the one that its reader needs."""
    old = tensors[node.number][0]
    if node.op is None and output == 0 and old.elements is None:
        tensors[node.number][0] = Tensor(old.bits, dims)


def _outputs(node: Node, inputs: list[Tensor]) -> shapes.Answer | None:
    if node.op is None or not node.inner or not node.op.startswith(_SUBGRAPH_MARK):
        return shapes.infer(node.op or "", node.attributes, inputs)
    inner = node.inner[0]
    given = {number: tensor for number, tensor in zip(inner.arguments, inputs, strict=False)}
    found = infer(inner, given)
    made = [_at(found.tensors, head) for head in inner.heads]
    if node.attributes.get("quantized") in ("true", "True", "1"):
        bits = 8 if "min_calib_range" in node.attributes else 32
        made = [Tensor(bits, each.dims) for each in made]
        made += [Tensor(shapes.FLOAT_BITS, (1,))] * 2
    learned = {
        place: dims
        for place, number in enumerate(inner.arguments)
        if (dims := found.tensors[number][0].dims) is not None
    }
    return made, learned


class _Builder:
    """Adds a symbol's parts to a graph."""

    def __init__(
        self, symbol: Symbol, content: Content, options: Options, counts: dict[str, object]
    ) -> None:
        self.graph = started(NAME, "unknown", counts)
        self._symbol, self._name = symbol, content.name
        self._keys = Keys()
        self._key_of = {node.number: self._keys.new(node.name) for node in symbol.nodes}
        self._inputs = self._find_inputs(options)
        given = self._given(options)
        self._found = infer(symbol, given)
        self._numbers = self._find_numbers()
        self._reads: dict[int, str] = {}  # the op through which a variable is read
        self._unsized: list[str] = []
        self._fetched = set(symbol.heads)
        self._inside = sum(len(each.nodes) for node in symbol.nodes for each in node.inner)

    def add_all(self) -> None:
        """Everything, in the order of the file."""
        for node in self._symbol.nodes:
            if node.op is None:
                self._add_value(node)
            else:
                self._add_op(node)

    def notes(self) -> list[str]:
        """What was assumed and what is missing."""
        notes = ["an MXNet symbol has no times"]
        names = [
            self._symbol.nodes[number].name
            for number in self._inputs
            if self._found.tensors[number][0].elements is None
        ]
        if names:
            notes.append(
                f"the shapes of {', '.join(names[:8])} are open; "
                f"--shape {names[0]}=N,N,... states one"
            )
        if self._found.unknown_ops and not names:
            ops = ", ".join(f"{count} {op}" for op, count in self._found.unknown_ops.items())
            notes.append(f"shapes behind these ops do not follow from their inputs: {quoted(ops)}")
        if self._unsized:
            notes.append(
                f"{len(self._unsized)} tensors have no size, the first is {self._unsized[0]}"
            )
        contexts = {hint: None for node in self._symbol.nodes if (hint := _hint(node))}
        if contexts:
            first = next(iter(contexts))
            notes.append(
                f"the {len(contexts)} groups of ctx_group are hints and begin the names of ops: "
                f"--group '^{first}/' keeps one together, --pin '^{first}/=DEVICE' places it"
            )
        if self._inside:
            notes.append(f"{self._inside} nodes of fused ops are not counted by themselves")
        return notes

    def _find_inputs(self, options: Options) -> dict[int, None]:
        """Values that come with each batch: what is no parameter by its name or its reader."""
        parameters: set[int] = set()
        for node in self._symbol.nodes:
            if node.op in _LAYERS or (node.op or "").startswith(_SUBGRAPH_MARK):
                parameters.update(source for source, _ in node.inputs[1:])
        found: dict[int, None] = {}
        for node in self._symbol.nodes:
            is_parameter = node.number in parameters or node.name.endswith(_PARAMETERS)
            is_parameter = is_parameter or "__init__" in node.attributes
            if node.op is None and (node.name in options.shapes or not is_parameter):
                found[node.number] = None
        return found

    def _given(self, options: Options) -> dict[int, Tensor]:
        """Shapes that the file or the options state."""
        given = {}
        values = {node.name: node for node in self._symbol.nodes if node.op is None}
        for name in options.shapes:
            if name not in values:
                names = ", ".join(self._symbol.nodes[number].name for number in self._inputs)
                place = f"{self._name}: --shape {name}"
                raise ReadError(place, f"the inputs {quoted(names)}", "the name of one")
        for name, node in values.items():
            stated = integers(node.attributes.get("__shape__"))
            code = integers(node.attributes.get("__dtype__")) or (0,)
            bits = shapes.BITS.get(code[0], shapes.FLOAT_BITS)
            dims: Dims | None = None
            if stated is not None:  # what is not known is 0 or -1
                dims = tuple(dim if dim > 0 else None for dim in stated)
            if name in options.shapes:
                dims = options.shapes[name]
            given[node.number] = Tensor(bits, dims)
        return given

    def _add_value(self, node: Node) -> None:
        key, size = self._key_of[node.number], self._size(node, 0)
        if node.number in self._inputs:
            self.graph.op(key, "Input", 0, [], [size], every=True)
            return
        self.graph.var(key, size, group=key)
        read = self._keys.new(f"{key}.read")
        self._reads[node.number] = read
        self.graph.op(read, "Read", 0, [key], ["=0"], group=key, phase="f", name=_called(node))

    def _add_op(self, node: Node) -> None:
        key = self._key_of[node.number]
        inputs = [self._reference(each) for each in node.inputs]
        inputs += [f"^{self._key_of[number]}" for number in node.controls]
        group = self._add_kept(node)
        tensors = [_at(self._found.tensors, each) for each in node.inputs]
        made = self._found.tensors[node.number]
        sizes = [each.bytes_at(self._name) for each in (*tensors, *made)]
        known = [size for size in sizes if size is not None]
        self.graph.op(
            key,
            self._type(node),
            None,
            inputs,
            [self._output(node, number) for number in self._numbers[node.number]],
            group=group,
            phase="f" if node.source is None else "b",
            flops=if_possible(_flops(node, tensors, made)),
            moved=if_possible(sum(known)) if len(known) == len(sizes) else None,
            name=_called(node),
        )

    def _find_numbers(self) -> list[list[int]]:
        """For each node its outputs: those that follow from its op, and those that are read."""
        read: list[set[int]] = [set(range(len(made))) for made in self._found.tensors]
        for node in self._symbol.nodes:
            for source, output in node.inputs:
                read[source].add(output)
        for source, output in self._symbol.heads:
            read[source].add(output)
        return [sorted(numbers) for numbers in read]

    def _output(self, node: Node, number: int) -> int | str | None:
        size: int | str | None = self._size(node, number)
        if node.op in _VIEWS and node.inputs and number == 0:
            size = "=0"
        elif node.op in _TAKES_OVER and node.inputs and number == 0 and size:
            source = self._symbol.nodes[node.inputs[0][0]]
            is_same = _at(self._found.tensors, node.inputs[0]).bytes_at(self._name) == size
            if source.op is not None and is_same:
                size = f"{size}~0"
        if (node.number, number) in self._fetched:
            size = f"{'?' if size is None else size}*"
        return size

    def _add_kept(self, node: Node) -> str | None:
        """Variables that an op keeps without naming them; its group where it has any."""
        names = _KEPT.get(node.op or "", ())
        if not names or len(node.inputs) >= 3 + len(names):
            return None
        key = self._key_of[node.number]
        dims = _at(self._found.tensors, node.inputs[0]).dims if node.inputs else None
        channels = dims[1] if dims is not None and len(dims) > 1 else None
        for name in names:
            size = Tensor(shapes.FLOAT_BITS, (channels,)).bytes_at(self._name)
            self.graph.var(self._keys.new(f"{key}_{name}"), size, group=key)
        return key

    def _reference(self, reference: Input) -> str:
        source, output = reference
        key = self._reads.get(source, self._key_of[source])
        place = bisect_left(self._numbers[source], output)
        return f"{key}:{place}" if place else key

    def _size(self, node: Node, number: int) -> int | None:
        tensor = _at(self._found.tensors, (node.number, number))
        size = tensor.bytes_at(f"{self._name}: node {node.name}")
        if size is None:
            self._unsized.append(f"{node.name} {shown(tensor.dims)}")
        return size

    def _type(self, node: Node) -> str:
        if node.source is not None:
            return pardnn.escape_key(f"backward_{self._symbol.nodes[node.source].op}")
        return pardnn.escape_key(node.op or "unnamed")


def _hint(node: Node) -> str | None:
    return node.attributes.get("ctx_group") or node.attributes.get("__ctx_group__")


def _called(node: Node) -> str:
    hint = _hint(node)
    return f"{hint}/{node.name}" if hint else node.name


def _flops(node: Node, inputs: list[Tensor], made: list[Tensor]) -> int | None:
    """Arithmetic of the ops that do most of it."""
    elements = made[0].elements if made else None
    if elements is None:
        return None
    if node.op in ("Convolution", "Convolution_v1", "FullyConnected") and len(inputs) > 1:
        weight = inputs[1]
        if weight.elements is None or not weight.dims or not weight.dims[0]:
            return None
        return 2 * elements * (weight.elements // weight.dims[0])
    return elements if node.op in _TAKES_OVER else None

"""Shapes of outputs that the library for ONNX does not infer."""

from __future__ import annotations

from typing import Any

_FLOAT, _INT64, _BOOL = 1, 7, 9
# The first output has the shape and type of the input of this number.
_LIKE = {
    **dict.fromkeys(("FastGelu", "BiasGelu", "Gelu", "QuickGelu", "ReluGrad", "SliceGrad"), 0),
    **dict.fromkeys(("SoftmaxGrad", "SoftmaxGrad_13", "LogSoftmaxGrad", "GeluGrad"), 0),
    **dict.fromkeys(("FastGeluGrad", "BiasFastGeluGrad_dX", "BiasGeluGrad_dX", "TanhGrad"), 0),
    **dict.fromkeys(("SigmoidGrad", "DropoutGrad", "LayerNormalizationGrad", "BitmaskDropout"), 0),
    **dict.fromkeys(("SkipLayerNormalization", "LayerNormalization"), 0),
    **dict.fromkeys(("SoftmaxCrossEntropyLossGrad", "SoftmaxCrossEntropyLossInternalGrad"), 1),
}


def guess(model: Any) -> bool:
    """Adds shapes that follow from an input; whether there were any."""
    infos = (*model.graph.input, *model.graph.value_info, *model.graph.output)
    described = {info.name: info for info in infos}
    guesses = _Guesses(model, described)
    for node in model.graph.node:
        guesses.at(node)
    return guesses.found


class _Guesses:
    def __init__(self, model: Any, described: dict[str, Any]) -> None:
        self._model, self._described = model, described
        self._known = {name: info for name, info in described.items() if _is_whole(info)}
        self.found = False

    def at(self, node: Any) -> None:
        """What follows at one op."""
        number = _LIKE.get(node.op_type)
        if number is not None and len(node.input) > number:
            self._copy(node, 0, node.input[number])
        if node.op_type == "Dropout" and node.input:
            self._copy(node, 1, node.input[0], _BOOL)
        if node.op_type in ("LayerNormalization", "SimplifiedLayerNormalization") and node.input:
            axis = next((int(each.i) for each in node.attribute if each.name == "axis"), -1)
            for place in (1, 2):
                self._copy(node, place, node.input[0], _FLOAT, axis)
        if node.op_type == "FusedMatMul":
            self._multiply(node)
        if node.op_type == "ConcatTraining":
            info = self._new(node, 1)
            if info is not None:
                info.type.tensor_type.elem_type = _INT64
                info.type.tensor_type.shape.dim.add().dim_value = len(node.input)

    def _multiply(self, node: Any) -> None:
        """A product whose factors may be transposed; their leading dimensions are the same."""
        infos = [self._known.get(name) for name in node.input[:2]]
        if len(infos) < 2 or infos[0] is None or infos[1] is None:
            return
        first, second = (list(info.type.tensor_type.shape.dim) for info in infos if info)
        flags = {each.name: each.i for each in node.attribute}
        if (
            len(first) < 2
            or len(second) < 2
            or flags.get("transBatchA")
            or flags.get("transBatchB")
        ):
            return
        rows = first[-1 if flags.get("transA") else -2]
        columns = second[-2 if flags.get("transB") else -1]
        leading = first[:-2] if len(first) >= len(second) else second[:-2]
        info = self._new(node, 0)
        if info is not None:
            info.type.tensor_type.elem_type = infos[0].type.tensor_type.elem_type
            info.type.tensor_type.shape.dim.extend([*leading, rows, columns])

    def _new(self, node: Any, place: int) -> Any | None:
        """The description of an output whose shape is not known as a whole; it has none then."""
        if len(node.output) <= place or not node.output[place]:
            return None
        name = node.output[place]
        if name in self._known:
            return None
        self.found = True
        info = self._described.get(name)
        if info is None:
            info = self._model.graph.value_info.add()
            info.name = name
        info.type.tensor_type.ClearField("shape")
        self._known[name] = info
        return info

    def _copy(
        self, node: Any, place: int, source: str, elem_type: int = 0, axis: int | None = None
    ) -> None:
        """Says that an output is like a tensor; from an axis on its dimensions are 1."""
        known = self._known.get(source)
        info = None if known is None else self._new(node, place)
        if known is None or info is None:
            return
        info.type.CopyFrom(known.type)
        kind = info.type.tensor_type
        kind.elem_type = elem_type or kind.elem_type
        dims = list(kind.shape.dim)
        for dim in dims[axis:] if axis is not None and -len(dims) <= axis < len(dims) else ():
            dim.dim_value = 1


def _is_whole(info: Any) -> bool:
    """Whether each dimension of a tensor has a value."""
    kind = info.type.tensor_type
    if not info.type.HasField("tensor_type") or not kind.HasField("shape"):
        return False
    return all(dim.HasField("dim_value") for dim in kind.shape.dim)

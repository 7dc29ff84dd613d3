"""How long each op of a trace takes: equal ops are measured once, alone, and remembered on disk."""

from __future__ import annotations

import json
import logging
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch.utils.flop_counter import flop_registry

from pardnn import cache
from pardnn.torch import measuring
from pardnn.torch.calls import Constants, Layout
from pardnn.torch.nodes import (
    Op,
    extent_bytes,
    is_sendable,
    map_nodes,
    tensor_of,
    unknown_output,
    value_of,
)

_LOG = logging.getLogger(__name__)
_FORMAT = "3"
# Dispatch and what other ops leave in the caches: an op inside of a step is slower than alone.
_IN_STEP_NS, _VIEW_NS = 3_000, 1_000
# Larger ops are estimated: to measure them would need their memory.
_MOST_MEASURED_BYTES = 1 << 30
# The gradient of an op that keeps something of unknown size takes so many times as long.
_BACKWARD_TIMES = 2
# What oneDNN's recurrent layer keeps for each byte it answers.
_UNKNOWN_PER_BYTE = 16
# An ordinary core, for what was not measured.
_FLOPS_PER_S, _BYTES_PER_S = 20e9, 5e9


def cost_of(ops: Sequence[Op], measure: bool = True) -> dict[torch.fx.Node, int]:
    """Nanoseconds of each op in a step, on one thread of this machine.

    Without ``measure``, and where an op cannot run alone, they are estimated from arithmetic and
    bytes.
    """
    known = _known(ops, measure)
    return {op.node: _VIEW_NS if op.is_view else known[key_of(op)] + _IN_STEP_NS for op in ops}


def unknown_bytes_of(ops: Sequence[Op], measure: bool = True) -> dict[torch.fx.Node, int]:
    """Bytes of outputs whose size no trace knows, by their ops."""
    some = [op for op in ops if unknown_output(op.node) is not None]
    known = _known(some, measure)
    return {op.node: known[_bytes_key(key_of(op))] for op in some}


def _known(ops: Sequence[Op], measure: bool) -> dict[str, int]:
    """What was found now or earlier, by keys of ops."""
    path = _file() if measure else None
    known = _read(path)
    keys = {op.node: key_of(op) for op in ops if not op.is_view}
    new = {keys[op.node]: op for op in ops if not op.is_view and keys[op.node] not in known}
    if new:
        measured = _measured(new) if measure else {}
        for key, op in new.items():
            known[key] = measured.get(key) or _estimated(op, keys, known)
            if unknown_output(op.node) is not None:
                size = _bytes_key(key)
                known[size] = measured.get(size) or _UNKNOWN_PER_BYTE * extent_bytes(op.outputs[0])
        if path is not None:
            cache.write(path, json.dumps(known))
    return known


def _bytes_key(key: str) -> str:
    return f"bytes {key}"


def key_of(op: Op) -> str:
    """The same for ops that take equally long: target, sizes, strides, types, plain arguments."""

    def described(node: torch.fx.Node) -> str:
        tensor = tensor_of(value_of(node))
        return f"<{tuple(tensor.shape)} {tensor.stride()} {tensor.dtype}>"

    arguments = map_nodes((op.node.args, op.node.kwargs), described)
    return f"{op.node.target} {arguments}"


def _file() -> Path | None:
    folder = cache.folder("torch-costs")
    if folder is None:
        return None
    name = cache.key(_FORMAT, torch.__version__, platform.processor(), platform.node())
    return folder / f"{name}.json"


def _read(path: Path | None) -> dict[str, int]:
    if path is None or not path.is_file():
        return {}
    try:
        return dict(json.loads(path.read_text()))
    except (OSError, ValueError) as error:
        _LOG.info("remembered costs are not used: %s", error)
        return {}


def _measured(ops: Mapping[str, Op]) -> dict[str, int]:
    """Median times by key, and unknown sizes; what cannot run alone is missing."""
    small = {
        key: op
        for key, op in ops.items()
        if _bytes(op) <= _MOST_MEASURED_BYTES and all(map(is_sendable, op.inputs))
    }
    found = {}
    for key, answer in measuring.measured({key: _asked(op) for key, op in small.items()}):
        found[key] = answer.ns
        number = unknown_output(small[key].node)
        if number is not None:
            found[_bytes_key(key)] = answer.bytes[number]
    return found


def _asked(op: Op) -> measuring.Asked:
    layouts: list[Layout] = []
    constants = Constants()

    def made(node: torch.fx.Node) -> str:
        layouts.append(Layout.of(tensor_of(value_of(node))))
        return f"t[{len(layouts) - 1}]"

    call = constants.call(op.node, made)
    return measuring.Asked(call, constants.items, layouts)


def _bytes(op: Op) -> int:
    read = sum(extent_bytes(tensor_of(value)) for value in op.inputs)
    return read + sum(extent_bytes(t) for t in op.outputs if isinstance(t, torch.Tensor))


def _estimated(op: Op, keys: Mapping[torch.fx.Node, str], known: Mapping[str, int]) -> int:
    for value in op.inputs:
        if not is_sendable(value) and keys.get(value.node) in known:
            return _BACKWARD_TIMES * known[keys[value.node]]
    packet = getattr(op.node.target, "overloadpacket", None)
    seconds = _bytes(op) / _BYTES_PER_S
    if packet in flop_registry:
        arguments, keywords = map_nodes(
            (op.node.args, op.node.kwargs), lambda node: tensor_of(value_of(node))
        )
        output = op.outputs[0] if len(op.outputs) == 1 else op.outputs
        flops = flop_registry[packet](*arguments, **keywords, out_val=output)
        seconds = max(seconds, flops / _FLOPS_PER_S)
    return max(1, int(seconds * 1e9))

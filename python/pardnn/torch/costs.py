"""How long each op of a trace takes: equal ops are measured once, alone, and remembered on disk."""

from __future__ import annotations

import json
import logging
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

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
_FORMAT = "7"
# Dispatch and what other ops leave in the caches: an op inside of a step is slower than alone.
_IN_STEP_NS, _VIEW_NS = 3_000, 1_000
# Larger ops are estimated: to measure them would need their memory.
_MOST_MEASURED_BYTES = 1 << 30
# What oneDNN's recurrent layer keeps for each byte it answers.
_UNKNOWN_PER_BYTE = 16
# An ordinary core, for what was not measured.
_FLOPS_PER_S, _BYTES_PER_S = 20e9, 5e9


class Cost(NamedTuple):
    """Of an op in a step: ns on one thread of this machine, bytes that it needs besides its outputs
    while it runs, bytes of the output whose size no trace knows.
    """

    ns: int
    workspace: int = 0
    unknown_bytes: int = 0


def costs_of(ops: Sequence[Op], measure: bool = True) -> dict[torch.fx.Node, Cost]:
    """What each op takes.

    Without ``measure``, and where an op cannot run alone, it is estimated from arithmetic and
    bytes.
    """
    path = _file() if measure else None
    known = _read(path)
    keys = {op.node: key_of(op) for op in ops if not op.is_view}
    new = {keys[op.node]: op for op in ops if not op.is_view and keys[op.node] not in known}
    # What reads something of unknown size is measured once that is known.
    later = {key: op for key, op in new.items() if not all(map(is_sendable, op.inputs))}
    for some in ({key: op for key, op in new.items() if key not in later}, later):
        sizes = {node: known[key].unknown_bytes for node, key in keys.items() if key in known}
        measured = _measured(some, sizes) if measure else {}
        for key, op in some.items():
            known[key] = measured.get(key) or _estimated(op)
    if new and path is not None:
        cache.write(path, json.dumps(known))
    return {
        op.node: Cost(_VIEW_NS)
        if op.is_view
        else known[keys[op.node]]._replace(ns=known[keys[op.node]].ns + _IN_STEP_NS)
        for op in ops
    }


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


def _read(path: Path | None) -> dict[str, Cost]:
    if path is None or not path.is_file():
        return {}
    try:
        return {key: Cost(*cost) for key, cost in json.loads(path.read_text()).items()}
    except (OSError, ValueError, TypeError) as error:
        _LOG.info("remembered costs are not used: %s", error)
        return {}


def _measured(ops: Mapping[str, Op], sizes: Mapping[torch.fx.Node, int]) -> dict[str, Cost]:
    """What was found by key; what cannot run alone is missing."""
    small = {key: op for key, op in ops.items() if _bytes(op) <= _MOST_MEASURED_BYTES}
    asked = {key: _asked(op, sizes) for key, op in small.items()}
    found = {}
    for key, answer in measuring.measured(asked):
        number = unknown_output(small[key].node)
        unknown = 0 if number is None else answer.bytes[number]
        found[key] = Cost(answer.ns, answer.workspace, unknown)
    return found


def _asked(op: Op, sizes: Mapping[torch.fx.Node, int]) -> measuring.Asked:
    layouts: list[Layout] = []
    constants = Constants()

    def made(node: torch.fx.Node) -> str:
        value = value_of(node)
        layout = Layout.of(tensor_of(value))
        if not is_sendable(value):
            size = sizes[value.node]
            layout = Layout((size,), (1,), torch.uint8, size)
        layouts.append(layout)
        return f"t[{len(layouts) - 1}]"

    call = constants.call(op.node, made)
    return measuring.Asked(call, constants.items, layouts)


def _bytes(op: Op) -> int:
    read = sum(extent_bytes(tensor_of(value)) for value in op.inputs)
    return read + sum(extent_bytes(t) for t in op.outputs if isinstance(t, torch.Tensor))


def _estimated(op: Op) -> Cost:
    packet = getattr(op.node.target, "overloadpacket", None)
    seconds = _bytes(op) / _BYTES_PER_S
    if packet in flop_registry:
        arguments, keywords = map_nodes(
            (op.node.args, op.node.kwargs), lambda node: tensor_of(value_of(node))
        )
        output = op.outputs[0] if len(op.outputs) == 1 else op.outputs
        flops = flop_registry[packet](*arguments, **keywords, out_val=output)
        seconds = max(seconds, flops / _FLOPS_PER_S)
    has_unknown = unknown_output(op.node) is not None
    unknown = _UNKNOWN_PER_BYTE * extent_bytes(op.outputs[0]) if has_unknown else 0
    return Cost(max(1, int(seconds * 1e9)), 0, unknown)

"""How long each op of a trace takes: equal ops are measured once, alone, and remembered on disk."""

from __future__ import annotations

import json
import logging
import platform
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch.utils.flop_counter import flop_registry

from pardnn import cache
from pardnn.torch.nodes import Op, extent_bytes, map_nodes, tensor_of, value_of

_LOG = logging.getLogger(__name__)
_FORMAT = "1"
_BUDGET_S = 0.02  # of one op
_LEAST_RUNS, _MOST_RUNS = 3, 20
# Dispatch and what other ops leave in the caches: an op inside of a step is slower than alone.
_IN_STEP_NS, _VIEW_NS = 3_000, 1_000
# Larger ops are estimated: to measure them would need their memory.
_MOST_MEASURED_BYTES = 1 << 30
# An ordinary core, for what was not measured.
_FLOPS_PER_S, _BYTES_PER_S = 20e9, 5e9


def cost_of(ops: Sequence[Op], measure: bool = True) -> dict[torch.fx.Node, int]:
    """Nanoseconds of each op in a step, on one thread of this machine.

    Without ``measure``, and where an op cannot run alone, they are estimated from arithmetic and
    bytes.
    """
    path = _file() if measure else None
    known = _read(path)
    before = len(known)
    found = {}
    for op in ops:
        if op.is_view:
            found[op.node] = _VIEW_NS
            continue
        key = key_of(op)
        if key not in known:
            known[key] = (_measured(op) if measure else None) or _estimated(op)
        found[op.node] = known[key] + _IN_STEP_NS
    if path is not None and len(known) > before:
        cache.write(path, json.dumps(known))
    return found


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


def _measured(op: Op) -> int | None:
    """Its median time; None where it cannot run alone."""
    if _bytes(op) > _MOST_MEASURED_BYTES:
        return None
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            arguments, keywords = map_nodes((op.node.args, op.node.kwargs), _made)
            times = []
            end = time.perf_counter() + _BUDGET_S
            while len(times) <= _LEAST_RUNS or (
                len(times) <= _MOST_RUNS and time.perf_counter() < end
            ):
                begin = time.perf_counter_ns()
                op.node.target(*arguments, **keywords)  # type: ignore[operator]
                times.append(time.perf_counter_ns() - begin)
    except (RuntimeError, IndexError, ValueError) as error:
        _LOG.info("%s cannot be measured alone: %s", op.node.target, error)
        return None
    return int(statistics.median(times[1:]))  # the first one warms up


def _made(node: torch.fx.Node) -> torch.Tensor:
    """A real tensor like the node's; whole numbers are 0, an index wherever one is meant."""
    like: Any = tensor_of(value_of(node))
    size = -(-extent_bytes(like) // like.element_size())
    if like.dtype.is_floating_point or like.dtype.is_complex:
        memory = torch.rand(size).to(like.dtype)
    else:
        memory = torch.zeros(size, dtype=like.dtype)
    return memory.as_strided(like.shape, like.stride())


def _bytes(op: Op) -> int:
    read = sum(extent_bytes(tensor_of(value)) for value in op.inputs)
    return read + sum(extent_bytes(t) for t in op.outputs if isinstance(t, torch.Tensor))


def _estimated(op: Op) -> int:
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

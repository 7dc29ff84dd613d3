"""Time and workspace of every op of a step: measured once on a worker, remembered on disk.

Equal ops (type, shapes, attributes, constant inputs) are measured once, alone, in a worker. Small
ops of one type share one measurement. What cannot run alone (updates of variables, loops, ops
without room or time left) gets an estimate from bytes and arithmetic, at the rates that the
measured ops of this machine reached. A table says of every number which of the two it is.
"""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import os
import platform
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import tensorflow as tf

from pardnn.tensorflow import compat, semantics
from pardnn.tensorflow.loops import Regions, regions_of
from pardnn.tensorflow.statics import Statics

_LOG = logging.getLogger(__name__)

_FORMAT = 1
# Ops that read and write less than this in all are one class per type.
_SMALL_BYTES = 16 * 1024
_VALUE_BYTES = 4096
# Free on a worker, but in small pieces: see small_tensors.
_SMALL_PLACES_BYTES = 2 << 20
_ASK_SECONDS = 5.0
_ALL_SECONDS = 20.0
_FREE = frozenset({"Placeholder", "Const", "NoOp"})
# Rates to start from before anything was measured here: one ordinary core.
_BYTES_PER_S = 4e9
_FLOPS_PER_S = 20e9


class Workers(Protocol):
    """The part of a cluster that measuring needs."""

    limits: list[int | None]

    def call(self, number: int, target: str, argument: Any, timeout_s: float | None = None) -> Any:
        """Run a function of this package in a worker."""

    def memory(self, number: int) -> Mapping[str, int]:
        """Bytes in use on a worker."""


@dataclass
class Rates:
    """What a machine does in a second, and what starting an op costs there."""

    bytes_per_s: float = _BYTES_PER_S
    flops_per_s: float = _FLOPS_PER_S
    eager_ns: int = 10_000
    graph_ns: int = 2_000


@dataclass
class CostTable:
    """Costs of the ops of one graph and of the loop bodies in it."""

    regions: Regions
    measured: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    rates: Rates = field(default_factory=Rates)
    keys: dict[str, str] = field(default_factory=dict)
    """Key of the measurement that holds for an op, by its name; bodies' ops with their body's."""

    def cost(self, op: Any) -> tuple[int, int, str]:
        """Nanoseconds, workspace bytes, and `measured` or `analytical`."""
        return self._cost(op, self.regions, "")

    def _cost(self, op: Any, regions: Regions, scope: str) -> tuple[int, int, str]:
        if op.type in _FREE or op.type == "ReadVariableOp":
            return 1 if op.type in _FREE else self.rates.graph_ns, 0, "analytical"
        if op.type in compat.FUNCTIONAL_OPS:
            return self._region_cost(op, regions, scope)
        found = self.measured.get(self.keys.get(scope + op.name, ""))
        if found is not None:
            taken = max(0, found[0] - self.rates.eager_ns)
            return self.rates.graph_ns + taken, found[1], "measured"
        return self.rates.graph_ns + self._estimate(op, regions.statics), 0, "analytical"

    def _region_cost(self, op: Any, regions: Regions, scope: str) -> tuple[int, int, str]:
        """All trips of all ops in it; of a conditional, the dearer branch."""
        region = regions.of(op)
        times = []
        for number, body in enumerate(region.bodies):
            inner = f"{scope}{op.name}\0{number}\0"
            ops = [o for o in body.graph.get_operations() if o.type not in _FREE]
            times.append(sum(self._cost(o, body.regions, inner)[0] for o in ops))
        whole = sum(times) * region.trips if op.type in semantics.LOOPS else max(times, default=0)
        return self.rates.graph_ns + whole, 0, "analytical"

    def _estimate(self, op: Any, statics: Statics) -> int:
        moved = sum(statics.bytes(t) for t in [*op.inputs, *op.outputs])
        if op.type in semantics.ALIAS:
            moved = 0
        for tensor in op.inputs:
            if tensor.dtype == tf.resource and op.type.startswith(("Assign", "ResourceApply")):
                content = statics.content_shape(tensor)
                moved += 8 * (content.num_elements() or 0) if content is not None else 0
        seconds = moved / self.rates.bytes_per_s + flops_of(op, statics) / self.rates.flops_per_s
        return round(seconds * 1e9)


def measure(graph: Any, workers: Workers, cache_dir: Path | str | None) -> CostTable:
    """Costs of `graph`'s ops, from `cache_dir` where known, else measured on worker 0 now.

    Takes at most about 20 seconds; what is left then gets an estimate, and is measured in the next
    run. `cache_dir` None remembers nothing. A cache that cannot be written is only logged.
    """
    regions = regions_of(graph)
    wanted: dict[str, dict[str, Any]] = {}
    keys: dict[str, str] = {}
    _collect(graph, regions, "", wanted, keys)
    cache = _Cache(cache_dir, workers)
    rates = cache.rates()
    missing = [key for key in wanted if key not in cache.measured and key not in cache.refused]
    if rates is None:
        rates = Rates(**workers.call(0, "pardnn.tensorflow.isolation:floors", {}, 60.0))
    if missing:
        _LOG.info("measuring %d ops on worker 0", len(missing))
        _measure(missing, wanted, workers, cache)
    _fit(rates, wanted, cache.measured)
    cache.save(rates)
    return CostTable(regions, cache.measured, rates, keys)


def _measure(
    missing: list[str], wanted: Mapping[str, dict[str, Any]], workers: Workers, cache: _Cache
) -> None:
    left = _ALL_SECONDS
    missing = sorted(missing, key=lambda key: -wanted[key]["bytes"])
    while missing and left > 0:
        now, missing = missing[:64], missing[64:]
        limit = workers.limits[0]
        room = None if limit is None else limit - workers.memory(0)["current"] - _SMALL_PLACES_BYTES
        request = {
            "ops": [wanted[key] for key in now],
            "seconds": min(left, _ASK_SECONDS),
            "memory_bytes": room,
        }
        answer = workers.call(0, "pardnn.tensorflow.isolation:measure", request, 120.0)
        left -= answer["seconds"]
        for key, found in zip(now, answer["ops"], strict=True):
            cache.note(key, found)
        late = [
            k for k, f in zip(now, answer["ops"], strict=True) if "late" in f and "room" not in f
        ]
        missing = late + missing


def _collect(
    graph: Any,
    regions: Regions,
    scope: str,
    wanted: dict[str, dict[str, Any]],
    keys: dict[str, str],
) -> None:
    """Describe each distinct op of a graph and of the bodies in it that can run alone."""
    nodes = {node.name: node for node in graph.as_graph_def().node}
    for op in graph.get_operations():
        if op.type in compat.FUNCTIONAL_OPS:
            for number, body in enumerate(regions.of(op).bodies):
                inner = f"{scope}{op.name}\0{number}\0"
                _collect(body.graph, body.regions, inner, wanted, keys)
        elif _runs_alone(op, regions.statics):
            described = _described(op, nodes[op.name], regions.statics)
            small = described["bytes"] < _SMALL_BYTES
            text = op.type if small else json.dumps(described, sort_keys=True)
            key = hashlib.sha256(text.encode()).hexdigest()[:32]
            wanted.setdefault(key, described)
            keys[scope + op.name] = key


def _runs_alone(op: Any, statics: Statics) -> bool:
    if op.type in _FREE or op.type in semantics.ALIAS | compat.SPLITS | compat.JOINS:
        return False
    for tensor in [*op.inputs, *op.outputs]:
        if tensor.dtype in (tf.resource, tf.variant, tf.string):
            return False
    return all(statics.shape(t).is_fully_defined() for t in op.inputs)


def _described(op: Any, node: Any, statics: Statics) -> dict[str, Any]:
    inputs = []
    for tensor in op.inputs:
        value = statics.value(tensor)
        if value is not None and (tensor.dtype.is_floating or value.nbytes > _VALUE_BYTES):
            value = None
        inputs.append(
            [
                int(tensor.dtype.as_datatype_enum),
                statics.shape(tensor).as_list(),
                None if value is None else base64.b64encode(value.tobytes()).decode(),
            ]
        )
    return {
        "node": base64.b64encode(compat.bare_node(node)).decode(),
        "inputs": inputs,
        "outputs": len(op.outputs),
        "bytes": sum(statics.bytes(t) for t in [*op.inputs, *op.outputs]),
    }


def flops_of(op: Any, statics: Statics) -> int:
    """Floating point operations of a matrix product or convolution; 0 for any other op."""
    if not op.outputs:
        return 0
    shapes = [statics.shape(t).as_list() if statics.shape(t).rank else [] for t in op.inputs]
    out = statics.shape(op.outputs[0]).num_elements() or 0
    if op.type == "MatMul" and all(len(s) == 2 for s in shapes[:2]):
        inner = shapes[0][0 if op.get_attr("transpose_a") else 1]
        return 2 * out * (inner or 0)
    if op.type in ("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3") and len(shapes[0]) >= 2:
        return 2 * out * (shapes[0][-2 if op.get_attr("adj_x") else -1] or 0)
    if op.type == "Conv2D" and len(shapes[1]) == 4:
        return 2 * out * _product(shapes[1][:3])
    if op.type == "Conv2DBackpropInput" and len(shapes[1]) == 4:
        return 2 * _product(shapes[2]) * _product(shapes[1][:3])
    if op.type == "Conv2DBackpropFilter" and len(shapes[2]) == 4:
        return 2 * out * _product(shapes[2][:3])
    return 0


def _product(sizes: Iterable[int | None]) -> int:
    return int(np.prod([size or 1 for size in sizes], dtype=np.int64))


def _fit(
    rates: Rates, wanted: Mapping[str, dict[str, Any]], measured: Mapping[str, tuple[int, int]]
) -> None:
    """Take the rates that this machine's measured ops reached, the median of the large ones."""
    per_s = [
        wanted[key]["bytes"] / (measured[key][0] - rates.eager_ns) * 1e9
        for key in wanted
        if key in measured
        and wanted[key]["bytes"] >= 256 * 1024
        and measured[key][0] > 2 * rates.eager_ns
    ]
    if len(per_s) >= 5:
        rates.bytes_per_s = float(np.median(per_s))


class _Cache:
    """Measurements of this kind of machine, in one JSON file of `folder`."""

    def __init__(self, folder: Path | str | None, workers: Workers) -> None:
        self.measured: dict[str, tuple[int, int]] = {}
        self.refused: set[str] = set()
        self._rates: dict[str, float] | None = None
        self._changed = False
        self._path: Path | None = None
        if folder is not None:
            name = hashlib.sha256(json.dumps(_machine(workers), sort_keys=True).encode())
            self._path = Path(folder) / f"costs-{name.hexdigest()[:16]}.json"
            self._load(self._path)

    def rates(self) -> Rates | None:
        """The rates remembered, or None where nothing was measured on such a machine yet."""
        return None if self._rates is None else Rates(**self._rates)  # type: ignore[arg-type]

    def note(self, key: str, found: Mapping[str, Any]) -> None:
        """Remember one answer of a worker; an op that cannot run alone is not tried again."""
        if "ns" in found:
            self.measured[key] = (int(found["ns"]), int(found["workspace"]))
        elif not found.get("late"):
            self.refused.add(key)
            _LOG.info("an op cannot be measured alone: %s", found["error"])
        self._changed = True

    def save(self, rates: Rates) -> None:
        """Write the file if something is new; two runs at once both leave a whole one."""
        if self._path is None or not self._changed:
            return
        content = {
            "format": _FORMAT,
            "rates": vars(rates),
            "measured": self.measured,
            "refused": sorted(self.refused),
        }
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(
                "w", dir=self._path.parent, suffix=".tmp", delete=False, encoding="utf-8"
            ) as file:
                json.dump(content, file)
            Path(file.name).replace(self._path)
        except OSError as error:
            _LOG.warning("costs are not remembered: %s", error)

    def _load(self, path: Path) -> None:
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if content["format"] != _FORMAT:
                return
            self._rates = dict(content["rates"])
            self.measured = {k: (int(a), int(b)) for k, (a, b) in content["measured"].items()}
            self.refused = set(content["refused"])
        except FileNotFoundError:
            return
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            _LOG.warning("%s is not readable and will be written anew: %s", path, error)


def _machine(workers: Workers) -> dict[str, Any]:
    """What a measurement depends on besides the op."""
    return {
        "tensorflow": tf.__version__,
        "threads": getattr(workers, "threads", 1),
        "onednn": os.environ.get("TF_ENABLE_ONEDNN_OPTS", ""),
        "processor": _processor(),
        "cores": os.cpu_count(),
    }


def _processor() -> str:
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass  # not Linux
    return platform.processor() or platform.machine()

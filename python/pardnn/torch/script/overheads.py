"""What a step over ranks takes besides its ops: each rank looks at every op, and memory that the
system has taken back comes anew, page by page. Measured on this machine.
"""

from __future__ import annotations

import mmap
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch

from pardnn.torch.meter import keep_little_from
from pardnn.torch.script.calls import Calls
from pardnn.torch.script.hollow import Home, settle
from pardnn.torch.script.limits import Memory
from pardnn.torch.script.links import Links
from pardnn.torch.script.ranks import RankMode
from pardnn.torch.script.record import Seen
from pardnn.torch.script.tables import Tables

_OPS, _ROUNDS = 300, 5
_TOUCHED_BYTES = 16 << 20


class Overheads(NamedTuple):
    """Ns that a rank takes for each op besides the op, and that new memory takes, per MiB."""

    op_ns: float = 0.0
    new_mib_ns: float = 0.0


def measured() -> Overheads:
    """In CPU time; the process must not have any mode."""
    return Overheads(_op_ns(), _new_mib_ns())


def _op_ns() -> float:
    one, other = torch.ones(8), torch.ones(8)

    def added() -> None:
        for _ in range(_OPS):
            torch.add(one, other)

    plain = min(_cpu_ns(added) for _ in range(_ROUNDS))
    for tensor in (one, other):
        settle(tensor, Home(0))
    with RankMode(Links(0, {}), 2, Tables(), Calls(), Memory(None)):
        placed = min(_cpu_ns(added) for _ in range(_ROUNDS))
    return max(0.0, (placed - plain) / _OPS)


def _new_mib_ns() -> float:
    tensor = torch.frombuffer(mmap.mmap(-1, _TOUCHED_BYTES), dtype=torch.uint8)
    first = _cpu_ns(lambda: tensor.fill_(1))
    again = min(_cpu_ns(lambda: tensor.fill_(1)) for _ in range(_ROUNDS))
    return max(0.0, (first - again) / (_TOUCHED_BYTES >> 20))


def _cpu_ns(call: Callable[[], object]) -> int:
    begin = time.thread_time_ns()
    call()
    return time.thread_time_ns() - begin


def predicted_ns(
    plan_ns: int,
    seen: Seen,
    where: Mapping[int, int],
    limits: tuple[int | None, ...],
    cores: int,
) -> int:
    """A step over ranks with these limits of bytes, of which ``plan_ns`` are the plan's.

    ``where``: the rank of each unit. Optimizers step on each rank over its own parameters, so their
    ops are not looked at one by one.
    """
    overheads = Overheads(*seen.overheads)
    ops = seen.ops[seen.begin : seen.end]
    looked_at = sum(op.phase != "u" for op in ops) * overheads.op_ns
    new_ns = [0.0] * len(limits)
    for op in ops:
        limit = limits[where[op.unit]]
        for number, _ in op.makes:
            nbytes = seen.memories[number].nbytes
            if limit is not None and nbytes >= keep_little_from(limit):
                new_ns[where[op.unit]] += overheads.new_mib_ns * nbytes / (1 << 20)
    computed = sum(seen.costs_ns[op.kind] for op in ops)
    all_ranks = computed + sum(new_ns) + looked_at * len(limits)
    return int(max(plan_ns + looked_at + max(new_ns), all_ranks / min(cores, len(limits))))

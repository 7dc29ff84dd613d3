"""A look ahead: the script once in a process of its own, where every tensor of the model is hollow.

It ends when the optimizer that stepped first has stepped twice: in between lies a whole step, of
all optimizers and micro-batches, with the state that the first step made. Values that Python asks
for get plausible answers. What the script writes goes to scratch files.
"""

from __future__ import annotations

import ctypes
import io
import os
import pickle
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch
import torch.fx
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import _pytree as pytree

from pardnn import script as user_script
from pardnn.errors import Refusal
from pardnn.launch import RunOptions
from pardnn.torch import costs
from pardnn.torch.nodes import Op, Value
from pardnn.torch.script import (
    compat,
    leaving,
    overheads,
    parameters,
    rank,
    refusals,
    results,
    saving,
    scratch,
    sparse,
    steps,
)
from pardnn.torch.script.calls import Calls, Key
from pardnn.torch.script.hollow import Home, hollow_like, home_of, homes_of, settle
from pardnn.torch.script.mode import Call, Placing
from pardnn.torch.script.record import Life, Memory, OpSeen, Seen
from pardnn.torch.sparse import joined, parts_of

# What every rank has counts from this size on.
_SHARED_BYTES = 64 * 1024
# Results of unknown size are computed on ones up to this size.
_COMPUTED_BYTES = 64 << 20
_MOST_OPS = 400_000


class ScoutMode(Placing):
    """The mode of a look ahead: owners are units, results are hollow."""

    def __init__(self, calls: Calls) -> None:
        super().__init__(calls)
        self.seen = Seen()
        self.nodes: list[Op] = []
        self._units: dict[Any, int] = {}
        self._known: dict[Any, tuple[Any, int]] = {}
        self._fake = FakeTensorMode(allow_non_fake_inputs=True)
        self._graph = torch.fx.Graph()
        self._shared = 0
        self._zeros: set[int] = set()

    def planned(self, key: Key) -> int:
        """The unit of an op, in place of a rank."""
        return self._unit(key)

    def adopt(self, data: torch.Tensor, moves: bool = False) -> torch.Tensor:
        """A parameter's tensor, hollow."""
        home = home_of(data)
        if home is not None and home.parameter is not None:
            return data
        number = self.seen.parameters
        self.seen.parameters += 1
        if home is not None and not moves:
            home.parameter = number
            self.seen.memories[home.life.number].parameter = number
            return data
        home = Home(self._unit(("parameter", number)), number)
        settle(data, home)
        new = hollow_like(data, home)
        self._live(new)
        return new

    def fetch(self, tensor: torch.Tensor) -> torch.Tensor:
        """Plausible values."""
        return torch.ones(tensor.shape, dtype=tensor.dtype).as_strided(tensor.shape, _rows(tensor))

    def compute(self, call: Call) -> Any:
        """What the call answers, without memory, noted as an op of the step."""
        refusals.check_transforms()
        known, kind = self._results_of(call)
        if len(self.seen.ops) > _MOST_OPS:
            raise _TooLong
        makes: list[tuple[int, int | None]] = []
        if call.facts.gives_value:
            self._note(call, kind, makes)
            return self._plausible(call)
        for tensor in call.written:
            if home_of(tensor) is None:
                settle(tensor, Home(call.where))
                self._live(tensor)
            elif tensor.layout != torch.strided and known[0] == "sparse":
                tensor.data = self._made(call, known, makes, None)
        if call.facts.name.startswith("_amp_"):
            self._zeros.update(home_of(t).life.number for t in call.written)  # type: ignore[union-attr]
        if call.facts.gives_written:
            self._note(call, kind, makes)
            return call.written_result()
        made = self._made(call, known, makes, 0)
        self._note(call, kind, makes)
        return made

    def _made(
        self, call: Call, known: Any, makes: list[tuple[int, int | None]], first: int | None
    ) -> Any:
        """Hollow results, whose memories are noted in ``makes``; ``first``: the number of the first
        result, None for what a plan cannot name.
        """
        made = results.make(call, known, call.where)
        for number, tensor in enumerate(made if isinstance(made, (tuple, list)) else [made]):
            for one in tensor if isinstance(tensor, (tuple, list)) else [tensor]:
                if not isinstance(one, torch.Tensor):
                    continue
                named = None if one.layout != torch.strided or first is None else first + number
                for part in parts_of(one):
                    home = home_of(part)
                    if home is not None and home.life is None:
                        makes.append((self._live(part), named))
        return made

    def _plausible(self, call: Call) -> Any:
        """An answer of the right type: one, and to whether something went wrong, no."""
        tensor, home = call.tensors[0], call.homes[0]
        if call.facts.name != "_local_scalar_dense" or tensor.dtype == torch.bool:
            return False
        good = 0 if home is not None and home.life.number in self._zeros else 1
        return float(good) if tensor.dtype.is_floating_point else good

    def _note(self, call: Call, kind: int, makes: list[tuple[int, int | None]]) -> None:
        phase = "u" if self.calls.in_optimizer else "f"
        if compat.current_node() is not None and not self.calls.recomputes():
            phase = "b"
        homes = call.written_homes()
        read = call.homes
        if call.has_sparse:
            read = [home for tensor in call.tensors for home in homes_of(tensor)]
        self.seen.ops.append(
            OpSeen(
                name=call.facts.name,
                unit=call.where,
                phase=phase,
                key=call.key,
                kind=kind,
                reads=tuple(h.life.number for h in read if h is not None and h.life is not None),
                writes=tuple(h.life.number for h in homes if h is not None and h.life is not None),
                makes=tuple(makes),
                shared=tuple(self._shared_inputs(call)),
            )
        )

    def _shared_inputs(self, call: Call) -> Any:
        for tensor, home in zip(call.tensors, call.homes, strict=True):
            if tensor.layout != torch.strided:
                continue
            storage = tensor.untyped_storage()
            if home is None and storage.nbytes() >= _SHARED_BYTES:
                number = getattr(storage, "shared", None)
                if number is None:
                    number = storage.shared = self._shared
                    self._shared += 1
                yield number, storage.nbytes()

    def _live(self, tensor: torch.Tensor) -> int:
        """A new memory, whose end will be noted."""
        home = home_of(tensor)
        assert home is not None
        number = len(self.seen.memories)
        nbytes = tensor.untyped_storage().nbytes()
        self.seen.memories.append(
            Memory(home.owner, nbytes, len(self.seen.ops), parameter=home.parameter)
        )
        home.life = Life(self.seen, number)
        return number

    def _unit(self, what: Any) -> int:
        number = self._units.get(what)
        if number is None:
            number = self._units[what] = len(self.seen.units)
            self.seen.units.append(what)
        return number

    def _results_of(self, call: Call) -> tuple[Any, int]:
        """What the results look like, and the kind of op for its cost; computed once per kind."""
        key = results.key_of(call)
        found = self._known.get(key) if key is not None else None
        if found is None:
            fakes = {id(t): self._faked(t) for t in call.tensors}
            try:
                with self._fake:
                    out = call.run(fakes)
                    if call.has_sparse and getattr(out, "layout", None) == torch.sparse_coo:
                        out = sparse.plausible(call, out)
            except Refusal:
                raise
            except Exception:  # noqa: BLE001  whatever torch's rules for fakes cannot tell
                out = _computed(call)
            self._add_node(call, fakes, out)
            found = (results.describe(_on_fakes(call, fakes), out), len(self.nodes) - 1)
            if key is not None:
                self._known[key] = found
        return found

    def _faked(self, tensor: torch.Tensor) -> torch.Tensor:
        with self._fake:
            parts = [
                torch.empty_strided(part.shape, part.stride(), dtype=part.dtype)
                for part in parts_of(tensor)
            ]
            return joined(tensor, parts)

    def _add_node(self, call: Call, fakes: dict[int, torch.Tensor], out: Any) -> None:
        """The op as a node of a graph, which is what costs are measured of."""
        if call.has_sparse:
            self._add_sum(next(t for t in fakes.values() if t.layout == torch.sparse_coo))
            return
        nodes: dict[int, torch.fx.Node] = {}
        for tensor in call.tensors:
            if id(tensor) not in nodes:
                node = self._graph.placeholder(f"in{len(self._graph.nodes)}")
                node.meta["val"] = fakes[id(tensor)]
                nodes[id(tensor)] = node

        def as_node(leaf: Any) -> Any:
            return nodes[id(leaf)] if isinstance(leaf, torch.Tensor) else leaf

        args, kwargs = pytree.tree_map(as_node, (call.args, call.kwargs))
        node = self._graph.call_function(call.facts.func, tuple(args), kwargs)
        node.meta["val"] = out
        outputs = tuple(out) if isinstance(out, (tuple, list)) else (out,)
        inputs = tuple(Value(n, 0) for n in nodes.values())
        self.nodes.append(Op(node, inputs, outputs, (None,) * len(outputs), False))

    def _add_sum(self, tensor: torch.Tensor) -> None:
        """What ops on a sparse tensor are taken to cost: adding its values to as many others."""
        values = self._graph.placeholder(f"in{len(self._graph.nodes)}")
        values.meta["val"] = tensor._values()
        node = self._graph.call_function(torch.ops.aten.add.Tensor, (values, values))
        node.meta["val"] = tensor._values()
        self.nodes.append(Op(node, (Value(values, 0),), (tensor._values(),), (None,), False))


class _TooLong(Exception):  # noqa: N818  the look ahead ends with what it has
    pass


def _on_fakes(call: Call, fakes: dict[int, torch.Tensor]) -> Any:
    """The call, as far as describing results goes, with its fake inputs."""
    twin = Call.__new__(Call)
    twin.facts = call.facts
    twin.tensors = [fakes[id(tensor)] for tensor in call.tensors]
    return twin


def _computed(call: Call) -> Any:
    """The op on ones: its results have a size that depends on values."""
    if call.has_sparse:
        raise Refusal(f"{call.facts.func} of a sparse tensor cannot be planned; make it dense")
    size = sum(t.untyped_storage().nbytes() for t in call.tensors)
    if size > _COMPUTED_BYTES:
        raise Refusal(
            f"{call.facts.func} gives a result whose size depends on values, of inputs of {size} "
            "bytes: too large to try in advance"
        )
    return call.run(
        {
            id(t): torch.ones(t.shape, dtype=t.dtype)
            for t, home in zip(call.tensors, call.homes, strict=True)
            if home is not None
        }
    )


def _rows(tensor: torch.Tensor) -> tuple[int, ...]:
    return torch.empty(tensor.shape, device="meta").stride()


def _nothing() -> None:
    pass


def look(options: RunOptions, result: int, folder: Path, seed: int) -> NoReturn:
    """Turns this process, which was forked for it, into a look ahead; writes a pickle of Seen, or
    of a text that says why not.
    """
    found: Any
    mode: ScoutMode | None = None
    restore: Callable[[], None] = _nothing
    begin = time.perf_counter()
    try:
        _settle_down(folder / "ahead.log", seed)
        mode = ScoutMode(Calls())
        restore = _install(mode, begin, result, folder)
        with mode:
            user_script.run_as_main(options.script, options.arguments)
        found = None
    except (SystemExit, _TooLong):
        found = None
    except Refusal as refusal:
        found = ("refused", rank.with_line(refusal, options.script))
    except BaseException as error:  # noqa: BLE001  the script may raise anything
        sys.stderr.write(traceback.format_exc())
        found = ("failed", f"{type(error).__name__}: {error}"[:300])
    restore()
    if found is None and mode is not None:
        _finish(mode, begin, result)
    _write(result, found)
    os._exit(0)


def _install(mode: ScoutMode, begin: float, result: int, folder: Path) -> Callable[[], None]:
    """Everything that the script may use; answers what gives it its files back."""
    mode.calls.install()
    leaving.install(mode.fetch)
    parameters.install(mode.adopt)
    saving.install(1, mode.fetch, lambda tensor: None, lambda ask: None, lambda nbytes: None)
    rank.use_folder(str(folder))
    restore = scratch.install(folder)

    def end(message: str) -> None:
        _write(result, ("refused", message))
        os._exit(0)

    refusals.install(end, lambda message: None)
    ends: list[int] = []

    def ended() -> None:
        ends.append(len(mode.seen.ops))
        mode.seen.begin, mode.seen.end = (ends[-2] if len(ends) > 1 else 0), ends[-1]
        mode.seen.whole = len(ends) > 1
        if mode.seen.whole:
            restore()
            _finish(mode, begin, result)

    steps.at_each_end(ended)
    return restore


def _finish(mode: ScoutMode, begin: float, result: int) -> NoReturn:
    """Costs of what was seen; then this process ends."""
    seen = mode.seen
    if seen.end == 0:
        seen.end = len(seen.ops)
    with compat.without_modes():
        found = costs.costs_of(mode.nodes)
        seen.overheads = tuple(overheads.measured())
    seen.costs_ns = [found[op.node].ns for op in mode.nodes]
    seen.seconds = time.perf_counter() - begin
    _write(result, seen)
    os._exit(0)


def _write(result: int, found: Any) -> None:
    with os.fdopen(result, "wb") as pipe:
        pickle.dump(found, pipe)


def _settle_down(log: Path, seed: int) -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # end with the launcher
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 2)
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False))
    torch.set_num_threads(1)
    random.seed(seed)
    np.random.seed(seed % (1 << 32))

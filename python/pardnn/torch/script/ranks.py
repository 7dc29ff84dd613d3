"""The mode of a rank: an op runs here, or its results are hollow here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils import _pytree as pytree

from pardnn.errors import Refusal
from pardnn.torch.script import draws
from pardnn.torch.script.calls import Calls, Key
from pardnn.torch.script.hollow import Home, hollow, home_of, settle
from pardnn.torch.script.links import Desync, Incoming, Links
from pardnn.torch.script.mode import Call, Placing

# Results whose values C++ reads where no mode sees it: every rank gets them.
_READ_UNSEEN = {"_pack_padded_sequence": 1}


@dataclass(frozen=True)
class Tables:
    """What ranks know of the plan.

    ``parameters``: rank by number of creation; others go round. ``ops``: rank by key. ``readers``:
    for a key, how often each rank reads the result (by its number) in a step.
    """

    parameters: Mapping[int, int] = field(default_factory=dict)
    ops: Mapping[Key, int] = field(default_factory=dict)
    readers: Mapping[Key, Mapping[int, Mapping[int, int]]] = field(default_factory=dict)


class RankMode(Placing):
    """The mode of one rank of several. ``tables``: the plan."""

    def __init__(
        self,
        links: Links,
        ranks: int,
        tables: Tables,
        calls: Calls,
        chooser: Callable[[int], int] | None = None,
    ) -> None:
        super().__init__(calls, chooser)
        self.links = links
        self.rank = links.rank
        self.ranks = ranks
        self.parameters = 0
        self.after_large: Callable[[], None] = lambda: None
        self._tables = tables
        self._results: dict[Any, Any] = {}

    def planned(self, key: Key) -> int | None:
        return self._tables.ops.get(key)

    def adopt(self, data: torch.Tensor, moves: bool = False) -> torch.Tensor:
        """A parameter's tensor, at home where the plan has it.

        ``moves``: nobody else holds ``data``, so it need not stay where it was computed.
        """
        home = home_of(data)
        if home is not None and home.parameter is not None:
            return data  # it shares another parameter's memory
        number = self.parameters
        self.parameters += 1
        where = self._tables.parameters.get(number, number % self.ranks)
        if self._chooser is not None:
            where = self._chooser(-number)
        if home is not None and (home.owner == where or not moves):
            home.parameter = number
            return data
        new = Home(where, number)
        like = (tuple(data.shape), data.stride(), data.dtype, 0, new)
        if home is None:
            # Whoever else holds the tensor has to find it where the parameter is.
            settle(data, new)
            return data if where == self.rank else hollow(*like)
        self.links.note(-1, data.shape)
        if self.rank == home.owner:
            self.links.send(data, where)
        if self.rank != where:
            return hollow(*like)
        received: torch.Tensor = self.links.expect(data, home.owner).wait()
        settle(received, new)
        return received

    def fetch(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor's values, on every rank."""
        home = home_of(tensor)
        assert home is not None
        self.links.note(-2, tensor.shape)
        if self.rank != home.owner:
            received: torch.Tensor = self.links.expect(tensor, home.owner).wait()
            return received
        for other in range(self.ranks):
            if other != self.rank:
                self.links.send(tensor, other)
        return tensor.detach()

    def compute(self, call: Call) -> Any:
        self.links.note(call.facts.number, call.tensors[0].shape)
        here = call.where == self.rank
        given = self._gather(call, here)
        if call.facts.gives_value:
            value = call.run(given) if here else None
            return self.links.broadcast(value, call.where)
        for tensor in call.written:
            home = home_of(tensor)
            if home is not None:
                home.copies = None  # they are old now
        out = None
        if here:
            out = self._run(call, given)
        elif call.facts.draws:
            draws.repeat(call)
        if call.facts.name in draws.COUNTED_BY_VALUES:
            draws.follow(self.links.broadcast(draws.state() if here else None, call.where))
        if call.written:
            self._bring_home(call, given, here)
        if call.facts.gives_written:
            return call.written_result()
        return self._results_of(call, out, here)

    def _run(self, call: Call, given: dict[int, torch.Tensor]) -> Any:
        return call.run(given)

    def _gather(self, call: Call, here: bool) -> dict[int, torch.Tensor]:
        """Brings every input to where the op runs; there, what to take instead of hollow ones."""
        where = call.where
        incoming: dict[int, Incoming] = {}
        for tensor, home in zip(call.tensors, call.homes, strict=True):
            if home is not None and home.owner != where:
                copy = self._bring(tensor, home, where)
                if here:
                    incoming[id(tensor)] = copy
        return {which: copy.wait() for which, copy in incoming.items()}

    def _bring(self, tensor: torch.Tensor, home: Home, where: int) -> Any:
        """Sends a tensor to a rank that has no copy of it; there, the message."""
        if home.copies is None:
            home.copies = {}
        key = (where, tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype)
        copy = home.copies.get(key)
        if copy is None:
            copy = True
            if self.rank == home.owner:
                self.links.send(tensor, where)
            elif self.rank == where:
                copy = self.links.expect(tensor, home.owner)
            home.copies[key] = copy
        if home.uses is not None and where in home.uses:
            home.uses[where] -= 1
            if home.uses[where] == 0:
                for other in [k for k in home.copies if k[0] == where]:
                    del home.copies[other]
        return copy

    def _bring_home(self, call: Call, given: dict[int, torch.Tensor], here: bool) -> None:
        """What was written has a home now, and is there."""
        for tensor in call.written:
            home = home_of(tensor)
            if home is None:
                settle(tensor, Home(call.where))
            elif home.owner != call.where:
                if here:
                    self.links.send(given[id(tensor)], home.owner)
                elif self.rank == home.owner:
                    tensor.copy_(self.links.expect(tensor, call.where).wait())
                home.copies = None

    def _results_of(self, call: Call, out: Any, here: bool) -> Any:
        """The results, hollow on all ranks but one, which says of what shapes they are."""
        unseen = _READ_UNSEEN.get(call.facts.name)
        value = None
        if unseen is not None:
            value = self.links.broadcast(out[unseen] if here else None, call.where)
        own = self._described(call, out, unseen) if here else None
        key = _key_of(call)
        known = None if key is None else self._results.get(key)
        if known is None:
            if here:
                _no_unsaid_view(call, out)
            known = self.links.broadcast(own, call.where)
            if key is not None:
                self._results[key] = known
        elif here and known != own:
            raise Desync(
                f"{call.func} gave {own} for inputs that gave {known} before; please report it"
            )
        if here:
            result = out
        else:
            result = _made(call, known)
        if unseen is None:
            self._announce(call, result, here)
            return result
        return tuple(value if n == unseen else one for n, one in enumerate(result))

    def _described(self, call: Call, out: Any, unseen: int | None) -> Any:
        """What others need to make hollow results; the real ones are at home here."""
        if isinstance(out, (tuple, list)):
            parts = [
                self._described(call, one, 0) if n == unseen else self._described(call, one, None)
                for n, one in enumerate(out)
            ]
            return (type(out), parts)
        if not isinstance(out, torch.Tensor):
            return ("value", out)
        if out.layout != torch.strided:
            raise Refusal(sparse_message(call))
        for number, tensor in enumerate(call.tensors):
            if tensor is out:
                return ("input", number)
        if unseen is None and home_of(out) is None:
            settle(out, Home(call.where))
        return ("tensor", (tuple(out.shape), out.stride(), out.dtype, out.storage_offset()))

    def _announce(self, call: Call, result: Any, here: bool) -> None:
        """Sends results to the ranks that the plan has readers on."""
        readers = None if call.key is None else self._tables.readers.get(call.key)
        if readers is None:
            return
        results = [result] if isinstance(result, torch.Tensor) else result
        for number, uses in readers.items():
            tensor = results[number]
            home = home_of(tensor)
            if home is None or home.owner != call.where:
                continue
            home.uses = dict(uses)
            home.copies = home.copies or {}
            for where in uses:
                key = (where, tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype)
                if where == call.where or key in home.copies:
                    continue
                copy: Any = True
                if here:
                    self.links.send(tensor, where)
                elif self.rank == where:
                    copy = self.links.expect(tensor, call.where)
                home.copies[key] = copy


def sparse_message(call: Call) -> str:
    """Why an op with a sparse result cannot be placed."""
    return (
        f"{call.facts.name} makes a sparse tensor, which cannot be on another rank yet; "
        "make the embedding with sparse=False"
    )


def _no_unsaid_view(call: Call, out: Any) -> None:
    """Raises Refusal for an op whose result lies in an input's memory though no schema says so."""
    inputs = {t.untyped_storage()._cdata: id(t) for t in call.tensors}
    for result in pytree.tree_leaves(out):
        if isinstance(result, torch.Tensor):
            known = inputs.get(result.untyped_storage()._cdata)
            if known is not None and id(result) not in {id(t) for t in call.tensors}:
                raise Refusal(f"{call.func} makes a view and does not say so; please report it")


def _made(call: Call, known: Any) -> Any:
    """Hollow results of the described shapes."""
    kind, what = known
    if kind == "tensor":
        return hollow(*what, Home(call.where))
    if kind == "input":
        return call.tensors[what]
    if kind == "value":
        return what
    return kind(_made(call, part) for part in what)


def _key_of(call: Call) -> Any:
    """What decides the shapes of the results; None where values do."""
    if call.facts.sized_by_values:
        return None
    if call.facts.masks_size and any(t.dtype in _MASKS for t in call.tensors):
        return None
    return call.func, _key(call.args), _key(call.kwargs.items())


_MASKS = (torch.bool, torch.uint8)


def _key(values: Any) -> tuple[Any, ...]:
    parts: list[Any] = []
    for value in values:
        if isinstance(value, torch.Tensor):
            parts.append((value.shape, value.stride(), value.dtype))
        elif isinstance(value, (list, tuple)):
            parts.append(_key(value) if not _all_numbers(value) else tuple(value))
        elif isinstance(value, torch.Generator):
            parts.append(torch.Generator)
        elif type(value) is float:
            parts.append(float)
        else:
            parts.append((type(value), value))
    return tuple(parts)


def _all_numbers(values: Any) -> bool:
    return all(type(value) in (int, float, bool) for value in values)



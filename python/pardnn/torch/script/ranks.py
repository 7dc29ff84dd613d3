"""The mode of a rank: an op runs here, or its results are hollow here."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from pardnn.torch.meter import give_back
from pardnn.torch.script import draws, limits, refusals, results, sparse
from pardnn.torch.script.calls import Calls, Key
from pardnn.torch.script.hollow import Home, hollow_like, home_of, image_of, settle, view_in
from pardnn.torch.script.links import Desync, Incoming, Links
from pardnn.torch.script.mode import Call, Placing
from pardnn.torch.script.tables import Tables
from pardnn.torch.sparse import joined, parts_of

# Results whose values C++ reads where no mode sees it: every rank gets them.
_READ_UNSEEN = {"_pack_padded_sequence": 1}
# A view of at least this part of a storage brings all of it.
_PARTS = 4


class Kind:
    """What calls that are alike have in common.

    ``digest``: of the op and the shapes of its inputs. ``results``: what describes the results,
    None where it is not known yet, or never. ``nbytes``: of new results.
    """

    __slots__ = ("digest", "nbytes", "results")

    def __init__(self, call: Call) -> None:
        shapes = tuple([tensor.shape for tensor in call.tensors])
        self.digest = hash((call.facts.number, shapes))
        self.results: Any = None
        self.nbytes = 0


class Copy:
    """What a rank received, or will have received, of a storage: all of it, or one view.

    On other ranks it only says that the rank has it.
    """

    __slots__ = ("message", "whole")

    def __init__(self, message: Incoming | None) -> None:
        self.message = message
        self.whole = False

    def of(self, tensor: torch.Tensor) -> torch.Tensor:
        """The values of a tensor, once they are there."""
        assert self.message is not None
        received: torch.Tensor = self.message.wait()
        return view_in(received.untyped_storage(), tensor) if self.whole else received


class RankMode(Placing):
    """The mode of one rank of several. ``tables``: the plan."""

    def __init__(
        self,
        links: Links,
        ranks: int,
        tables: Tables,
        calls: Calls,
        memory: limits.Memory,
        chooser: Callable[[int], int] | None = None,
    ) -> None:
        super().__init__(calls, chooser)
        self.links = links
        self.rank = links.rank
        self.ranks = ranks
        self.parameters = 0
        self.memory = memory
        self._tables = tables
        self._kinds: dict[Any, Kind] = {}

    def planned(self, key: Key) -> int | None:
        """The rank that the plan names for an op; None where it does not know it."""
        return self._tables.ops.get(key)

    def adopt(self, data: torch.Tensor, moves: bool = False) -> torch.Tensor:
        """A parameter's tensor, at home where the plan has it.

        ``moves``: nobody else holds ``data``, so it need not stay where it was computed.
        """
        home = home_of(data)
        if home is None:
            self.memory.begin(data.untyped_storage().nbytes())
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
        if home is None:
            # Whoever else holds the tensor has to find it where the parameter is.
            settle(data, new)
            return data if where == self.rank else hollow_like(data, new)
        self.links.note(-1, data.shape)
        if self.rank == home.owner:
            self.links.send(data, where)
        if self.rank != where:
            return hollow_like(data, new)
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

    def gather(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """The tensor's values on rank 0, None on the others."""
        home = home_of(tensor)
        assert home is not None
        self.links.note(-3, tensor.shape)
        if home.owner == 0:
            return tensor if self.rank == 0 else None
        if self.rank == home.owner:
            self.links.send(tensor, 0)
        if self.rank:
            return None
        received: torch.Tensor = self.links.expect(tensor, home.owner).wait()
        return received

    def agree(self, ask: Callable[[], Any]) -> Any:
        """What ``ask`` gives on rank 0, on every rank."""
        self.links.note(-4, None)
        return self.links.broadcast(ask() if self.rank == 0 else None, 0)

    def meet(self) -> None:
        """Rank 0 waits here until all others have come here, too."""
        self.links.note(-5, None)
        token = torch.zeros(1, dtype=torch.uint8)
        if self.rank:
            self.links.send(token, 0)
            return
        for message in [self.links.expect(token, other) for other in range(1, self.ranks)]:
            message.wait()

    def compute(self, call: Call) -> Any:
        """What the call answers: real where it runs, hollow elsewhere."""
        if refusals.active:
            refusals.check_transforms()
        facts, here = call.facts, call.where == self.rank
        kind = self._kind_of(call)
        self.links.note(kind.digest)
        given = self._gather(call, here)
        if facts.gives_value:
            value = call.run(given) if here else None
            return self.links.broadcast(value, call.where)
        if call.written:
            self.changed(call.written_homes())
        before = _places(call) if call.has_sparse else []
        out = None
        if here:
            out = self._run(call, kind, given)
        elif facts.draws and facts.name not in draws.COUNTED_BY_VALUES:
            draws.repeat(call)
        if facts.draws and facts.name in draws.COUNTED_BY_VALUES:
            draws.follow(self.links.broadcast(draws.state() if here else None, call.where))
        if call.written:
            self._bring_home(call, given, here)
            if before:
                self._rewrite(call, given, before)
            if facts.gives_written:
                return call.written_result()
        return self._results_of(call, kind, out, here)

    def _kind_of(self, call: Call) -> Kind:
        key = results.key_of(call)
        if key is None:
            return Kind(call)
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = Kind(call)
        return kind

    def changed(self, homes: Iterable[Home | None]) -> None:
        """What ranks received of what is at home there is old now."""
        readers = self._tables.parameter_readers
        for home in homes:
            if home is not None:
                home.copies = None
                if home.parameter is not None and home.parameter in readers:
                    home.uses = dict(readers[home.parameter])

    def _run(self, call: Call, kind: Kind, given: dict[int, torch.Tensor]) -> Any:
        try:
            out = call.run(given)
        except (RuntimeError, MemoryError) as error:
            if not limits.is_refusal(error):
                raise
            give_back()
            if call.written or call.facts.draws:  # it may have begun
                raise
            out = call.run(given)
        memory = self.memory
        memory.unseen += kind.nbytes
        if memory.unseen >= memory.grain:
            memory.sample()
        return out

    def _gather(self, call: Call, here: bool) -> dict[int, torch.Tensor]:
        """Brings every input to where the op runs; there, what to take instead of hollow ones."""
        if call.has_sparse:
            return self._gather_sparse(call, here)
        where = call.where
        copies: list[tuple[torch.Tensor, Copy]] = []
        for number, home in enumerate(call.homes):
            if home is not None and home.owner != where:
                copy = self._bring(call.tensors[number], home, where)
                if here:
                    copies.append((call.tensors[number], copy))
        return {id(tensor): copy.of(tensor) for tensor, copy in copies}

    def _gather_sparse(self, call: Call, here: bool) -> dict[int, torch.Tensor]:
        """The same where some inputs are sparse: their parts may be on different ranks."""
        found: list[tuple[torch.Tensor, list[tuple[torch.Tensor, Copy | None]]]] = []
        for tensor in call.tensors:
            parts: list[tuple[torch.Tensor, Copy | None]] = []
            for part in parts_of(tensor):
                home = home_of(part)
                copy = None
                if home is not None and home.owner != call.where:
                    copy = self._bring(part, home, call.where)
                parts.append((part, copy))
            if any(copy is not None for _, copy in parts):
                found.append((tensor, parts))
        if not here:
            return {}
        return {
            id(tensor): joined(
                tensor, [part if copy is None else copy.of(part) for part, copy in parts]
            )
            for tensor, parts in found
        }

    def _bring(self, tensor: torch.Tensor, home: Home, where: int) -> Copy:
        """Sends a tensor to a rank that has no copy of it; there, the copy is the message."""
        copies = home.copies
        if copies is None:
            copies = home.copies = {}
        copy: Copy | None = copies.get(where)
        if copy is None:
            nbytes = tensor.untyped_storage().nbytes()
            if tensor.numel() * tensor.dtype.itemsize * _PARTS >= nbytes:
                copy = self._bring_whole(tensor, home, where)
            else:
                key = (where, tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype)
                copy = copies.get(key)
                if copy is None:
                    copy = copies[key] = Copy(None)
                    if self.rank == home.owner:
                        self.links.send(tensor, where)
                    elif self.rank == where:
                        copy.message = self.links.expect(tensor, home.owner)
        if home.uses is not None and where in home.uses:
            home.uses[where] -= 1
            if home.uses[where] == 0:
                _drop(copies, where)
        return copy

    @contextlib.contextmanager
    def lent(self, tensor: torch.Tensor, where: int) -> Iterator[torch.Tensor | None]:
        """The values of a tensor on a rank that has not got it, for as long; None on the others."""
        home = home_of(tensor)
        assert home is not None
        copy = self._bring(tensor, home, where)
        try:
            yield copy.of(tensor) if self.rank == where else None
        finally:
            if home.copies is not None:
                _drop(home.copies, where)

    def _bring_whole(self, tensor: torch.Tensor, home: Home, where: int) -> Copy:
        """Sends all of the storage that a tensor lies in; its other views find it there."""
        copy = Copy(None)
        if self.rank == home.owner:
            self.links.send(image_of(tensor.untyped_storage()), where)
        elif self.rank == where:
            copy.whole = True
            copy.message = self.links.expect(image_of(tensor.untyped_storage()), home.owner)
        assert home.copies is not None
        home.copies[where] = copy
        return copy

    def _bring_home(self, call: Call, given: dict[int, torch.Tensor], here: bool) -> None:
        """What was written has a home now, and is there."""
        for tensor in call.written:
            if tensor.layout != torch.strided:
                continue
            home = home_of(tensor)
            if home is None:
                settle(tensor, Home(call.where))
            elif home.owner != call.where:
                if here:
                    self.links.send(given[id(tensor)], home.owner)
                elif self.rank == home.owner:
                    tensor.copy_(self.links.expect(tensor, call.where).wait())
                home.copies = None

    def _rewrite(
        self, call: Call, given: dict[int, torch.Tensor], before: list[tuple[torch.Tensor, Any]]
    ) -> None:
        """Sparse tensors that were written may consist of others now, on all ranks."""
        for tensor, places in before:
            known = None
            if self.rank == call.where:
                new = given.get(id(tensor), tensor)
                if [sparse.place_of(part) for part in parts_of(new)] != places:
                    new = joined(new, [part.clone() for part in parts_of(new)])
                    known = results.describe(call, new)
            known = self.links.broadcast(known, call.where)
            if known is None:
                continue
            if self.rank != call.where:
                new = results.make(call, known, call.where)
            else:
                results.settle_all(call, new)
            tensor.data = new

    def _results_of(self, call: Call, kind: Kind, out: Any, here: bool) -> Any:
        """The results, hollow on all ranks but one, which says of what shapes they are."""
        unseen = _READ_UNSEEN.get(call.facts.name)
        value = None
        if unseen is not None:
            value = self.links.broadcast(out[unseen] if here else None, call.where)
        known = kind.results
        if known is None:
            out = sparse.apart(call, out) if here else None
            own = results.describe(call, out) if here else None
            known = self.links.broadcast(own, call.where)
            if known[0] != "sparse":  # how many values those have can change
                kind.results = known
                kind.nbytes = results.new_bytes(known)
        elif here and not results.fits(out, kind.results):
            raise Desync(
                f"{call.facts.func} gave {results.describe(call, out)} for inputs that gave "
                f"{known} before; please report it"
            )
        result = out if here else results.make(call, known, call.where)
        if unseen is not None:
            result = tuple(value if n == unseen else one for n, one in enumerate(result))
        if here:
            results.settle_all(call, result, unseen)
        if call.key is not None and call.key in self._tables.readers:
            self._announce(call.key, call.where, result)
        return result

    def _announce(self, key: Key, owner: int, result: Any) -> None:
        """Sends results to the ranks that the plan has readers on."""
        at_once = self._tables.at_once.get(key, {})
        made = [result] if isinstance(result, torch.Tensor) else result
        for number, uses in self._tables.readers[key].items():
            home = home_of(made[number])
            if home is None or home.owner != owner:
                continue
            home.uses = dict(uses)
            home.copies = home.copies or {}
            for where in at_once.get(number, ()):
                if where != owner and where not in home.copies:
                    self._bring_whole(made[number], home, where)


def _places(call: Call) -> list[tuple[torch.Tensor, Any]]:
    """The sparse tensors that a call is about to write, and where their parts lie."""
    return [
        (tensor, [sparse.place_of(part) for part in parts_of(tensor)])
        for tensor in call.written
        if tensor.layout != torch.strided
    ]


def _drop(copies: dict[Any, Any], where: int) -> None:
    """Forgets what a rank received."""
    for key in [k for k in copies if k == where or (type(k) is tuple and k[0] == where)]:
        del copies[key]

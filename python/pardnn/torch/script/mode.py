"""The dispatch mode that every op of the script passes through, and the rules of where it runs.

- What writes runs where the tensor it writes lives.
- In backward: where the op of the forward pass ran.
- Else where the plan says, if it knows the op.
- Else where the parameter lives, else where the largest input does.

Every rank follows the same rules on the same facts, so all agree on where an op runs.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from pardnn.torch.script import compat
from pardnn.torch.script.calls import Calls, Key
from pardnn.torch.script.facts import Facts, facts_of
from pardnn.torch.script.hollow import Home, home_of, homes_of

# Of so many nodes of backward it is known where they run before a step is over.
_MOST_NODES = 1 << 20


class Placing(compat.TorchDispatchMode):
    """Decides for every op where it runs; subclasses say what that means.

    ``chooser(count)``, if given, decides for every op that is free to go anywhere instead of the
    plan and the inputs: what a test needs.
    """

    def __init__(self, calls: Calls, chooser: Callable[[int], int] | None = None) -> None:
        super().__init__()
        self.calls = calls
        self.ops = 0
        self._chooser = chooser
        self._of_node: dict[int, tuple[int, Key | None]] = {}
        self._old = self._new = 0
        self._most = _MOST_NODES
        self._node = -1
        self._counts: dict[str, int] = {}

    @abc.abstractmethod
    def compute(self, call: Call) -> Any:
        """Runs one op that has to do with tensors that have a home."""

    @abc.abstractmethod
    def planned(self, key: Key) -> int | None:
        """Where the plan has this op."""

    def replicated(self, call: Call) -> Any:
        """Runs one op on tensors without a home, which every rank does."""
        return call.facts.call(*call.args, **call.kwargs)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        facts = facts_of(func)
        if facts.composite and torch.is_inference_mode_enabled():
            # They arrive whole there, and some that are called views read.
            with self:
                return func.decompose(*args, **kwargs)
        if facts.view:
            return facts.call(*args, **kwargs)
        call = Call(facts, args, kwargs)
        if not any(call.homes):
            return self.replicated(call)
        if facts.by_list:
            owners = {None if home is None else home.owner for home in call.homes}
            if len(owners) > 1 and call.length() > 1:
                return _joined([self._again(part) for part in call.one_by_one()])
        return self._placed(call)

    def _placed(self, call: Call) -> Any:
        self.ops += 1
        call.where = self.choose(call)
        return self.compute(call)

    def _again(self, call: Call) -> Any:
        return self._placed(call) if any(call.homes) else self.replicated(call)

    def choose(self, call: Call) -> int:
        """Where the op runs."""
        for tensor in call.written:
            home = home_of(tensor)
            if home is not None:
                return self._noted(call, home.owner)
        node = compat.current_node()
        if self._chooser is not None and not call.facts.gives_value:
            return self._chooser(self.ops)
        if node is not None and not self.calls.recomputes():
            where = self._in_backward(call, node)
        else:
            call.key = self.calls.key(call.facts.name, call.homes)
            planned = None if call.key is None else self.planned(call.key)
            where = _largest(call) if planned is None else planned
        return self._noted(call, where)

    def _in_backward(self, call: Call, node: Any) -> int:
        """Where an op of backward runs; its key is that of the op of the forward pass, and more."""
        number = node._sequence_nr()
        if number != self._node:
            self._node = number
            self._counts = {}
        known = self._of_node.get(number)
        if known is None:
            variable = getattr(node, "variable", None)  # of a node that adds up a gradient
            home = None if variable is None else home_of(variable)
            if home is not None and home.parameter is not None:
                call.key = "gradient", home.parameter, call.facts.name
            return _largest(call)
        where, key = known
        if key is not None:
            nth = self._counts.get(call.facts.name, 0)
            self._counts[call.facts.name] = nth + 1
            call.key = "backward", key, call.facts.name, nth
        return where

    def _noted(self, call: Call, where: int) -> int:
        """Remembers where backward of this op has to run."""
        if torch.is_grad_enabled() and any([tensor.requires_grad for tensor in call.tensors]):
            # The node was made just before; several ops of one node go where the first went.
            self._of_node.setdefault(compat.next_sequence_number() - 1, (where, call.key))
            if len(self._of_node) > self._most:  # the script trains nothing, and forgot to say so
                self.forget()
                self._most = max(_MOST_NODES, 2 * len(self._of_node))
        return where

    def forget(self) -> None:
        """A step is over: backward of what came before the one before follows its inputs."""
        for number in [n for n in self._of_node if n < self._old]:
            del self._of_node[number]
        self._old, self._new = self._new, compat.next_sequence_number()


class Call:
    """One call of an op: its tensors, their homes, which are written, and where it runs.

    ``has_sparse``: some of the tensors are sparse.
    """

    __slots__ = (
        *("args", "facts", "has_sparse", "homes", "key", "kwargs", "tensors", "where", "written"),
    )

    def __init__(self, facts: Facts, args: Any, kwargs: dict[str, Any]) -> None:
        self.facts = facts
        self.args = args
        self.kwargs = kwargs
        tensors: list[torch.Tensor] = []
        collect(args, tensors)
        if kwargs:
            collect(kwargs.values(), tensors)
        self.tensors = tensors
        self.has_sparse = False
        self.homes: list[Home | None]
        try:
            # home_of() of each, without a call.
            self.homes = [getattr(tensor.untyped_storage(), "home", None) for tensor in tensors]
        except NotImplementedError:
            self.has_sparse = True
            self.homes = [home_of(tensor) for tensor in tensors]
        self.written = facts.written_tensors(args, kwargs) if facts.written else []
        self.where = -1
        self.key: Key | None = None

    def length(self) -> int:
        """How many tensors its first list of tensors has, 1 without one."""
        lists = [a for a in self.args if isinstance(a, (list, tuple)) and _holds_tensors(a)]
        return len(lists[0]) if lists else 1

    def one_by_one(self) -> Iterator[Call]:
        """The same for each position of its lists; what one changes, the next one finds."""
        count = self.length()

        def at(argument: Any, position: int) -> Any:
            if isinstance(argument, (list, tuple)) and len(argument) == count:
                return [argument[position]]
            return argument

        for n in range(count):
            args = tuple(at(a, n) for a in self.args)
            kwargs = {name: at(a, n) for name, a in self.kwargs.items()}
            yield Call(self.facts, args, kwargs)

    def run(self, given: dict[int, torch.Tensor]) -> Any:
        """Runs the op with other tensors in the place of some, by ``id``."""
        if not given:
            return self.facts.call(*self.args, **self.kwargs)
        kwargs = {name: _replaced(value, given) for name, value in self.kwargs.items()}
        return self.facts.call(*_replaced(self.args, given), **kwargs)

    def written_homes(self) -> list[Home | None]:
        """The homes of what it writes."""
        if self.has_sparse:
            return [home for tensor in self.written for home in homes_of(tensor)]
        return [home_of(tensor) for tensor in self.written]

    def written_result(self) -> Any:
        """What an op that only writes returns: what it wrote."""
        if self.facts.returns == 0:
            return None
        if self.facts.returns_list:
            return self.written
        return self.written[0] if self.facts.returns == 1 else tuple(self.written)


def _largest(call: Call) -> int:
    """Where the largest parameter among the inputs lives, else the largest input."""
    best: tuple[bool, int, int] | None = None
    where = 0
    for position, (tensor, home) in enumerate(zip(call.tensors, call.homes, strict=True)):
        if home is None:
            continue
        rank = (home.parameter is not None, tensor.numel(), -position)
        if best is None or rank > best:
            best, where = rank, home.owner
    return where


# What a value of a type is: telling a tensor from anything else takes torch's own code a while.
OTHER, TENSOR, SEQUENCE = 0, 1, 2
sorts: dict[type, int] = {torch.Tensor: TENSOR, list: SEQUENCE, tuple: SEQUENCE}


def sort_of(value: Any) -> int:
    """Whether a value is a tensor, a list of values or something else; ``sorts`` knows then."""
    sort = sorts[type(value)] = TENSOR if isinstance(value, torch.Tensor) else OTHER
    return sort


def collect(values: Any, found: list[torch.Tensor]) -> None:
    """Appends the tensors among the values, and those in lists."""
    for value in values:
        sort = sorts.get(type(value))
        if sort is None:
            sort = sort_of(value)
        if sort == TENSOR:
            found.append(value)
        elif sort == SEQUENCE:
            collect(value, found)


def _holds_tensors(values: Sequence[Any]) -> bool:
    return bool(values) and isinstance(values[0], torch.Tensor)


def _replaced(value: Any, given: dict[int, torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        return given.get(id(value), value)
    if type(value) in (list, tuple) and value:
        return type(value)(_replaced(one, given) for one in value)
    return value


def _joined(results: list[Any]) -> Any:
    return None if results[0] is None else [result[0] for result in results]

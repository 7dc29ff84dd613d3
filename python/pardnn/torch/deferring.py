"""Models that never exist whole: the constructor's ops are noted, and done again where needed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from pardnn.errors import Refusal
from pardnn.torch.calls import OpName


@dataclass(frozen=True)
class _Ref:
    """A tensor that an earlier call answered, or one that was there before."""

    number: int


@dataclass
class Recipe:
    """The calls of a constructor, in order, and which tensor of theirs each name is.

    ``calls``: op, arguments, numbers of what it answers. ``given``: tensors the calls did not make.
    ``number_of``: of each parameter and buffer. ``generator``: the state of the generator before.
    """

    calls: list[tuple[OpName, Any, tuple[int | None, ...]]]
    given: dict[int, torch.Tensor]
    number_of: dict[str, int]
    generator: torch.Tensor

    def make(self, wanted: Callable[[str], bool]) -> Iterator[tuple[str, torch.Tensor]]:
        """The tensors of the names that are wanted, bit for bit those of the constructor.

        All random numbers are drawn; every tensor is forgotten behind its last use.
        """
        names: dict[int, list[str]] = {}
        for name, number in self.number_of.items():
            if wanted(name):
                names.setdefault(number, []).append(name)
        last: dict[int, int] = {}
        for at, (_, arguments, answers) in enumerate(self.calls):
            for leaf in (*pytree.tree_leaves(arguments), *map(_Ref, filter(None, answers))):
                if isinstance(leaf, _Ref):
                    last[leaf.number] = at
        held: dict[int, torch.Tensor] = dict(self.given)
        torch.set_rng_state(self.generator)
        for at, (op, (args, kwargs), answers) in enumerate(self.calls):

            def real(leaf: Any) -> Any:
                return held[leaf.number] if isinstance(leaf, _Ref) else leaf

            with torch.no_grad():
                answer = op.op()(*pytree.tree_map(real, args), **pytree.tree_map(real, kwargs))
            for made, tensor in zip(answers, pytree.tree_leaves(answer), strict=True):
                if made is not None:
                    held[made] = tensor
            used = [
                leaf.number for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, _Ref)
            ]
            for number in {*used, *(n for n in answers if n is not None)}:
                if last[number] == at and number not in names:
                    held.pop(number, None)
        for number, all_names in names.items():
            for name in all_names:
                yield name, held[number]


class _Recorder(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[OpName, Any, tuple[int | None, ...]]] = []
        self.given: dict[int, torch.Tensor] = {}
        self.generator = torch.get_rng_state()
        self._number_of: dict[int, int] = {}  # of tensors, by identity
        self._versions: dict[int, int] = {}
        self._alive: list[
            torch.Tensor
        ] = []  # an identity means something only as long as its tensor lives

    def number(self, tensor: torch.Tensor) -> int | None:
        return self._number_of.get(id(tensor))

    def has_changed(self, tensor: torch.Tensor) -> bool:
        """Whether something wrote to it after the end."""
        return tensor._version != self._versions[id(tensor)]

    def finish(self) -> None:
        """Leaves the generator as the constructor would have; nothing is kept of it."""
        self._versions = {id(tensor): tensor._version for tensor in self._alive}
        for _ in Recipe(self.calls, self.given, {}, self.generator).make(lambda name: False):
            pass

    def _new(self, tensor: torch.Tensor) -> int:
        known = self._number_of.get(id(tensor))
        if known is not None:
            return known
        number = len(self._number_of) + 1
        self._number_of[id(tensor)] = number
        self._alive.append(tensor)
        return number

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        answer = func(*args, **kwargs)

        def noted(leaf: Any) -> Any:
            if not isinstance(leaf, torch.Tensor):
                return leaf
            if id(leaf) not in self._number_of:
                with _disable_current_modes():  # it is a real one
                    self.given[self._new(leaf)] = leaf.detach()
            return _Ref(self._number_of[id(leaf)])

        arguments = pytree.tree_map(noted, (args, kwargs))
        answers = tuple(
            self._new(leaf) if isinstance(leaf, torch.Tensor) else None
            for leaf in pytree.tree_leaves(answer)
        )
        self.calls.append((OpName.of(func), arguments, answers))
        return answer


class _Mode(FakeTensorMode):
    """Tensors that are copied with their module stay tensors of this mode."""

    def __init__(self, recorder: _Recorder) -> None:
        super().__init__()
        self.recorder = recorder

    def __deepcopy__(self, memo: Any) -> _Mode:
        return self


@contextlib.contextmanager
def deferred() -> Iterator[None]:
    """A model built inside has shapes and no memory; `compile` makes its tensors where they train.

        with pardnn.torch.deferred():
            model = Huge()

    What the constructor draws at random is what an ordinary one would have drawn, and the default
    generator is left as that would have left it. All that initialises parameters belongs inside.
    """
    recorder = _Recorder()
    with _Mode(recorder), recorder:
        yield
    recorder.finish()


def recipe_of(model: nn.Module) -> Recipe | None:
    """How to make the tensors of a model that was built inside of deferred(); None for others.

    Raises Refusal where only a part of the model was, or where it was changed afterwards.
    """
    tensors = [
        *model.named_parameters(remove_duplicate=False),
        *model.named_buffers(remove_duplicate=False),
    ]
    modes = {getattr(tensor, "fake_mode", None) for _, tensor in tensors}
    if modes <= {None}:
        return None
    (mode, *others) = modes
    if others or not isinstance(mode, _Mode):
        raise Refusal(
            "only a part of the model was built inside of deferred(); build all of it there"
        )
    recorder, number_of = mode.recorder, {}
    for name, tensor in tensors:
        number = recorder.number(tensor)
        if number is None or recorder.has_changed(tensor):
            raise Refusal(
                f"{name} was made or initialised after the model had left deferred(); do it inside"
            )
        number_of[name] = number
    return Recipe(recorder.calls, recorder.given, number_of, recorder.generator)

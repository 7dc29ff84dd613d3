"""Files are written once, by rank 0; the other ranks only do as if.

A rank that reads a file the run has written waits for rank 0, so that it is there. What rank 0 is
refused, all ranks are refused. Names of temporary files are the same on all ranks.
"""

from __future__ import annotations

import builtins
import functools
import io
import os
import random
import shutil
import tempfile
import threading
from collections.abc import Callable
from typing import Any

_WRITING = frozenset("wax+")
# What changes folders, by module: the other ranks skip these.
_CHANGES: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (os, ("mkdir", "makedirs", "remove", "unlink", "rmdir", "rename", "replace", "symlink")),
    (os, ("removedirs", "truncate", "utime", "chmod")),
    (shutil, ("rmtree", "move", "copy", "copy2", "copyfile", "copytree")),
)
_LISTS = ("listdir", "scandir")
# Of these, those after which a file is not there as it was: rank 0 waits until all have come here.
_ENDS = frozenset(
    {"remove", "unlink", "rmdir", "rename", "replace", "removedirs", "truncate", "rmtree", "move"}
)
Agree = Callable[[Callable[[], Any]], Any]


class Files:
    """The files of one rank.

    ``agree(ask)``: what ``ask`` gives on rank 0, on every rank. ``meet``: rank 0 waits there for
    all others. ``own``: a folder of this process alone, whose files are its own.
    """

    def __init__(
        self, rank: int, agree: Agree, meet: Callable[[], None], seed: int, own: str
    ) -> None:
        self._own = own
        self._meet = meet
        self._rank = rank
        self._agree = agree
        self._written: set[str] = set()
        self._open = builtins.open
        self._os_open = os.open
        self._stat = os.stat
        self._seed = seed
        self._changing = 0

    def install(self) -> None:
        """From now on the script's files are treated so."""
        builtins.open = io.open = self.open
        os.open = self.os_open
        os.stat = self.stat
        names = tempfile._RandomNameSequence()  # type: ignore[attr-defined]
        names._rng = random.Random(self._seed)
        names._rng_pid = os.getpid()
        tempfile._name_sequence = names  # type: ignore[attr-defined]
        for module, changes in _CHANGES:
            for name in changes:
                setattr(module, name, self._change(getattr(module, name)))
        for name in _LISTS:
            setattr(os, name, self._list(getattr(os, name)))
        os.register_at_fork(after_in_child=self.alone)

    def open(self, file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        """``open`` of the script."""
        if not isinstance(file, (str, bytes, os.PathLike)) or self._is_apart(file):
            return self._open(file, mode, *args, **kwargs)
        if _WRITING & set(mode):
            self._before_writing(file)
            if self._rank:
                self._by_first(None)
                kwargs.pop("opener", None)
                return self._open(os.devnull, mode.replace("x", "w"), *args, **kwargs)
            return self._by_first(lambda: self._open(file, mode, *args, **kwargs))
        if _absolute(file) in self._written and self._together():
            self._agree(lambda: None)
        return self._open(file, mode, *args, **kwargs)

    def os_open(self, path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
        """``os.open`` of the script, which temporary files use, too."""
        if flags & (os.O_WRONLY | os.O_RDWR) and not self._is_apart(path):
            self._before_writing(path)
            if self._rank:
                self._by_first(None)
                return self._os_open(os.devnull, os.O_RDWR)
            return self._by_first(lambda: self._os_open(path, flags, *args, **kwargs))
        return self._os_open(path, flags, *args, **kwargs)

    def stat(self, path: Any, *args: Any, **kwargs: Any) -> os.stat_result:
        """``os.stat`` of the script: of what the run has written, that which rank 0 finds."""
        if isinstance(path, int) or _absolute(path) not in self._written or not self._together():
            return self._stat(path, *args, **kwargs)

        found: list[os.stat_result] = []

        def ask() -> Any:
            try:
                found.append(self._stat(path, *args, **kwargs))
            except OSError as error:
                return error
            return tuple(found[0])

        answer = self._agree(ask)
        if isinstance(answer, OSError):
            raise answer
        return found[0] if found else os.stat_result(answer)

    def _by_first(self, do: Callable[[], Any] | None) -> Any:
        """What ``do``, of rank 0, gives; its OSError is raised on all ranks."""
        if not self._together():
            return do() if do is not None else None
        done: list[Any] = []

        def attempt() -> OSError | None:
            assert do is not None
            try:
                done.append(do())
            except OSError as error:
                return error
            return None

        refused = self._agree(attempt)
        if refused is not None:
            raise refused
        return done[0] if done else None

    def _together(self) -> bool:
        """Whether the other ranks do this, too; threads of the script come to it at any time."""
        return not self._changing and threading.current_thread() is threading.main_thread()

    def _is_apart(self, path: Any) -> bool:
        """Whether a file is a device, or this process's own."""
        return _absolute(path).startswith(("/dev/", self._own))

    def _before_writing(self, file: Any) -> None:
        path = _absolute(file)
        if path in self._written and self._together():
            self._meet()  # somebody may still be reading what was there
        self._written.add(path)

    def _change(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """A change of folders, which rank 0 makes; all hear of its error."""

        @functools.wraps(original)
        def change(*args: Any, **kwargs: Any) -> Any:
            paths = [_absolute(a) for a in args if isinstance(a, (str, bytes, os.PathLike))]
            if any(path.startswith(self._own) for path in paths):
                return original(*args, **kwargs)
            self._written.update(paths)
            if original.__name__ in _ENDS and self._together():
                self._meet()
            return self._by_first(None if self._rank else lambda: alone(*args, **kwargs))

        def alone(*args: Any, **kwargs: Any) -> Any:
            self._changing += 1  # what it looks at is no concern of the others
            try:
                return original(*args, **kwargs)
            finally:
                self._changing -= 1

        return change

    def _list(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """A look into a folder, which waits for rank 0 if the run has written there."""

        @functools.wraps(original)
        def look(path: Any = ".", *args: Any) -> Any:
            if not isinstance(path, int) and self._together():
                folder = _absolute(path)
                if any(os.path.dirname(w) == folder for w in self._written):  # noqa: PTH120
                    self._agree(lambda: None)
            return original(path, *args)

        return look

    def alone(self) -> None:
        """From now on nobody waits: in a process that the script started, and after its end."""
        self._agree = lambda ask: ask()
        self._meet = lambda: None


def _absolute(path: Any) -> str:
    return os.path.abspath(os.fsdecode(os.fspath(path)))  # noqa: PTH100  must not ask for a stat

"""A look ahead leaves no traces: what the script writes goes to a folder that is dropped."""

from __future__ import annotations

import builtins
import io
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

_WRITING = frozenset("wax+")
_DROPPED = ("mkdir", "makedirs", "remove", "unlink", "rmdir", "rename", "replace", "symlink")
_DROPPED_OF_SHUTIL = ("rmtree", "move", "copy", "copy2", "copyfile", "copytree")


def install(folder: Path) -> Callable[[], None]:
    """From now on, files that are opened for writing lie in `folder`; folders are not changed.

    Returns what undoes that.
    """
    opened, stat, os_open = builtins.open, os.stat, os.open
    files: dict[str, str] = {}

    def scratch_open(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        if not isinstance(file, (str, bytes, os.PathLike)):
            return opened(file, mode, *args, **kwargs)
        path = _absolute(file)
        if _WRITING & set(mode) and not path.startswith("/dev/"):
            if path not in files:
                files[path] = str(folder / f"written-{len(files)}")
                if set("a+") & set(mode) and Path(path).is_file():
                    Path(files[path]).write_bytes(opened(path, "rb").read())
            kwargs.pop("opener", None)
        return opened(files.get(path, file), mode.replace("x", "w"), *args, **kwargs)

    def scratch_stat(path: Any, *args: Any, **kwargs: Any) -> os.stat_result:
        if not isinstance(path, int):
            path = files.get(_absolute(path), path)
        return stat(path, *args, **kwargs)

    def scratch_os_open(path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR) and not _absolute(path).startswith("/dev/"):
            path = files.setdefault(_absolute(path), str(folder / f"written-{len(files)}"))
        return os_open(path, flags, *args, **kwargs)

    replaced: list[tuple[Any, str, Any]] = [
        (os, "open", scratch_os_open),
        (os, "stat", scratch_stat),
        (builtins, "open", scratch_open),
        (io, "open", scratch_open),
        *((os, name, _dropped(getattr(os, name), folder)) for name in _DROPPED),
        *((shutil, name, _dropped(getattr(shutil, name), folder)) for name in _DROPPED_OF_SHUTIL),
    ]
    originals = [(module, name, getattr(module, name)) for module, name, _ in replaced]
    for module, name, new in replaced:
        setattr(module, name, new)

    def undo() -> None:
        for module, name, old in originals:
            setattr(module, name, old)

    return undo


def _dropped(original: Callable[..., Any], own: Path) -> Callable[..., Any]:
    """Does nothing, but to files of ``own``."""

    def drop(path: Any = "", *args: Any, **kwargs: Any) -> Any:
        if isinstance(path, (str, bytes, os.PathLike)) and _absolute(path).startswith(str(own)):
            return original(path, *args, **kwargs)
        return None

    return drop


def _absolute(path: Any) -> str:
    return os.path.abspath(os.fsdecode(os.fspath(path)))  # noqa: PTH100  must not ask for a stat

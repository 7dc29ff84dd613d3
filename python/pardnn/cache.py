"""Where pardnn keeps what it need not find out twice: `$XDG_CACHE_HOME/pardnn` or
`~/.cache/pardnn`.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import tempfile
from pathlib import Path

_LOG = logging.getLogger(__name__)
_said: set[str] = set()


def folder(kind: str) -> Path | None:
    """The folder for one kind of file, made if need be; None, and one warning, where nothing can be
    written.
    """
    base = os.environ.get("XDG_CACHE_HOME")
    root = (Path(base) if base else Path.home() / ".cache") / "pardnn"
    found = root / kind
    try:
        found.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=found):
            return found
    except OSError as error:
        if str(root) not in _said:
            _said.add(str(root))
            _LOG.warning(
                "%s cannot be written (%s): nothing is remembered for the next run",
                root,
                error.strerror,
            )
        return None


def key(*parts: str) -> str:
    """A file name that stands for all of `parts`."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(str(len(part)).encode() + b":" + part.encode())
    return digest.hexdigest()[:40]


def write(path: Path, text: str) -> None:
    """Write a whole file or none: under a temporary name first. A full disk costs a warning, not
    the run.
    """
    temporary = None
    try:
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
            temporary = Path(file.name)
            file.write(text)
        temporary.replace(path)
    except OSError as error:
        _LOG.warning("%s was not written: %s", path, error.strerror)
        if temporary is not None:
            with contextlib.suppress(OSError):
                temporary.unlink()

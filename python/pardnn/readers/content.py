"""The bytes of a file: unpacked, bounded, and decoded at most once."""

from __future__ import annotations

import io
import json
import tarfile
import zlib
from functools import cached_property
from pathlib import Path
from typing import Any

from pardnn.readers.errors import ReadError, quoted

_GZIP = b"\x1f\x8b"
_PIECE = 1 << 20
# A graph shrinks to a tenth, a trace perhaps to a hundredth of its size.
_ALWAYS_BYTES = 1 << 26
_MOST_RATIO = 1000
_HEAD_BYTES = 4096


class Content:
    """What a file holds once gzip and tar around it are opened.

    ``path``: the file as it was named. ``data``: its bytes. ``name``: the file, and the member of
    the archive where there is one, for messages.
    """

    def __init__(self, path: Path, data: bytes, name: str | None = None) -> None:
        self.path = path
        self.data = data
        self.name = name or str(path)

    @classmethod
    def of_file(cls, path: Path, member: str | None = None) -> Content:
        """Opens a file. Raises ReadError; OSError where the system refuses."""
        if path.is_dir():
            raise ReadError(str(path), "a folder", "a file")
        data = path.read_bytes()
        packed_bytes = len(data)
        if data.startswith(_GZIP):
            data = _gunzip(data, str(path))
        if _is_tar(data):
            return _member(path, data, member, packed_bytes)
        if member is not None:
            raise ReadError(f"{path}: --member", "no archive", "a tar file")
        return cls(path, data)

    @cached_property
    def head(self) -> str:
        """The beginning as text; bytes that are no UTF-8 are replaced."""
        return self.data[:_HEAD_BYTES].decode("utf-8", "replace").removeprefix("\ufeff")

    @cached_property
    def is_text(self) -> bool:
        """Whether it begins as text does: without control characters."""
        begin = self.data[:_HEAD_BYTES]
        return not any(byte < 32 and byte not in b"\t\n\r\f\v" for byte in begin)

    @cached_property
    def text(self) -> str:
        """All of it as text. Raises ReadError where it is no UTF-8."""
        try:
            return self.data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = self.data.count(b"\n", 0, error.start) + 1
            found = f"the byte 0x{self.data[error.start]:02X}"
            raise ReadError(f"{self.name}:{line}", found, "UTF-8 text") from None

    @cached_property
    def looks_like_json(self) -> bool:
        """Whether it begins with an object or a list."""
        return self.is_text and self.head.lstrip()[:1] in ("{", "[")

    @cached_property
    def json(self) -> Any:
        """The JSON value, or None where it does not begin as JSON does. Raises ReadError."""
        if not self.looks_like_json:
            return None
        try:
            return json.loads(self.text)
        except json.JSONDecodeError as error:
            where = f"{self.name}:{error.lineno}:{error.colno}"
            rest = error.doc[error.pos : error.pos + 20]
            found = quoted(rest) if rest else "the end of the file"
            raise ReadError(where, found, f"JSON ({error.msg.lower()})") from None
        except RecursionError:
            raise ReadError(self.name, "JSON nested too deeply", "at most 900 levels") from None
        except ValueError as error:  # an integer of more digits than Python takes
            raise ReadError(self.name, str(error).split(";")[0].lower(), "JSON") from None

    def object(self, *members: str) -> dict[str, Any] | None:
        """The JSON object at the top if it has all these members, else None."""
        found = self.json
        if isinstance(found, dict) and all(member in found for member in members):
            return found
        return None


def _gunzip(data: bytes, name: str) -> bytes:
    most_bytes = max(_ALWAYS_BYTES, _MOST_RATIO * len(data))
    pieces: list[bytes] = []
    total_bytes, rest = 0, data
    while rest:
        if not rest.startswith(_GZIP):
            if rest.strip(b"\0"):
                raise ReadError(name, "bytes behind the end of a gzip file", "a whole gzip file")
            break
        unzip = zlib.decompressobj(wbits=31)
        while not unzip.eof:
            try:
                piece = unzip.decompress(rest, _PIECE)
            except zlib.error as error:
                raise ReadError(name, f"a damaged gzip file ({error})", "a whole one") from None
            rest = unzip.unconsumed_tail
            if not piece and not rest and not unzip.eof:
                raise ReadError(name, "a gzip file that is cut short", "a whole one")
            total_bytes += len(piece)
            if total_bytes > most_bytes:
                found = f"a gzip file of {len(data)} bytes with more than {most_bytes} in it"
                raise ReadError(name, found, "a graph; if it is one, unpack the file before")
            pieces.append(piece)
        rest = unzip.unused_data
    return b"".join(pieces)


def _is_tar(data: bytes) -> bool:
    return data[257:262] == b"ustar"


def _member(path: Path, data: bytes, wanted: str | None, packed_bytes: int) -> Content:
    """The one file of an archive, or the one that was asked for."""
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            # Sparse members may claim any size.
            files = [each for each in archive if each.isreg() and not each.issparse()]
            names = [each.name for each in files]
            chosen = [each for each in files if wanted is None or each.name == wanted]
            if len(chosen) != 1:
                raise ReadError(
                    str(path) if wanted is None else f"{path}: --member {wanted}",
                    f"an archive with the {len(names)} files {quoted(', '.join(names))}",
                    "one of them, named by --member",
                )
            stream = archive.extractfile(chosen[0])
            inside = b"" if stream is None else stream.read()
    except tarfile.TarError as error:
        raise ReadError(str(path), f"a damaged archive ({error})", "a whole tar file") from None
    name = f"{path}:{chosen[0].name}"
    if inside.startswith(_GZIP):
        inside = _gunzip(inside, name)
    return Content(path, inside, name)

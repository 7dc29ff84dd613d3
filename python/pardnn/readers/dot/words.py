"""The words of the DOT language, in one pass: libraries for it take minutes for 40,000 nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from pardnn.readers.errors import ReadError, quoted

_LETTER = r"A-Za-z_\u0080-\U0010ffff"
_NUMBER = r"-?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)"
_WORD = re.compile(
    rf"""
    [ \t\r\f\v\n\ufeff]*
    (?: (?P<id> [{_LETTER}][{_LETTER}0-9]* | {_NUMBER}(?:[eE][-+]?[0-9]+)?(?![{_LETTER}0-9]))
      | (?P<sign> -> | -- | [{{}}\[\];,:=+])
      | (?P<quote> ")
      | (?P<html> <)
      | (?P<comment> //[^\n]* | /\*)
      | (?P<line> \#)
      | (?P<end> \Z)
      | (?P<joined> {_NUMBER}[{_LETTER}0-9]+)
    )
    """,
    re.VERBOSE,
)
# Ends at an unescaped quote.
_QUOTED = re.compile(r'[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_ANGLE = re.compile(r"[<>]")

SIGN, ID, QUOTED = range(3)


class Place(NamedTuple):
    """A place in a text, which costs nothing until it is shown."""

    name: str
    text: str
    at: int

    def __str__(self) -> str:
        return f"{self.name}:{self.text.count(chr(10), 0, self.at) + 1}"


def words(text: str, name: str) -> Iterator[tuple[str, int, int]]:
    """Every word of a DOT text: the word, SIGN, ID or QUOTED, where it begins. Raises ReadError."""
    at = 0
    while True:
        found = _WORD.match(text, at)
        if found is None:
            raise _unknown(text, name, at)
        sort = found.lastgroup
        at = found.end()
        if sort == "id":
            yield found.group(sort), ID, found.start(sort)
        elif sort == "sign":
            yield found.group(sort), SIGN, found.start(sort)
        elif sort == "quote":
            begin, ending = at, _QUOTED.match(text, at)
            at = _end_of(ending.end() if ending else -1, Place(name, text, at), "a string")
            inside = text[begin : at - 1]
            if "\\" in inside:
                inside = re.sub(r"\\\r?\n", "", inside).replace('\\"', '"')
            yield inside, QUOTED, begin
        elif sort == "html":
            begin = at
            at = _end_of(_end_of_html(text, at), Place(name, text, at), "an HTML string")
            yield text[begin : at - 1], QUOTED, begin
        elif sort == "end":
            return
        else:
            at = _behind_comment(text, name, found.start(sort or 0), sort == "line")


def _behind_comment(text: str, name: str, begin: int, is_line: bool) -> int:
    if text.startswith("/*", begin):
        return _end_of(text.find("*/", begin + 2), Place(name, text, begin), "a comment") + 2
    if is_line and begin > 0 and text[begin - 1] != "\n":  # only whole lines, for a preprocessor
        raise _unknown(text, name, begin)
    if text.startswith(("//", "#"), begin):
        end = text.find("\n", begin)
        return len(text) if end < 0 else end
    found = _WORD.match(text, begin)
    word = found.group("joined") if found else ""
    raise ReadError(str(Place(name, text, begin)), quoted(word), "an ID; put it in quotes")


def _unknown(text: str, name: str, at: int) -> ReadError:
    at += len(text[at : at + 1000]) - len(text[at : at + 1000].lstrip())
    return ReadError(str(Place(name, text, at)), quoted(text[at : at + 1]), "a word of DOT")


def _end_of(at: int, place: Place, what: str) -> int:
    if at < 0:
        raise ReadError(str(place), f"{what} without an end", f"{what} that ends")
    return at


def _end_of_html(text: str, at: int) -> int:
    depth = 1
    for found in _ANGLE.finditer(text, at):
        depth += 1 if found.group() == "<" else -1
        if depth == 0:
            return found.end()
    return -1

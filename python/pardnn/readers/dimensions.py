"""Values of dimensions that files state as names or sums and products of names."""

from __future__ import annotations

import re
from collections.abc import Mapping

_TOKEN = re.compile(r"\s*(?:([0-9]{1,18})|(//|[-+*/()]))")
_MOST_TEXT = 1000
_MOST_VALUE = 1 << 62
_MOST_DEPTH = 50


class _UnknownError(Exception):
    """The expression holds something that has no value."""


def evaluate(text: str, values: Mapping[str, int]) -> int | None:
    """The value of a dimension such as ``batch`` or ``16*batch - 1``; None where it has none."""
    if text in values:
        return values[text]
    if len(text) > _MOST_TEXT or not text.strip():
        return None
    try:
        expression = _Expression(text, values)
        found = expression.sum(0)
        expression.end()
    except _UnknownError:
        return None
    return found if 0 <= found < _MOST_VALUE else None


class _Expression:
    def __init__(self, text: str, values: Mapping[str, int]) -> None:
        self._text, self._at = text, 0
        self._values = values
        # Names may hold signs: the longest one that stands somewhere wins.
        self._names = sorted((name for name in values if name in text), key=len, reverse=True)
        self._token: int | str | None = None
        self._advance()

    def end(self) -> None:
        if self._token is not None:
            raise _UnknownError

    def sum(self, depth: int) -> int:
        value = self._product(depth)
        while self._token in ("+", "-"):
            is_plus = self._advance() == "+"
            term = self._product(depth)
            value = value + term if is_plus else value - term
        return self._bounded(value)

    def _product(self, depth: int) -> int:
        value = self._factor(depth)
        while self._token in ("*", "/", "//"):
            sign = self._advance()
            factor = self._factor(depth)
            if sign == "*":
                value = self._bounded(value * factor)
            elif factor == 0 or (sign == "/" and value % factor):
                raise _UnknownError
            else:
                value //= factor
        return value

    def _factor(self, depth: int) -> int:
        token = self._advance()
        if isinstance(token, int):
            return token
        if token != "(" or depth > _MOST_DEPTH:
            raise _UnknownError
        value = self.sum(depth + 1)
        if self._advance() != ")":
            raise _UnknownError
        return value

    def _bounded(self, value: int) -> int:
        if abs(value) >= _MOST_VALUE:
            raise _UnknownError
        return value

    def _advance(self) -> int | str | None:
        """The token that was current; the next one takes its place."""
        before, self._token = self._token, None
        rest = self._text[self._at :].lstrip()
        if not rest:
            self._at = len(self._text)
            return before
        begin = len(self._text) - len(rest)
        for name in self._names:
            if rest.startswith(name):
                self._at, self._token = begin + len(name), self._values[name]
                return before
        found = _TOKEN.match(self._text, self._at)
        if found is None:
            raise _UnknownError
        self._at = found.end()
        self._token = int(found.group(1)) if found.group(1) else found.group(2)
        return before

"""How reading a file of somebody else's ends when it cannot be read."""

from __future__ import annotations

from pardnn.errors import UsageError

_MOST_SHOWN = 60


class ReadError(UsageError):
    """A file, or a place in it, that no graph can be made of.

    ``place``: the file, with ``:line`` or ``: node`` where there is one. ``found``: what stands
    there. ``expected``: what could. The message is one sentence.
    """

    def __init__(self, place: str, found: str, expected: str) -> None:
        super().__init__(one_line(f"{place}: found {found}, expected {expected}"))


def one_line(text: str) -> str:
    """A message whose parts come from a file: without line ends and other control characters."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02X}" for c in text)


def quoted(text: object) -> str:
    """What a file says, fit for a message: in quotes, on one line, not too long."""
    shown = str(text)
    if len(shown) > _MOST_SHOWN:
        shown = shown[:_MOST_SHOWN] + "…"
    return f'"{one_line(shown)}"'

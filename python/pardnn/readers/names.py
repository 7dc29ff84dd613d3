"""Keys out of names: legal, and each given once."""

from __future__ import annotations

import pardnn
from pardnn.readers.values import text_of

_MOST_NAME = 1000


class Keys:
    """Makes keys; a name that was taken gets a number behind it."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._next: dict[str, int] = {}
        self._claimed: dict[object, str] = {}

    def new(self, name: str) -> str:
        """A key like the name that nothing else has."""
        key = pardnn.escape_key(text_of(name)[:_MOST_NAME] or "unnamed")
        if key in self._taken:
            number = self._next.get(key, 2)
            while f"{key}.{number}" in self._taken:
                number += 1
            self._next[key] = number + 1
            key = f"{key}.{number}"
        self._taken.add(key)
        return key

    def claim(self, name: str, owner: object) -> None:
        """Keeps a key for something that comes later; ``owner`` is hashable."""
        self._claimed[owner] = self.new(name)

    def of(self, owner: object) -> str:
        """The key that was claimed."""
        return self._claimed[owner]

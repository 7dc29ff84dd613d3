"""What a reader is asked for, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Protocol

import pardnn
from pardnn.readers.content import Content


@dataclass(frozen=True)
class Options:
    """What files leave open.

    ``dims``: the value of a named dimension, such as ``{"batch": 32}``. ``shapes``: the shape of
    an input by its name. ``trips``: how often loops run that do not say it. ``costs``: a file with
    measured times. ``member``: which file of an archive.
    """

    dims: Mapping[str, int] = field(default_factory=dict)
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    trips: int | None = None
    costs: str | None = None
    member: str | None = None

    def given(self) -> list[str]:
        """Names of the fields that say something."""
        return [each.name for each in fields(self) if getattr(self, each.name) not in (None, {})]


# What the fields are called on the command line.
FLAGS = {"dims": "--dim", "shapes": "--shape", "trips": "--trips", "costs": "--costs"}
FLAGS["member"] = "--member"


@dataclass(frozen=True)
class Reading:
    """A graph that was read.

    ``format``: name of the file's format. ``notes``: sentences about what was assumed and what is
    missing, with the option that supplies it. ``counts``: numbers of the file itself, such as its
    nodes and edges, which may differ from those of the graph made of it.
    """

    graph: pardnn.Graph
    format: str
    notes: Sequence[str] = ()
    counts: Mapping[str, object] = field(default_factory=dict)


class Reader(Protocol):
    """A module that reads one format. ``OPTIONS``: the fields of Options that it uses."""

    NAME: str
    OPTIONS: tuple[str, ...]

    def recognise(self, content: Content) -> bool:
        """Whether the content is of this format; looks at the bytes, not at the file's name."""

    def read(self, content: Content, options: Options) -> Reading:
        """The graph. Raises ReadError."""


def started(
    name: str, costs: str, counts: Mapping[str, object], kinds: Sequence[str] = ("any",)
) -> pardnn.Graph:
    """A graph to which nothing was added, which says where it comes from.

    ``costs``: ``measured``, ``stated`` or ``unknown``. ``counts``: as in Reading.
    """
    about = {"costs": costs, "source": name}
    if counts:
        about["file"] = ", ".join(f"{what} {count}" for what, count in counts.items())
    return pardnn.Graph(kinds, about)

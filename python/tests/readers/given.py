"""What tests of readers share: a file, and what becomes of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import pardnn
from pardnn import readers

MACHINE = pardnn.Machine.uniform(devices=4, memory=1 << 50)


def lines(reading: readers.Reading) -> list[str]:
    """The graph as its file has it, without the lines before its variables and ops."""
    text = reading.graph.text().splitlines()
    return [line for line in text if line.split()[0] in ("var", "op", "group")]


def read_json(
    folder: Path, value: object, options: readers.Options | None = None
) -> readers.Reading:
    file = folder / "graph.json"
    file.write_text(json.dumps(value))
    return readers.read(file, options)


def read_text(folder: Path, text: str, options: readers.Options | None = None) -> readers.Reading:
    file = folder / "graph.txt"
    file.write_text(text)
    return readers.read(file, options)


def is_planned(reading: readers.Reading) -> bool:
    """Whether the graph has a plan on four devices that stands the check."""
    plan = pardnn.plan(reading.graph, MACHINE, steps=0)
    return pardnn.check(reading.graph, plan) == []


def refusal(path: Path, options: readers.Options | None = None) -> str:
    """The one sentence that refuses a file, without the file's path."""
    with pytest.raises((readers.ReadError, pardnn.Error)) as caught:
        readers.read(path, options)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(str(path))
    return message.removeprefix(str(path)).lstrip(": ")

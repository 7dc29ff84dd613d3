"""Files that were damaged at random are refused in one message, or are still such a file."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

import pardnn

HERE = Path(__file__).parent
PIECES = [
    "",
    " ",
    "\n",
    "-",
    "0",
    "99999999999999999999",
    "=",
    ":",
    "^",
    "!",
    "~",
    "*",
    "?",
    "@",
    "%",
]
PIECES += ["%00", '"', "{", "[", "]", "}", ",", "null", "true", "-1", "1e9", "é", "\x00", "\t", "#"]


def damaged(text: str, seed: int) -> str:
    """The text with one to three places cut, doubled or overwritten."""
    chance = random.Random(seed)
    for _ in range(chance.randint(1, 3)):
        begin = chance.randrange(len(text) + 1)
        end = min(len(text), begin + chance.choice([0, 1, 1, 2, 5, 40]))
        piece = chance.choice([*PIECES, text[begin:end] * 2])
        text = text[:begin] + piece + text[end:]
    return text


def problem_of(read: Callable[[str], object], text: str) -> str:
    """What is said of the text; anything but pardnn.Error passes through."""
    try:
        read(text)
    except pardnn.Error as error:
        return str(error)
    return ""


def plan_text(tmp_path: Path) -> str:
    graph = pardnn.Graph.read(str(HERE / "good.pdg"))
    machine = pardnn.Machine.read(str(HERE / "good.json"))
    pardnn.plan(graph, machine).write(str(tmp_path / "good.json"))
    return (tmp_path / "good.json").read_text()


@pytest.mark.parametrize("kind", ["graph", "machine", "plan"])
def test_damaged_files_are_refused_or_read(kind: str, tmp_path: Path) -> None:
    graph = pardnn.Graph.read(str(HERE / "good.pdg"))

    def read_graph(text: str) -> object:
        return pardnn.Graph.parse(text).text()

    def read_plan(text: str) -> object:
        path = tmp_path / "p.json"
        path.write_text(text, errors="surrogateescape")
        plan = pardnn.Plan.read(str(path), graph)
        return (plan.why, pardnn.check(graph, plan))

    text, read = {
        "graph": ((HERE / "good.pdg").read_text(), read_graph),
        "machine": (
            (HERE / "good.json").read_text(),
            lambda text: pardnn.Machine.parse(text).text(),
        ),
        "plan": (plan_text(tmp_path), read_plan),
    }[kind]
    assert problem_of(read, text) == ""
    refused = 0
    for seed in range(2_000):
        message = problem_of(read, damaged(text, seed))
        refused += message != ""
        if message:
            assert "found" in message, (seed, message)
            assert len(message) < 1_000, (seed, message)
            assert "\n" not in message, (seed, message)
    assert refused > 500

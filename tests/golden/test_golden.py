"""What the program prints is what the transcripts beside this file say."""

from pathlib import Path

import pytest

from transcript import commands, compare

TRANSCRIPTS = sorted(Path(__file__).parent.glob("*.txt"))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_the_program_prints_what_the_transcript_says(path: Path, tmp_path: Path) -> None:
    compare(path, tmp_path)


def test_every_command_and_its_help_are_in_a_transcript() -> None:
    text = "".join(path.read_text() for path in TRANSCRIPTS)
    shown = [line for line in commands(text) if line.startswith("$ ")]
    overview = (Path(__file__).parent / "help.txt").read_text().split("\n\n")
    words = [line.split()[0] for line in overview[2].splitlines()]
    assert {"plan", "simulate", "check", "compare", "info", "generate"} <= set(words)
    for word in set(words) - {"run", "convert"}:  # programs of their own
        assert f"$ pardnn {word} --help" in shown, word
        assert any(line.startswith(f"$ pardnn {word} ") and "--help" not in line for line in shown)

"""Bad files are refused in one message: the place, what was found, what was expected."""

from pathlib import Path

import pytest

from transcript import compare

TRANSCRIPTS = sorted(Path(__file__).parent.glob("*.txt"))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_bad_files_are_refused_as_the_transcript_says(path: Path, tmp_path: Path) -> None:
    compare(path, tmp_path)


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_every_refusal_is_one_line_with_status_2(path: Path) -> None:
    """The last two lines of every answer: the message alone on standard error, then the status."""
    answers = path.read_text().split("$ ")[1:]
    for answer in answers:
        command, *lines = [line for line in answer.splitlines() if line and line[0] != "#"]
        if "-o good" in command:
            continue  # makes the file that is spoilt afterwards
        assert len(lines) == 2, command
        assert lines[0].startswith("2| pardnn "), command
        assert "found" in lines[0] or " cannot be " in lines[0], command
        assert lines[1] == "[2]", command

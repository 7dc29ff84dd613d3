"""Transcripts: commands of the program with all that they print, as text files that are compared.

A transcript is a text file. `$ pardnn …` is a command, run in a folder of its own that holds copies
of the files beside the transcript; a few other tools show or change files. The lines after it are
its standard output, those that begin with `2| ` its standard error, and `[N]` its exit status when
that is not 0. Lines that begin with `#` are comments.

`make golden` writes all transcripts anew; read what has changed before committing it.
"""

import os
import shutil
import subprocess
from pathlib import Path

REWRITE = "PARDNN_REWRITE_GOLDEN"
TOOLS = ("pardnn", "cat", "head", "printf", "sed", "cp")


def program() -> str:
    """The program under test: the first `pardnn` of the path."""
    found = shutil.which("pardnn")
    assert found is not None, "no pardnn on the path: run `make python`, or add build/ to PATH"
    return found


def run(command: str, folder: Path) -> str:
    """What `command`, a line for the shell, prints in `folder`, in the form of a transcript."""
    assert command.split()[0] in TOOLS, command
    environment = {
        "PATH": f"{Path(program()).parent}:{os.environ['PATH']}",
        "LC_ALL": "C",
        "HOME": str(folder),
    }
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    text = done.stdout
    if text and not text.endswith("\n"):
        text += "(no end of line)\n"
    text += "".join(f"2| {line}\n" for line in done.stderr.splitlines())
    if done.returncode != 0:
        text += f"[{done.returncode}]\n"
    return text


def replay(transcript: str, folder: Path) -> str:
    """The transcript with the output that its commands have now."""
    text = ""
    for line in transcript.splitlines():
        if line.startswith("#"):
            text += line + "\n"
        elif line.startswith("$ "):
            text += line + "\n" + run(line.removeprefix("$ "), folder)
    return text


def commands(transcript: str) -> list[str]:
    """Its commands and comments, without what was printed, to see that none is lost."""
    return [line for line in transcript.splitlines() if line.startswith(("$ ", "#"))]


def compare(path: Path, folder: Path) -> None:
    """Runs the transcript at `path` in `folder`, and fails where it prints something else.

    Rewrites the file instead where the environment has PARDNN_REWRITE_GOLDEN.
    """
    for beside in path.parent.iterdir():
        if beside.is_file() and beside.suffix in {".pdg", ".json", ".csv", ".gz"}:
            shutil.copy(beside, folder)
    wanted = path.read_text(encoding="utf-8")
    found = replay(wanted, folder)
    assert commands(found) == commands(wanted)
    if os.environ.get(REWRITE):
        path.write_text(found, encoding="utf-8")
    else:
        assert found == wanted, f"{path.name} is out of date; see `make golden`"

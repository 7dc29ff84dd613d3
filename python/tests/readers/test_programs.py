"""The words of the command line: every format goes straight into them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import pardnn
from transcript import program

CONTENT = {
    "nodes": [{"id": 0, "fpgaLatency": 1}, {"id": 1, "fpgaLatency": 2, "size": 5}],
    "edges": [{"sourceId": 0, "destId": 1, "size": 10}],
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "graph.json"
    file.write_text(json.dumps(CONTENT))
    return file


def run(*words: str | Path, status: int = 0) -> subprocess.CompletedProcess[str]:
    command = [program(), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == status, done.stderr
    return done


def test_a_file_of_another_program_is_planned_and_checked(file: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    run("plan", file, "--devices", "4", "-o", plan)
    # Without --memory every device has room for everything: 10 + 5 bytes, and one more.
    devices = json.loads(plan.read_text())["machine"]["devices"]
    assert [device["memory"] for device in devices] == [16] * 4
    run("check", file, plan)
    run("simulate", file, plan)
    run("compare", file, "--devices", "2", "--algorithms", "chunks")
    assert json.loads(run("info", file, "--json").stdout)["ops"] == 2


def test_convert_keeps_the_graph(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "graph.pdg"
    run("convert", file, out)
    assert out.read_text() == run("convert", file, "-").stdout
    assert pardnn.Graph.read(str(out)).op_keys == ["n0", "n1"]


def test_a_file_that_cannot_be_read_is_one_message(file: Path, tmp_path: Path) -> None:
    file.write_text("{}")
    done = run("info", file, status=2)
    assert done.stdout == ""
    assert done.stderr.startswith(f"pardnn read: {file}: found JSON, expected a file of one of")
    assert done.stderr.count("\n") == 1
    out = tmp_path / "out.pdg"
    assert run("convert", file, out, status=2).stderr.startswith(f"pardnn convert: {file}: found")
    assert not out.exists()


def test_a_reader_that_is_not_installed_is_named(file: Path, tmp_path: Path) -> None:
    alone = tmp_path / "pardnn"
    alone.write_bytes(Path(program()).read_bytes())
    alone.chmod(0o755)
    environment = os.environ | {"PATH": "/usr/bin:/bin"}
    command = [str(alone), "info", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 2
    assert done.stderr == (
        f"pardnn info: {file}: found a file that is no .pdg, and no program pardnn-read, expected "
        "the Python package of pardnn, which has it (pip install pardnn)\n"
    )


def test_options_of_readers_make_no_sense_for_a_pdg(tmp_path: Path) -> None:
    file = tmp_path / "graph.pdg"
    file.write_text("pdg 1\nop a T 1\n")
    assert "found --dim=a=3 with a .pdg file" in run("info", file, "--dim", "a=3", status=2).stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--dim", "batch"], '--dim: found "batch", expected NAME=N such as batch=32'),
        (["--dim", "batch=0"], '--dim: found "0", expected a whole number of at least 1'),
        (["--dim", "b=99999999999999999999999"], "--dim: found"),
        (["--shape", "x=1,,2"], '--shape: found "x=1,,2", expected NAME=N,N,...'),
        (["--trips", "-3"], '--trips: found "-3", expected a whole number'),
        (["--member", "x"], "--member: found no archive, expected a tar file"),
    ],
)
def test_a_wrong_option_is_one_message(file: Path, words: list[str], message: str) -> None:
    done = run("info", file, *words, status=2)
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_full_disk_and_a_closed_pipe_end_quietly(file: Path) -> None:
    full = subprocess.run(
        f"pardnn-read {file} > /dev/full", shell=True, capture_output=True, text=True, check=False
    )
    assert (full.returncode, full.stderr) == (
        2,
        "pardnn read: the output: No space left on device\n",
    )
    closed = subprocess.run(
        f"set -o pipefail; pardnn-read {file} | true",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
        executable="/bin/bash",
    )
    assert closed.stderr == ""
    assert closed.returncode in (0, 141)  # true may end before or after


def test_a_file_that_takes_more_memory_than_its_size_allows_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "graph"
    file.write_text("1000000 0\n" + "\n" * 1_000_000)  # a vertex for each byte
    assert run("info", file, status=2).stderr == (
        "pardnn read: reading it takes more memory than a graph of this size may\n"
    )


def test_a_file_that_takes_more_time_than_its_size_allows_is_refused() -> None:
    code = (
        "from pardnn.readers import ReadError, bounds\n"
        "bounds.SECONDS_ALWAYS = 1\n"
        "bounds.limit(0, 'slow.onnx')\n"
        "try:\n"
        "    for _ in iter(int, 1): pass\n"
        "except ReadError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("slow.onnx: found no end after ")

"""What programs read of the program's output: JSON, CSV, traces, exit statuses, other programs."""

import csv
import io
import json
import os
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from transcript import program

ROOT = Path(__file__).resolve().parents[2]
MACHINE = ("--devices", "3", "--memory", "2GiB")


def run(
    *words: str, folder: Path, status: int = 0, path: str | None = None
) -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ) | ({"PATH": path} if path else {})
    done = subprocess.run(
        [program(), *words],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == status, (words, done.stdout, done.stderr)
    return done


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with g.pdg, a transformer's training step."""
    run("generate", "transformer", "--ops", "400", "-o", "g.pdg", folder=tmp_path)
    return tmp_path


def test_the_version_is_the_one_of_the_project(tmp_path: Path) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert run("--version", folder=tmp_path).stdout == f"pardnn {version}\n"


def test_json_of_every_command_is_json(folder: Path) -> None:
    plan = json.loads(
        run("plan", "g.pdg", *MACHINE, "-o", "p.json", "--json", folder=folder).stdout
    )
    simulated = json.loads(run("simulate", "g.pdg", "p.json", "--json", folder=folder).stdout)
    assert simulated == plan
    assert plan["fits"] is True
    assert [row["device"] for row in plan["devices"]] == ["d0", "d1", "d2"]
    assert json.loads((folder / "p.json").read_text())["step_ns"] == plan["step_ns"]
    info = json.loads(run("info", "g.pdg", "--json", folder=folder).stdout)
    assert sum(row["ops"] for row in plan["devices"]) == info["ops"] - info["every_ops"]
    compared = json.loads(
        run("compare", "g.pdg", *MACHINE, "--format", "json", folder=folder).stdout
    )
    assert {row["algorithm"] for row in compared} >= {"auto", "one-device", "chunks", "etf"}
    best = next(row for row in compared if row["algorithm"] == "auto")
    assert best["step_ns"] == plan["step_ns"] == min(row["step_ns"] for row in compared)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cores cannot be chosen here")
@pytest.mark.parametrize("memory", ["2GiB", "680MiB"])
def test_a_plan_is_the_same_on_one_core_and_on_all(folder: Path, memory: str) -> None:
    words = ("plan", "g.pdg", "--devices", "3", "--memory", memory, "--steps", "20", "-o")
    everywhere = os.sched_getaffinity(0)
    run(*words, "all.json", folder=folder)
    os.sched_setaffinity(0, {min(everywhere)})
    try:
        run(*words, "one.json", folder=folder)
    finally:
        os.sched_setaffinity(0, everywhere)
    assert (folder / "one.json").read_bytes() == (folder / "all.json").read_bytes()


def test_csv_has_as_many_fields_in_every_row(folder: Path) -> None:
    text = run("compare", "g.pdg", "g.pdg", *MACHINE, "--format", "csv", folder=folder).stdout
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) >= 10
    for row in rows:
        assert None not in row
        assert int(row["step_ns"]) >= int(row["bound_ns"]) > 0


def spans(trace: dict[str, Any], process: int) -> dict[int, list[tuple[float, float]]]:
    """(start, end) of each span of a process in microseconds, by track, in order."""
    tracks: dict[int, list[tuple[float, float]]] = {}
    for event in trace["traceEvents"]:
        if event["ph"] == "X" and event["pid"] == process:
            assert event["dur"] >= 0
            track = tracks.setdefault(event["tid"], [])
            track.append((event["ts"], event["ts"] + event["dur"]))
    return {track: sorted(times) for track, times in tracks.items()}


def test_a_trace_shows_what_the_plan_predicts(folder: Path) -> None:
    """Ops of a device and transfers of a channel one after another, memory up to the peaks."""
    # Little memory, so that several devices are used.
    memory = ("--devices", "3", "--memory", "700MiB")
    run("plan", "g.pdg", *memory, "-o", "p.json", folder=folder, status=0)
    run("simulate", "g.pdg", "p.json", "--trace", "t.json", folder=folder)
    plan = json.loads((folder / "p.json").read_text())
    trace = json.loads((folder / "t.json").read_text())
    devices, channels = spans(trace, 1), spans(trace, 2)
    assert [len(devices.get(n, [])) for n in range(3)] == [
        len(row["sequence"]) for row in plan["devices"]
    ]
    assert sum(map(len, channels.values())) == len(plan["transfers"]) > 0
    for track in [*devices.values(), *channels.values()]:
        for (_, end), (start, _) in zip(track, track[1:], strict=False):
            assert start >= end - 1e-6
    last = max(end for track in devices.values() for _, end in track)
    assert last == pytest.approx(plan["step_ns"] / 1000, abs=1e-6)
    for row in plan["devices"]:
        counts = [
            (event["ts"], event["args"]["bytes"])
            for event in trace["traceEvents"]
            if event["ph"] == "C" and event["name"] == f"{row['device']} memory"
        ]
        assert max(count for _, count in counts) == row["peak_bytes"]
        first = next(when for when, count in counts if count == row["peak_bytes"])
        assert first == pytest.approx(row["peak_at_ns"] / 1000, abs=1e-6)
        assert counts[-1][1] == 0


def test_a_compressed_graph_is_a_graph(folder: Path) -> None:
    run("generate", "transformer", "--ops", "400", "-o", "g.pdg.gz", folder=folder)
    assert (folder / "g.pdg.gz").read_bytes()[:2] == b"\x1f\x8b"
    # A name says nothing: content decides.
    (folder / "g.pdg.gz").rename(folder / "other.pdg")
    one = run("info", "g.pdg", "--json", folder=folder).stdout
    assert run("info", "other.pdg", "--json", folder=folder).stdout == one


def test_an_output_is_whole_or_not_there(folder: Path) -> None:
    (folder / "there").mkdir()
    done = run("plan", "g.pdg", *MACHINE, "-o", "there", folder=folder, status=2)
    assert "there: cannot be written" in done.stderr
    run("plan", "g.pdg", "--devices", "0", "--memory", "1", "-o", "p.json", folder=folder, status=2)
    assert sorted(path.name for path in folder.iterdir()) == ["g.pdg", "there"]
    assert list((folder / "there").iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_a_full_disk_is_said(folder: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [program(), "info", "g.pdg"],
            cwd=folder,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr == "pardnn: the output could not be written\n"


# --- words that are programs of their own ---


def test_an_unknown_word_is_looked_up_as_a_program(tmp_path: Path) -> None:
    other = tmp_path / "bin" / "pardnn-salute"
    other.parent.mkdir()
    other.write_text('#!/bin/sh\necho "salute: $*"\nexit 7\n')
    path = f"{other.parent}:{os.environ['PATH']}"
    # Not a program yet.
    done = run("salute", folder=tmp_path, path=path, status=2)
    assert "found the word salute" in done.stderr
    other.chmod(0o755)
    done = run("salute", "--help", "a b", folder=tmp_path, path=path, status=7)
    assert done.stdout == "salute: --help a b\n"


def test_a_word_is_no_path(tmp_path: Path) -> None:
    other = tmp_path / "pardnn-x"
    other.mkdir()
    (other / "y").write_text("#!/bin/sh\nexit 0\n")
    (other / "y").chmod(0o755)
    run("x/y", folder=tmp_path, path=f"{tmp_path}:{os.environ['PATH']}", status=2)

"""What the end-to-end tests of TensorFlow share: running a script ordinarily and through pardnn."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from end_to_end.tensorflow import ordinary

MIB = 1 << 20
ROOT = pathlib.Path(__file__).resolve().parents[3]
# Tests share few cores, so a run's limit is what only a hang takes.
TIMEOUT_S = 240.0


@dataclasses.dataclass(frozen=True)
class PlacedRun:
    """What `pardnn run` said and did: its status, its output and the summary of `--json-out`.

    `records` are the JSON objects that the script printed.
    """

    status: int
    stdout: str
    stderr: str
    summary: dict[str, Any]

    @property
    def records(self) -> list[dict[str, Any]]:
        return ordinary.read_records(self.stdout)

    @property
    def training(self) -> dict[str, Any]:
        """The summary's entry of the training step with the most time spent in it."""
        return next(entry for entry in self.summary["functions"] if entry["training"])


def program() -> list[str]:
    """The command that `pardnn run` stands for, of the environment these tests run in."""
    beside = pathlib.Path(sys.executable).parent / "pardnn-run"
    return [str(beside)] if beside.exists() else [sys.executable, "-m", "pardnn.launch"]


def run_placed(
    options: Sequence[str],
    script: pathlib.Path | str,
    args: Sequence[str] = (),
    *,
    folder: pathlib.Path,
    env: Mapping[str, str] | None = None,
    timeout_s: float = TIMEOUT_S,
    interrupt_after_s: float | None = None,
) -> PlacedRun:
    """Runs a script through pardnn in `folder`, as `ordinary.run_command` runs a program."""
    result = folder / "summary.json"
    status, stdout, stderr = ordinary.run_command(
        [*program(), *options, "--json-out", str(result), str(script), *args],
        cwd=folder,
        env=env,
        timeout_s=timeout_s,
        interrupt_after_s=interrupt_after_s,
    )
    summary = json.loads(result.read_text()) if result.exists() else {}
    return PlacedRun(status, stdout, stderr, summary)


@pytest.fixture
def pardnn_run(tmp_path: pathlib.Path) -> Callable[..., PlacedRun]:
    """`pardnn_run(options, script, args)` runs a script through pardnn in a folder of its own."""

    def run(options: Sequence[str], script: pathlib.Path | str, args: Sequence[str] = (), **more):
        return run_placed(options, script, args, folder=tmp_path, **more)

    return run


@pytest.fixture(scope="session")
def ordinary_run() -> Callable[..., ordinary.OrdinaryRun]:
    """`ordinary_run(script, args, ...)` as `ordinary.run`, each distinct call once per session."""
    known: dict[str, ordinary.OrdinaryRun] = {}

    def run(script: pathlib.Path | str, args: Sequence[str] = (), **more):
        key = repr((str(script), list(args), sorted(more.items())))
        if key not in known:
            known[key] = ordinary.run(script, args, **more)
        return known[key]

    return run

"""Every example, unchanged, over three ranks: what it prints is what an ordinary run prints."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Mapping, Sequence

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
EXAMPLES = sorted((ROOT / "examples" / "torch").glob("*.py"))
TIMEOUT_S = 240.0
SOON = ("tied_transformer", "gan_two_optimizers")
PLANNED = [
    pytest.param(path.stem, marks=[] if path.stem in SOON else [pytest.mark.long])
    for path in EXAMPLES
]

SEEDS = ["5", *(pytest.param(seed, marks=pytest.mark.long) for seed in ("1", "2", "3"))]


def finished(
    command: Sequence[str], folder: pathlib.Path, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    one_thread = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **one_thread, **(env or {})},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


def ordinary(script: pathlib.Path, folder: pathlib.Path) -> str:
    folder.mkdir()
    done = finished([sys.executable, str(script)], folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def placed(
    script: pathlib.Path, folder: pathlib.Path, env: Mapping[str, str] | None = None
) -> tuple[str, dict[str, object]]:
    """The script's own output, and the summary of the run."""
    folder.mkdir()
    options = ["--devices", "3", "--json-out", "summary.json"]
    program = [sys.executable, "-m", "pardnn.launch", *options, str(script)]
    done = finished(program, folder, env)
    assert done.returncode == 0, done.stderr
    output, _, _ = done.stdout.partition("pardnn: ")
    return output, json.loads((folder / "summary.json").read_text())


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("script", EXAMPLES, ids=lambda script: script.stem)
def test_every_op_on_a_random_rank_changes_no_bit(
    script: pathlib.Path, seed: str, tmp_path: pathlib.Path
) -> None:
    expected = ordinary(script, tmp_path / "plain")
    output, _ = placed(script, tmp_path / "placed", {"PARDNN_RANDOM_PLACEMENT": seed})
    assert output == expected


@pytest.mark.parametrize("name", PLANNED)
def test_the_planners_placement_changes_no_bit(name: str, tmp_path: pathlib.Path) -> None:
    script = ROOT / "examples" / "torch" / f"{name}.py"
    expected = ordinary(script, tmp_path / "plain")
    output, summary = placed(script, tmp_path / "placed")
    assert output == expected
    assert summary["devices"] == ["rank 0", "rank 1", "rank 2"]


def test_scripts_mention_no_pardnn() -> None:
    assert len(EXAMPLES) >= 10
    assert not [script.name for script in EXAMPLES if "pardnn" in script.read_text()]

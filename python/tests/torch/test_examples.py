"""The examples of the one call run and learn."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "torch_compile"


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.py")))
def test_an_example_runs_and_its_loss_falls(name: str, tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, str(EXAMPLES / name)],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
        cwd=tmp_path,
    )
    assert ended.returncode == 0, ended.stderr
    losses = [float(found) for found in re.findall(r"loss (\d+\.\d+)", ended.stdout)]
    assert losses[-1] < losses[0]

"""Training scripts that people published run unedited over three limited workers.

PARDNN_PUBLIC_SCRIPTS names a folder with Keras scripts (`*.py`, in subfolders too); without it
these tests are skipped. A file `settings.json` in the folder may say more about a script:

    {"stand_ins": "offline",
     "keras/wgan_gp.py": {"args": ["--x"], "env": {"OFFLINE_N": "64"}, "seconds": 60, "share": 0.6}}

`stand_ins` is a folder, relative to this one, that is put on PYTHONPATH; a `sitecustomize.py` in it
can replace the data sets that scripts would download, and must seed what is random. Losses of both
runs are compared: those it prints as JSON objects, a line each, or else the script's own lines.
`seconds` is for scripts that train for
hours: they get Ctrl-C after so many. `share` is a worker's limit as a part of the need.
"""

from __future__ import annotations

import json
import math
import os
import pathlib
import re
from collections.abc import Callable
from typing import Any

import pytest

from end_to_end.tensorflow import ordinary
from end_to_end.tensorflow.conftest import MIB, PlacedRun

FOLDER = os.environ.get("PARDNN_PUBLIC_SCRIPTS")
USUAL_SHARE = 0.6
TIMEOUT_S = 600.0
A_LOSS = re.compile(r"loss.*?\d\.\d", re.IGNORECASE)
A_PROGRESS_BAR = re.compile(r"s/(step|epoch)")
LEAST_MIB = 16  # below it no worker starts


def settings() -> dict[str, Any]:
    path = pathlib.Path(FOLDER or ".", "settings.json")
    return json.loads(path.read_text()) if FOLDER and path.exists() else {}


def scripts() -> list[str]:
    """Scripts of the folder, without its stand-ins, relative to it."""
    if FOLDER is None:
        return []
    root = pathlib.Path(FOLDER)
    stand_ins = root / settings().get("stand_ins", "stand_ins")
    return sorted(
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        if stand_ins not in path.parents and path.name != "sitecustomize.py"
    )


def losses(printed: str) -> list[Any]:
    """What a run printed of its losses, in an order and form that another run repeats."""
    lines = printed.splitlines()
    own = [s for s in lines if A_LOSS.search(s) and not A_PROGRESS_BAR.search(s)]
    return ordinary.read_records(printed) or own


@pytest.mark.long
@pytest.mark.timeout(2 * TIMEOUT_S + 60)
@pytest.mark.skipif(FOLDER is None, reason="PARDNN_PUBLIC_SCRIPTS names no folder of scripts")
@pytest.mark.parametrize("name", scripts())
def test_a_public_script_trains_over_three_limited_workers(
    name: str,
    tmp_path: pathlib.Path,
    ordinary_run: Callable[..., ordinary.OrdinaryRun],
    pardnn_run: Callable[..., PlacedRun],
) -> None:
    assert FOLDER is not None
    root = pathlib.Path(FOLDER).resolve()
    wanted = settings().get(name, {})
    stand_ins = root / settings().get("stand_ins", "stand_ins")
    how = {
        "env": {"PYTHONPATH": str(stand_ins), "MPLBACKEND": "Agg", **wanted.get("env", {})},
        "timeout_s": TIMEOUT_S,
        "interrupt_after_s": wanted.get("seconds"),
    }
    script, args = str(root / name), wanted.get("args", [])
    ended_well = {0} if wanted.get("seconds") is None else {0, ordinary.INTERRUPTED}
    reference = ordinary_run(script, args, peak=True, cwd=tmp_path, **how)
    assert reference.status in ended_well, reference.stderr
    assert reference.peak_bytes is not None
    share = wanted.get("share", USUAL_SHARE)
    limit = max(LEAST_MIB, math.ceil(share * reference.peak_bytes / MIB))

    placed = pardnn_run(["--devices", "3", "--memory", f"{limit}MiB"], script, args, **how)

    assert placed.status in ended_well, placed.stderr
    expected, found = losses(reference.stdout), losses(placed.stdout)
    if ended_well == {0}:
        assert found == expected
    both = min(len(expected), len(found))  # of what was stopped, either got further
    assert both > 0
    assert found[:both] == expected[:both]

"""Predicted against measured peaks and step times of the examples, workers without a cap.

usage: python bench/fidelity/run.py [--examples NAME ...] [--devices K ...] [--json-out FILE]

Run it with the Python of an environment that has TensorFlow and pardnn. Each example runs
ordinarily once; its peak is the need. Then it runs over 1, 2 and 3 workers that plans may fill up
to 1.2, 0.7 and 0.6 of the need each, with `--measure`, so that nothing but the plan limits them.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from end_to_end.tensorflow import ordinary  # noqa: E402
from end_to_end.tensorflow.conftest import run_placed  # noqa: E402
from end_to_end.tensorflow.test_examples import ALL, Example  # noqa: E402

MIB = 1 << 20
PART_OF_NEED = {1: 1.2, 2: 0.7, 3: 0.6}
# At most this much above, and below, the measured peak should a prediction be.
ABOVE, BELOW = 1.03, 1.10


def rows(example: Example, devices: int, need: int, losses: list[float]) -> list[dict[str, Any]]:
    """One row for each batch shape that the example trains with."""
    limit = math.ceil(PART_OF_NEED.get(devices, 0.6) * need / MIB)
    options = ["--measure", "--devices", str(devices), "--memory", f"{limit}MiB"]
    with tempfile.TemporaryDirectory() as folder:
        placed = run_placed(options, example.script, example.args, folder=Path(folder))
    row = {"example": example.name, "devices": devices, "need_bytes": need, "limit_mib": limit}
    if placed.status:
        return [{**row, "failed": placed.stderr.strip().splitlines()[-1]}]
    same = [r["loss"] for r in placed.records if "loss" in r] == losses
    return [
        {
            **row,
            "shapes": f["shapes"],
            "steps": f["steps"],
            "same_losses": same,
            "predicted_peak_bytes": f["predicted_peak_bytes"],
            "any_timing_peak_bytes": f["any_timing_peak_bytes"],
            "measured_peak_bytes": f["measured_peak_bytes"],
            "bytes_sent": f["bytes_sent"],
            "predicted_step_s": f["predicted_step_s"],
            "measured_step_s": f["measured_step_s"],
        }
        for f in placed.summary["functions"]
        if f["training"]
    ]


def line(row: dict[str, Any]) -> str:
    start = f"{row['example']:24} K={row['devices']}"
    if "failed" in row:
        return f"{start} {row['failed']}"
    peaks = []
    for predicted, measured in zip(
        row["predicted_peak_bytes"], row["measured_peak_bytes"], strict=True
    ):
        good = measured <= predicted * ABOVE and predicted <= measured * BELOW
        peaks.append(
            f"{predicted / MIB:6.1f} {measured / MIB:6.1f} "
            f"{(measured / predicted - 1) * 100:+5.1f} %{' ' if good else '!'}"
        )
    step = f"{row['predicted_step_s'] * 1e3:6.1f} {row['measured_step_s'] * 1e3:6.1f} ms"
    return f"{start} batch {row['shapes'][0][0]:4} {step} | " + " | ".join(peaks)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = [example.name for example in ALL]
    parser.add_argument("--examples", nargs="+", choices=names, default=names)
    parser.add_argument("--devices", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--json-out", type=Path)
    options = parser.parse_args()
    found: list[dict[str, Any]] = []
    print("predicted and measured step | for each worker: MiB predicted, measured, difference")
    for example in (e for e in ALL if e.name in options.examples):
        reference = ordinary.run(example.script, example.args, peak=True)
        assert reference.peak_bytes is not None
        for devices in options.devices:
            for row in rows(example, devices, reference.peak_bytes, reference.losses):
                found.append(row)
                print(line(row), flush=True)
    if options.json_out is not None:
        options.json_out.write_text(json.dumps(found, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

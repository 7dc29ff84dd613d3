"""What a run tells at its end: promised against measured, as a table and as data."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from pardnn.torch.script.planning import Prepared

_MIB = 1024 * 1024
_NOTHING = "pardnn: nothing was planned: {}\n"


def table(prepared: Prepared, records: Sequence[dict[str, Any]]) -> str:
    """Lines for a terminal about the training step, or that nothing was planned."""
    plan = prepared.plan
    if plan is None:
        if not records:
            return _NOTHING.format("one device runs the script as it is")
        return _NOTHING.format("ops followed the parameters, which go round")
    entry = _entry(prepared, records)
    rows = [["rank", "limit MiB", "variables", "predicted peak", "measured peak"]]
    for number in range(len(prepared.limits)):
        limit = prepared.limits[number]
        measured = entry["measured_peak_bytes"]
        rows.append(
            [
                str(number),
                "-" if limit is None else f"{limit / _MIB:.0f}",
                f"{entry['variable_bytes'][number] / _MIB:.1f}",
                f"{entry['predicted_peak_bytes'][number] / _MIB:.1f}",
                f"{measured[number] / _MIB:.1f}" if measured else "-",
            ]
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [f"pardnn: training step, plan by {plan.algorithm}"]
    for row in rows:
        lines.append("  " + "  ".join(c.rjust(w) for c, w in zip(row, widths, strict=True)))
    measured_s = entry["measured_step_s"]
    parts = [f"step {_ms(prepared.step_ns)} predicted"]
    parts.append("not run" if measured_s is None else f"{measured_s * 1e3:.1f} ms measured")
    if prepared.one_device_ns is not None:
        parts.append(f"{_ms(prepared.one_device_ns)} on one device")
    parts.append(f"no plan below {_ms(plan.bound_ns)}")
    parts.append(f"{plan.bytes_sent / _MIB:.1f} MiB sent")
    lines.append("  " + ", ".join(parts))
    return "\n".join(lines) + "\n"


def report(prepared: Prepared, records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The same as plain data, in the form of the TensorFlow side: one entry, the training step."""
    names = [f"rank {number}" for number in range(len(prepared.limits))]
    if prepared.plan is None:
        return {"devices": names, "functions": []}
    return {"devices": names, "functions": [_entry(prepared, records)]}


def _entry(prepared: Prepared, records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    plan = prepared.plan
    steps = [record["records"] for record in records]
    # The first steps also learn shapes and make state.
    seconds = steps[0]["seconds"][2:] or steps[0]["seconds"] if steps else []
    sent = [sum(parts) for parts in zip(*(s["sent"][2:] or s["sent"] for s in steps), strict=True)]
    return {
        "name": "training step",
        "training": True,
        "shapes": [],
        "steps": len(steps[0]["seconds"]) if steps else 0,
        "measured_step_s": statistics.median(seconds) if seconds else None,
        "least_cpu_s": [min(s["cpu"]) for s in steps],
        "measured_peak_bytes": [max(s["peaks"], default=0) for s in steps],
        "measured_bytes_sent": statistics.median(sent) if sent else None,
        "algorithm": plan.algorithm,
        "limit_bytes": list(prepared.limits),
        "variable_bytes": prepared.variable_bytes,
        "predicted_peak_bytes": list(plan.peaks.values()),
        "any_timing_peak_bytes": list(plan.any_timing_peaks.values()),
        "predicted_step_s": prepared.step_ns / 1e9,
        "bound_step_s": plan.bound_ns / 1e9,
        "one_device_step_s": prepared.one_device_ns and prepared.one_device_ns / 1e9,
        "bytes_sent": plan.bytes_sent,
    }


def _ms(nanoseconds: int) -> str:
    return f"{nanoseconds / 1e6:.1f} ms"

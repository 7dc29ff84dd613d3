"""What a run tells at its end: promised against measured, as a table for people and as data for
programs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pardnn.tensorflow.steps import Prediction, Record

_MIB = 1024 * 1024
_NOTHING = (
    "pardnn: nothing was planned: the script ran no step of a Keras model, and no @tf.function "
    "that uses variables; what runs eagerly runs op by op\n"
)


def main_record(records: Sequence[Record]) -> Record | None:
    """The record a run is about: the training step with most time spent, or planned but not run."""
    planned = [r for r in records if r.prediction is not None]
    return max(planned, key=lambda r: (r.training, sum(r.seconds)), default=None)


def table(records: Sequence[Record], shared_cores: int | None = None) -> str:
    """Lines for a terminal about the run's training step, or that nothing was planned.

    `shared_cores`: how many cores the workers share, if they are fewer than the prediction assumes.
    """
    record = main_record(records)
    if record is None or record.prediction is None:
        return _NOTHING
    promised = record.prediction
    rows = [["device", "limit MiB", "variables", "predicted peak", "measured peak"]]
    for number, device in enumerate(promised.peaks):
        measured = f"{record.peaks[number] / _MIB:.1f}" if number < len(record.peaks) else "-"
        rows.append(
            [
                device,
                f"{promised.limits[device] / _MIB:.0f}",
                f"{promised.variables[device] / _MIB:.1f}",
                f"{promised.peaks[device] / _MIB:.1f}",
                measured,
            ]
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [f"pardnn: {record.name}, plan by {promised.algorithm}"]
    for row in rows:
        cells = [
            row[0].ljust(widths[0]),
            *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True)),
        ]
        lines.append("  " + "  ".join(cells))
    lines.append("  " + _step_line(record, promised))
    if shared_cores is not None and record.seconds:
        lines.append(
            f"  the prediction gives each worker cores of its own; here {len(promised.peaks)} "
            f"workers share {shared_cores}"
        )
    return "\n".join(lines) + "\n"


def _step_line(record: Record, promised: Prediction) -> str:
    measured = record.median_s()
    parts = [f"step {_ms(promised.step_ns)} predicted"]
    parts.append(f"{measured * 1e3:.1f} ms measured" if measured is not None else "not run")
    if promised.one_device_ns is not None:
        parts.append(f"{_ms(promised.one_device_ns)} on one device")
    parts.append(f"no plan below {_ms(promised.bound_ns)}")
    parts.append(f"{promised.bytes_sent / _MIB:.1f} MiB sent")
    return ", ".join(parts)


def _ms(nanoseconds: int) -> str:
    return f"{nanoseconds / 1e6:.1f} ms"


def report(records: Sequence[Record], device_strings: Sequence[str]) -> dict[str, Any]:
    """The same as plain data: one entry for each function and batch shape, the table's first."""
    main = main_record(records)
    ordered = sorted(records, key=lambda r: r is not main)
    return {"devices": list(device_strings), "functions": [_entry(r) for r in ordered]}


def _entry(record: Record) -> dict[str, Any]:
    promised = record.prediction
    entry: dict[str, Any] = {
        "name": record.name,
        "training": record.training,
        "shapes": [list(shape) for shape in record.shapes],
        "steps": len(record.seconds),
        "measured_step_s": record.median_s(),
        "measured_peak_bytes": list(record.peaks),
    }
    if promised is not None:
        entry.update(
            algorithm=promised.algorithm,
            limit_bytes=list(promised.limits.values()),
            variable_bytes=list(promised.variables.values()),
            predicted_peak_bytes=list(promised.peaks.values()),
            any_timing_peak_bytes=list(promised.any_timing_peaks.values()),
            predicted_step_s=promised.step_ns / 1e9,
            bound_step_s=promised.bound_ns / 1e9,
            one_device_step_s=None
            if promised.one_device_ns is None
            else promised.one_device_ns / 1e9,
            bytes_sent=promised.bytes_sent,
        )
    return entry

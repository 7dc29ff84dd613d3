"""The table at the end of a run: what was promised beside what was measured."""

from __future__ import annotations

from pardnn.tensorflow import summary
from pardnn.tensorflow.steps import Prediction, Record

MIB = 1 << 20
PROMISED = Prediction(
    algorithm="refine",
    limits={"d0": 60 * MIB, "d1": 64 * MIB},
    variables={"d0": 20 * MIB, "d1": 10 * MIB},
    peaks={"d0": 50 * MIB, "d1": 40 * MIB},
    any_timing_peaks={"d0": 55 * MIB, "d1": 40 * MIB},
    step_ns=12_300_000,
    bound_ns=10_000_000,
    one_device_ns=20_000_000,
    bytes_sent=MIB // 2,
)


def record(name: str, *, training: bool = True, seconds: tuple[float, ...] = ()) -> Record:
    return Record(name, ((8, 3),), training, PROMISED, seconds=list(seconds))


def test_the_table_sets_promise_and_measurement_side_by_side() -> None:
    trained = record("train", seconds=(0.9, 0.8, 0.015, 0.014, 0.016))
    trained.note_peaks([51 * MIB, 39 * MIB])
    assert summary.table([record("evaluate", training=False), trained]).splitlines() == [
        "pardnn: train, plan by refine",
        "  device  limit MiB  variables  predicted peak  measured peak",
        "  d0             60       20.0            50.0           51.0",
        "  d1             64       10.0            40.0           39.0",
        "  step 12.3 ms predicted, 15.0 ms measured, 20.0 ms on one device, no plan below 10.0 ms, "
        "0.5 MiB sent",
    ]


def test_what_was_only_planned_has_no_measurements() -> None:
    lines = summary.table([record("train")], shared_cores=1).splitlines()
    assert lines[2].split() == ["d0", "60", "20.0", "50.0", "-"]
    assert "not run" in lines[-1]


def test_workers_that_share_cores_are_said_to() -> None:
    said = summary.table([record("train", seconds=(0.1,))], shared_cores=1)
    assert said.endswith("cores of its own; here 2 workers share 1\n")


def test_where_nothing_was_planned_that_is_said() -> None:
    assert summary.table([]).startswith("pardnn: nothing was planned: the script ran no step of ")


def test_the_data_holds_the_main_function_first() -> None:
    trained = record("train", seconds=(0.1,))
    report = summary.report([record("evaluate", training=False), trained], ["a", "b"])
    assert [entry["name"] for entry in report["functions"]] == ["train", "evaluate"]
    entry = report["functions"][0]
    assert entry["variable_bytes"] == [20 * MIB, 10 * MIB]
    assert entry["limit_bytes"] == [60 * MIB, 64 * MIB]
    assert entry["predicted_step_s"] == 0.0123

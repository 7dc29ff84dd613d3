"""Times out of profiles of TensorFlow: one track for each op, steps, medians, what is missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from given import is_planned, refusal
from tf_files import binary, node, read

from pardnn import readers
from pardnn.readers import Options

F = "DT_FLOAT"
GRAPH = (
    node("x", "Placeholder", dtype=F, shape=[256, 16]),
    node("a", "Neg", "x", T=F),
    node("b", "Exp", "a", T=F),
)
HOST, STREAM = "/job:localhost/replica:0/task:0/gpu:0", "/gpu:0/stream:all"


def row(pid: int, name: str, ts: float, dur: float, *inputs: str) -> dict[str, Any]:
    arguments = {"name": name, "op": "Op"} | {f"input{n}": one for n, one in enumerate(inputs)}
    return {"ph": "X", "cat": "Op", "pid": pid, "tid": 0, "name": "Op", "ts": ts, "dur": dur} | {
        "args": arguments
    }


def process(pid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": f"{name} Compute"}}


def timeline(folder: Path, *events: dict[str, Any]) -> str:
    file = folder / "profile.json"
    file.write_text(json.dumps({"traceEvents": list(events)}))
    return str(file)


def costs(folder: Path, profile: str) -> dict[str, int]:
    """Nanoseconds of the graph's ops with these costs."""
    text = read(folder, *GRAPH, costs=profile).graph.text()
    found = [line.split() for line in text.splitlines() if line.startswith("op ")]
    return {words[1]: words[3] for words in found if words[1] != "x"}  # type: ignore[misc]


TRACKS = [process(1, HOST), process(2, STREAM), process(3, "/gpu:0/stream:12")]
TRACKS += [process(4, "/gpu:0/memcpy")]


# Trap: `a` is on four tracks. Its two kernels take 10 and 5 us, of which 2 overlap; the host's row
# is its dispatch; stream:12 says again what stream:all says.
def test_one_track_counts_and_never_the_sum(tmp_path: Path) -> None:
    events = [row(1, "a", 100, 40), row(4, "a", 100, 77), row(1, "b", 150, 3)]
    for pid in (2, 3):
        events += [row(pid, "a", 110, 10), row(pid, "a", 118, 5)]
    copy = row(2, "edge_7_a", 90, 60)
    copy["args"]["op"] = "MEMCPYHtoD"  # of what is sent to the device; no op
    events.append(copy)
    profile = timeline(tmp_path, *TRACKS, *events)
    assert costs(tmp_path, profile) == {"a": "13000", "b": "3000"}
    assert not any("edge_7" in note for note in read(tmp_path, *GRAPH, costs=profile).notes)


def steps(*lengths: float) -> list[dict[str, Any]]:
    """A step of each length, `a` and the host's first row in it."""
    events = []
    for number, length in enumerate(lengths):
        start = 1_000_000 * number
        events += [
            row(1, "_SOURCE", start, 1),
            row(1, "a", start + 5, length),
            row(1, "b", start, 1),
        ]
    return events


def test_of_several_steps_the_median_counts(tmp_path: Path) -> None:
    profile = timeline(tmp_path, process(1, "/cpu:0"), *steps(30, 10, 20))
    assert costs(tmp_path, profile)["a"] == "20000"
    assert "times of 2 ops are the median of 3 steps" in read(tmp_path, *GRAPH, costs=profile).notes


def test_a_cold_first_step_is_left_out(tmp_path: Path) -> None:
    profile = timeline(tmp_path, process(1, "/cpu:0"), *steps(9000, 20, 10, 30))
    assert costs(tmp_path, profile)["a"] == "20000"  # of 10, 20, 30
    notes = read(tmp_path, *GRAPH, costs=profile).notes
    assert (
        "the first of 4 steps was cold and is left out; times of 2 ops are the median of 3" in notes
    )


def test_dispatch_alone_and_single_steps_are_said(tmp_path: Path) -> None:
    notes = read(tmp_path, *GRAPH, costs=timeline(tmp_path, process(1, HOST), *steps(5))).notes
    assert any(note.startswith("times of 2 ops are of one step") for note in notes)
    assert (
        "only rows of the host are in the profile: times of a GPU's ops are those of dispatch"
        in notes
    )


STATS = """
dev_stats { device: "/job:localhost/replica:0/task:0/gpu:0"
  node_stats { node_name: "a" all_start_micros: 100 op_start_rel_micros: 2 op_end_rel_micros: 6
    all_end_rel_micros: 9 timeline_label: "a = Neg(x)"
    output { tensor_description { dtype: DT_FLOAT shape { dim { size: 256 } dim { size: 16 } } } } }
  node_stats { node_name: "gone" all_start_micros: 110 op_end_rel_micros: 1
    timeline_label: "gone = Exp(a)" } }
dev_stats { device: "/gpu:0/stream:all"
  node_stats { node_name: "a" all_start_micros: 103 op_end_rel_micros: 8
    timeline_label: "a:Neg" } }
"""


@pytest.mark.parametrize("kind", ["StepStats", "RunMetadata"])
def test_step_stats_are_profiles(tmp_path: Path, kind: str) -> None:
    text = STATS if kind == "StepStats" else f"step_stats {{ {STATS} }}"
    file = tmp_path / "profile"
    for data in (text.encode(), binary(text, kind)):
        file.write_bytes(data)
        assert costs(tmp_path, str(file)) == {"a": "8000", "b": "?"}
    notes = read(tmp_path, *GRAPH, costs=str(file)).notes
    assert "1 of 2 names in the costs file are not nodes of the step, such as gone" in notes
    assert "the costs file has no time for b" in notes


def test_a_profile_alone_is_a_graph_of_what_ran(tmp_path: Path) -> None:
    file = tmp_path / "profile"
    file.write_bytes(binary(STATS, "StepStats"))
    reading = readers.read(file)
    assert reading.graph.text().splitlines()[2:] == [
        "op a Neg 8000 > 16384",
        "op gone Exp 1000 < a",
    ]
    assert is_planned(reading)
    assert reading.counts == {"bytes": len(file.read_bytes())}


def test_a_timeline_counts_its_events(tmp_path: Path) -> None:
    profile = timeline(tmp_path, *TRACKS, row(1, "a", 0, 1), row(1, "b", 1, 1, "a", "nobody"))
    reading = readers.read(profile)
    assert reading.counts == {
        "events": 6,
        "ph": {"M": 4, "X": 2},
        "cats": {"null": 4, "Op": 2},
        "meta": [],
    }
    assert "op b Op 1000 < a" in reading.graph.text()


def test_other_files_are_no_costs(tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text("{}")
    (tmp_path / "graph.pb").write_text("".join(GRAPH))
    with pytest.raises(
        readers.ReadError, match="found no profile, expected TensorFlow's StepStats"
    ):
        readers.read(tmp_path / "graph.pb", Options(costs=str(other)))
    bad = timeline(tmp_path, row(1, "a", -3, 1))
    assert refusal(Path(bad)) == "event 0: found ts -3 and dur 1, expected microseconds, 0 or more"

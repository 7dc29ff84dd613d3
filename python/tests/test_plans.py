"""Plans from Python: made, simulated, checked, written and read, without a framework."""

from pathlib import Path

import numpy as np
import pytest
from small_step import APART, TEXT, built, machine

import pardnn
import pardnn._core


def test_a_simulated_placement_has_the_numbers_of_the_model() -> None:
    """Each number is worked by hand.

    d0: w takes 1 ns, its copy goes [1, 1 + 10 + 400) and is there 100 later, at 511.
    d1: mm [511, 1711), relu [1711, 1791), loss [1791, 1841), gw [1841, 4241).
    gw goes back [4241, 4651), is there at 4751; step [4751, 5051).
    d1 holds x for the whole step (100), the copy of w [1, 1711), mm and workspace (250) from 511:
    100 + 400 + 250 = 750; with mm, the loss and gw 100 + 200 + 4 + 400 = 704 later.
    d0 holds w1 and from 4241 the copy of gw: 800.
    """
    plan = pardnn.simulate(built(), machine(), APART)
    assert plan.fits
    assert plan.why == ""
    assert plan.device_of == APART
    assert plan.sequences == {"d0": ["w", "step"], "d1": ["mm", "relu", "loss", "gw"]}
    assert plan.starts.dtype == np.int64
    assert plan.starts.tolist() == [0, -1, 511, 1711, 1791, 1841, 4751]
    assert plan.step_ns == 5051
    assert plan.bytes_sent == 800
    assert plan.transfers == [
        ("w", 0, "d1", 1, 1, 511, 400),
        ("gw", 0, "d0", 4241, 4241, 4751, 400),
    ]
    assert plan.peaks == {"d0": 800, "d1": 750}
    assert plan.peak_at_ns == {"d0": 4241, "d1": 511}
    assert plan.limits == {"d0": 10_000, "d1": 10_000}
    # All ops form a chain but x: 1 + 1200 + 80 + 50 + 2400 + 300.
    assert plan.bound_ns == 4031
    assert plan.algorithm == "given"


def most_bytes(buffers: list[tuple[str, str | None, int | None, int, int, int]]) -> int:
    """The most bytes at one moment; at each what is freed counts before what is allocated."""
    changes = [(begin, 1, size) for *_, size, begin, _ in buffers]
    changes += [(end, 0, -size) for *_, size, _, end in buffers]
    used = most = 0
    for _, _, change in sorted(changes):
        used += change
        most = max(most, used)
    return most


def test_buffers_are_what_the_peaks_are_made_of() -> None:
    """Times and bytes are those of the test above.

    The copy of w is read by mm only, mm's buffer by its alias relu and by gw. loss is fetched. gw
    is kept until its transfer has arrived, at 4751.
    """
    plan = pardnn.simulate(built(), machine(), APART)
    assert plan.buffers == {
        "d0": [
            ("variable", "w1", None, 400, 0, 5051),
            ("copy", "gw", 0, 400, 4241, 5051),
        ],
        "d1": [
            ("every", "x", 0, 100, 0, 5051),
            ("copy", "w", 0, 400, 1, 1711),
            ("output", "mm", 0, 200, 511, 4241),
            ("workspace", "mm", None, 50, 511, 1711),
            ("output", "loss", 0, 4, 1791, 5051),
            ("output", "gw", 0, 400, 1841, 4751),
        ],
    }
    assert {name: most_bytes(buffers) for name, buffers in plan.buffers.items()} == plan.peaks


def test_a_buffer_that_is_taken_over_is_one_entry_and_sizes_are_rounded() -> None:
    """b takes a's buffer over: [0, 5 + 7 + 2) in one, 100 bytes rounded up to 256."""
    graph = pardnn.Graph.parse("pdg 1\nop a T 5 > 100\nop b T 7 < a > 100~0\nop c T 2 < b\n")
    coarse = pardnn.Machine.uniform(devices=1, memory=1000, granularity=256, reserve=30)
    plan = pardnn.simulate(graph, coarse, dict.fromkeys("abc", "d0"))
    assert plan.buffers == {
        "d0": [("reserve", None, None, 30, 0, 14), ("output", "a", 0, 256, 0, 14)]
    }
    assert plan.peaks == {"d0": 286}


def test_buffers_of_an_invalid_plan_are_refused(tmp_path: Path) -> None:
    graph = built()
    pardnn.simulate(graph, machine(), APART).write(str(tmp_path / "p.json"))
    text = (tmp_path / "p.json").read_text()
    assert text.count('"step_ns": 5051') == 1
    (tmp_path / "p.json").write_text(text.replace('"step_ns": 5051', '"step_ns": 5052'))
    wrong = pardnn.Plan.read(str(tmp_path / "p.json"), graph)
    with pytest.raises(pardnn.Error, match=r"^plan: found .*5052.*, expected a valid plan$"):
        _ = wrong.buffers


def test_a_given_order_is_kept() -> None:
    graph = pardnn.Graph.parse("pdg 1\nop a T 5\nop b T 7\n")
    placement = {"a": "d0", "b": "d0"}
    plan = pardnn.simulate(graph, machine(), placement, {"d0": ["b", "a"]})
    assert plan.sequences == {"d0": ["b", "a"], "d1": []}
    assert plan.starts.tolist() == [7, 0]


@pytest.mark.parametrize(
    ("placement", "order", "message"),
    [
        ({"w": "d9"}, None, "'d9'"),
        ({"w": None}, None, "no device of op w"),
        ({"w1": None}, None, "no device of variable w1"),
        ({"w": "d1"}, None, "the others of its group"),
        ({}, {"d0": ["w", "step"]}, "mm nowhere"),
        ({}, {"d0": ["w", "step", "step"], "d1": ["mm", "relu", "loss", "gw"]}, "step twice"),
        ({}, {"d0": ["w", "mm"], "d1": []}, "mm on another device"),
        ({}, {"d0": ["step", "w"], "d1": ["mm", "relu", "loss", "gw"]}, "cycle"),
        ({}, {"d0": ["nothing"]}, "'nothing'"),
        ({}, {"d7": ["w"]}, "'d7'"),
    ],
)
def test_a_placement_or_order_that_is_wrong_is_refused(
    placement: dict[str, str | None], order: dict[str, list[str]] | None, message: str
) -> None:
    merged = {key: device for key, device in (APART | placement).items() if device is not None}
    with pytest.raises(pardnn.Error, match=message):
        pardnn.simulate(built(), machine(), merged, order)


def test_every_algorithm_gives_a_plan_that_checks_out() -> None:
    graph = built()
    assert pardnn.algorithms()[0] == "auto"
    assert {"one-device", "chunks", "etf", "pardnn"} <= set(pardnn.algorithms())
    for algorithm in pardnn.algorithms():
        plan = pardnn.plan(graph, machine(), algorithm=algorithm)
        assert pardnn.check(graph, plan) == []
        assert plan.fits
        assert plan.bound_ns <= plan.step_ns
        assert plan.any_timing_peaks["d0"] >= plan.peaks["d0"]
        # One chain of ops: nothing is better than one device.
        if algorithm == "auto":
            assert plan.step_ns == 4031


def test_a_plan_that_does_not_fit_says_why() -> None:
    graph = built()
    plan = pardnn.plan(graph, machine(600))
    assert not plan.fits
    assert pardnn.check(graph, plan) == []
    assert "overflows by" in plan.why
    assert "and its limit is 600 B" in plan.why
    # w1 and m1, 400 each, are of one group: more devices do not help.
    assert "more devices of this memory would not help" in plan.why
    explanation = plan.explanation
    assert explanation is not None
    assert explanation["limit_bytes"] == 600
    assert explanation["bytes"] == 600 + explanation["missing_bytes"]
    assert explanation["more_devices"]["never"]
    enough = explanation["enough_memory_bytes"]
    assert set(enough) == {"d0", "d1"}
    assert pardnn.plan(graph, machine(enough["d0"])).fits
    assert pardnn.plan(graph, machine()).explanation is None


def test_the_margin_lowers_the_limits() -> None:
    plan = pardnn.plan(built(), machine(), margin=30)
    assert plan.limits == {"d0": 9_700, "d1": 9_700}


@pytest.mark.parametrize(
    "rules",
    [
        {"sequence": "fifo"},
        {"contention": False},
        {"guarantee": "any-timing"},
        {"seed": 5, "steps": 3},
        {"budget": 0.5},
    ],
)
def test_a_plan_holds_under_each_rule(rules: dict[str, object], tmp_path: Path) -> None:
    graph = built()
    plan = pardnn.plan(graph, machine(1_500), **rules)  # type: ignore[arg-type]
    assert pardnn.check(graph, plan) == []
    plan.write(str(tmp_path / "p.json"))
    assert pardnn.check(graph, pardnn.Plan.read(str(tmp_path / "p.json"), graph)) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"algorithm": "best"}, "algorithm: found 'best', expected one of auto, one-device"),
        ({"sequence": "any"}, "sequence: found 'any', expected free, given or fifo"),
        ({"guarantee": "all"}, "guarantee: found 'all', expected any-timing"),
        ({"sequence": "given"}, "at"),
        ({"margin": 1000}, "margin"),
        ({"margin": -1}, "margin"),
        ({"sequence": "fifo", "guarantee": "any-timing"}, "any-timing|fifo"),
    ],
)
def test_an_option_that_is_wrong_is_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(pardnn.Error, match=message):
        pardnn.plan(built(), machine(), **options)  # type: ignore[arg-type]


def test_unknown_costs_and_sizes_are_asked_for() -> None:
    graph = pardnn.Graph()
    graph.op("a", "T", None, (), (None,))
    assert graph.op_keys == ["a"]
    with pytest.raises(pardnn.Error, match="a"):
        pardnn.plan(graph, machine())


def test_a_plan_file_says_the_same_as_the_plan(tmp_path: Path) -> None:
    graph = built()
    plan = pardnn.simulate(graph, machine(), APART)
    path = str(tmp_path / "plan.json")
    plan.write(path)
    # Another object of an equal graph will do.
    again = built()
    read = pardnn.Plan.read(path, again)
    assert pardnn.check(again, read) == []
    for name in (
        "device_of",
        "sequences",
        "transfers",
        "step_ns",
        "bound_ns",
        "bytes_sent",
        "peaks",
        "any_timing_peaks",
        "peak_at_ns",
        "limits",
        "algorithm",
        "fits",
    ):
        assert getattr(read, name) == getattr(plan, name), name
    assert np.array_equal(read.starts, plan.starts)
    read.write(str(tmp_path / "again.json"))
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "plan.json").read_bytes()


def test_a_plan_file_that_does_not_fit_says_why_when_read(tmp_path: Path) -> None:
    graph = built()
    plan = pardnn.plan(graph, machine(600))
    plan.write(str(tmp_path / "p.json"))
    read = pardnn.Plan.read(str(tmp_path / "p.json"), graph)
    assert not read.fits
    # Planning also says what would be enough.
    assert "overflows by" in read.why
    assert plan.why.startswith(read.why)


def test_a_plan_of_another_graph_is_refused(tmp_path: Path) -> None:
    graph = built()
    plan = pardnn.plan(graph, machine())
    path = str(tmp_path / "p.json")
    plan.write(path)
    other = pardnn.Graph.parse(TEXT.replace("1200", "1201"))
    with pytest.raises(pardnn.Error, match=r"plan of another graph \(costs, sizes, edges or keys"):
        pardnn.Plan.read(path, other)
    more = pardnn.Graph.parse(TEXT + "op more T 1\n")
    with pytest.raises(pardnn.Error, match=r"it has 7 ops, this one 8"):
        pardnn.Plan.read(path, more)
    with pytest.raises(pardnn.Error, match="another graph"):
        pardnn.check(other, plan)


def test_a_plan_outlives_its_graph_and_machine() -> None:
    plan = pardnn.plan(built(), machine())
    starts = plan.starts
    del plan
    assert starts.shape == (7,)
    starts[0] = 5  # an array of one's own


def test_a_plan_can_start_from_another(tmp_path: Path) -> None:
    graph = built()
    old = pardnn.plan(graph, machine())
    assert old.moves is None
    old.write(str(tmp_path / "old.json"))
    for start in (old, str(tmp_path / "old.json")):
        plan = pardnn.plan(graph, machine(), from_plan=start)
        assert plan.device_of == old.device_of
        assert plan.moves == {"ops_matched": 6, "ops_moved": 0, "ops_new": 0, "ops_gone": 0}
    with pytest.raises(pardnn.Error, match="algorithm etf, expected auto"):
        pardnn.plan(graph, machine(), algorithm="etf", from_plan=old)
    other = pardnn.Graph.parse("pdg 1\nop other T 5\n")
    with pytest.raises(pardnn.Error, match=r"^from_plan: devices: found none of the keys of its 6"):
        pardnn.plan(other, machine(), from_plan=old)

"""The package from Python: graphs built, planned, simulated and checked without a framework."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import pardnn
import pardnn._core

# x - mm - relu (in place) - loss - gw - step ; w is read by mm, updated by step
TEXT = """pdg 1
var w1 400 @w1
op w Read 0 < w1 > =0 @w1 ph=f
op x Input 0 > 100 every=1
op mm MatMul 1200 < x w > 200 @h ws=50 ph=f name=dense/MatMul
op relu Relu 80 < !mm > =0 @h ph=f
op loss Loss 50 < relu > 4* ph=f
op gw MatMulGrad 2400 < relu loss x > 400 ph=b
op step ApplyAdam 300 < gw !w1 ^w @w1 ph=u
"""


def built() -> pardnn.Graph:
    """The graph of TEXT, by calls."""
    graph = pardnn.Graph()
    graph.var("w1", 400, group="w1")
    graph.op("w", "Read", 0, ("w1",), ("=0",), group="w1", phase="f")
    graph.op("x", "Input", 0, (), (100,), every=True)
    graph.op(
        "mm",
        "MatMul",
        1200,
        ("x", "w"),
        (200,),
        group="h",
        workspace=50,
        phase="f",
        name="dense/MatMul",
    )
    graph.op("relu", "Relu", 80, ["!mm"], ["=0"], group="h", phase="f")
    graph.op("loss", "Loss", 50, ("relu",), ("4*",), phase="f")
    graph.op("gw", "MatMulGrad", 2400, ("relu", "loss", "x"), (400,), phase="b")
    graph.op("step", "ApplyAdam", 300, ("gw", "!w1", "^w"), group="w1", phase="u")
    return graph


def machine(memory: int = 10_000) -> pardnn.Machine:
    return pardnn.Machine.uniform(
        devices=2, memory=memory, bandwidth=1_000_000_000, overhead=10, latency=100
    )


# d0 runs w and step, which touch w1; d1 the rest.
APART = {"w1": "d0", "w": "d0", "step": "d0"} | dict.fromkeys(("mm", "relu", "loss", "gw"), "d1")


# --- graphs ---


def test_calls_and_text_build_the_same_graph() -> None:
    graph = built()
    assert graph.text() == TEXT
    assert graph.hash == pardnn.Graph.parse(TEXT).hash
    # Least key first among what is ready: w and x; mm needs both.
    assert graph.op_keys == ["w", "x", "mm", "relu", "loss", "gw", "step"]
    assert graph.var_keys == ["w1"]


def test_every_field_of_an_op_reaches_the_text() -> None:
    graph = pardnn.Graph(kinds=("gpu", "cpu"), about={"costs": "measured here"})
    graph.group("g", on=("gpu",), avoid=("d3", "d4"))
    graph.var("v", None, group="g", name="the kernel", on=("d1",))
    graph.op("a", "T", (5, pardnn.NOT_ALLOWED), (), (None, 8, "8*"), flops=7, moved=9, at=3)
    graph.op("b", "T", [None, 4], ("a:1", "^a"), ("=0/4", "8~0"), avoid=("d2",), at=5)
    assert graph.text() == (
        "pdg 1\n"
        "about costs=measured%20here\n"
        "kind gpu cpu\n"
        "group g on=gpu not=d3,d4\n"
        "var v ? @g on=d1 name=the%20kernel\n"
        "op a T 5,- > ? 8 8* flops=7 moved=9 at=3\n"
        "op b T ?,4 < a:1 ^a > =0/4 8~0 not=d2 at=5\n"
    )


def test_a_graph_can_be_written_and_read(tmp_path: Path) -> None:
    for name in ("graph.pdg", "graph.pdg.gz"):
        built().write(str(tmp_path / name))
        assert pardnn.Graph.read(str(tmp_path / name)).text() == TEXT
    assert (tmp_path / "graph.pdg").read_text() == TEXT
    assert (tmp_path / "graph.pdg.gz").read_bytes()[:2] == b"\x1f\x8b"


def test_any_text_becomes_a_key() -> None:
    key = pardnn.escape_key("model/a b:0,^=é")
    assert key == "model/a%20b%3A0%2C^%3Dé"
    graph = pardnn.Graph()
    graph.op(key, "T", 1, (), (4,))
    graph.op("z", "T", 1, (key,))
    assert graph.op_keys == [key, "z"]


def test_a_graph_that_was_used_is_complete() -> None:
    graph = built()
    assert len(graph.op_keys) == 7
    with pytest.raises(pardnn.Error, match="this graph was used, and is complete"):
        graph.op("late", "T", 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a", "T", 1, ("none",)), "none"),
        (("a", "T", 1, ("a",)), "a"),
        (("a", "T", -7), "-7"),
        (("a", "T", (1, 2)), "2 costs"),
        (("a", "T", 1, (), ("=0",)), "=0"),
        (("a", "T", 1, (), (-4,)), "-4"),
        (("a:b", "T", 1), "a:b"),
    ],
)
def test_mistakes_are_named_when_the_graph_is_used(
    arguments: tuple[object, ...], message: str
) -> None:
    graph = pardnn.Graph()
    graph.op(*arguments)  # type: ignore[arg-type]
    with pytest.raises(pardnn.Error, match=r"^graph:3:\d+: found .*, expected ") as caught:
        graph.text()
    assert message in str(caught.value)


@pytest.mark.parametrize("text", ["a b", "", "a\nop b T 1", "a\tb"])
def test_a_field_cannot_break_out_of_its_record(text: str) -> None:
    graph = pardnn.Graph()
    with pytest.raises(pardnn.Error, match="escape_key helps"):
        graph.op(text, "T", 1)
    with pytest.raises(pardnn.Error, match="escape_key helps"):
        graph.op("a", "T", 1, (), (text,))
    with pytest.raises(pardnn.Error, match="escape_key helps"):
        graph.var("v", 1, group=text)


def test_an_error_is_a_value_error() -> None:
    assert issubclass(pardnn.Error, ValueError)
    assert (pardnn.Error.__module__, pardnn.Error.__qualname__) == ("pardnn", "Error")
    with pytest.raises(ValueError, match=r"^graph:1:1: found .*, expected "):
        pardnn.Graph.parse("something else")
    with pytest.raises(pardnn.Error, match="none.pdg"):
        pardnn.Graph.read("none.pdg")


# --- machines ---


def test_a_machine_is_stated_or_read(tmp_path: Path) -> None:
    stated = pardnn.Machine.uniform(devices=3, memory=[10, 20, 30], kind="cpu", reserve=5)
    assert stated.device_names == ["d0", "d1", "d2"]
    assert stated.memory == [10, 20, 30]
    assert stated.addresses == ["", "", ""]
    text = stated.text()
    assert pardnn.Machine.parse(text).text() == text
    (tmp_path / "m.json").write_text(text.replace('"d1"', '"other"'))
    assert pardnn.Machine.read(str(tmp_path / "m.json")).device_names == ["d0", "other", "d2"]
    assert json.loads(text)["devices"][2] == {
        "name": "d2",
        "kind": "cpu",
        "memory": 30,
        "reserve": 5,
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"devices": 2, "memory": [1]}, "memory: found 1 limits, expected 2"),
        ({"devices": 0, "memory": 1}, "expected at least one"),
        ({"devices": 129, "memory": 1}, "129"),
        ({"devices": 1, "memory": -1}, "-1"),
        ({"devices": 2, "memory": 1, "bandwidth": 0}, "bandwidth|rate"),
        ({"devices": 1, "memory": 1, "granularity": 0}, "granularity"),
    ],
)
def test_a_machine_that_cannot_be_is_refused(options: dict[str, int], message: str) -> None:
    with pytest.raises(pardnn.Error, match=message):
        pardnn.Machine.uniform(**options)  # type: ignore[arg-type]


# --- plans ---


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


# --- plan files ---


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


# --- long plans ---


def large() -> pardnn.Graph:
    """A graph that takes seconds to plan into too little memory."""
    made = subprocess.run(
        ["pardnn", "generate", "transformer", "--ops", "30000"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return pardnn.Graph.parse(made.stdout)


def test_other_threads_run_while_a_plan_is_made() -> None:
    graph = large()
    ticks = 0
    done = threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not done.wait(0.002):
            ticks += 1

    clock = threading.Thread(target=tick)
    clock.start()
    try:
        pardnn.plan(graph, machine(10**12), algorithm="pardnn")
    finally:
        done.set()
        clock.join()
    assert ticks >= 3


INTERRUPTED = """
import sys, time
import pardnn
graph = pardnn.Graph.parse(sys.stdin.read())
print("ready", flush=True)
try:
    pardnn.plan(graph, pardnn.Machine.uniform(devices=8, memory=10**9))
    print("finished", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_ctrl_c_ends_a_long_plan_with_a_keyboard_interrupt() -> None:
    """Planning this takes far longer than the test waits; an interrupt must end it soon."""
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(large().text())
            process.stdin.close()
            assert process.stdout.readline() == "ready\n"
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
            begin = time.monotonic()
            assert process.stdout.readline() == "interrupted\n"
            assert process.wait(timeout=30) == 0
            assert time.monotonic() - begin < 20
        finally:
            process.kill()


# --- the package ---


def test_the_stubs_are_what_the_module_says(tmp_path: Path) -> None:
    patterns = str(Path(__file__).parents[2] / "src" / "bindings" / "stub_patterns.txt")
    command = [sys.executable, "-m", "nanobind.stubgen", "-m", "pardnn._core", "-p", patterns]
    subprocess.run(
        [*command, "-o", str(tmp_path / "s.pyi")], check=True, capture_output=True, timeout=60
    )
    stubs = Path(pardnn.__file__).with_name("_core.pyi")
    assert (tmp_path / "s.pyi").read_text() == stubs.read_text()


def test_everything_public_is_documented() -> None:
    for name in pardnn.__all__:
        thing = getattr(pardnn, name)
        if callable(thing) and name != "Error":
            assert thing.__doc__, name
    for kind in (pardnn.Graph, pardnn.Machine, pardnn.Plan):
        for name, member in vars(kind).items():
            if not name.startswith("_"):
                assert member.__doc__, f"{kind.__name__}.{name}"

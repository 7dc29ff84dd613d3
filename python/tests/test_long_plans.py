"""Plans that take seconds leave the rest of a program alone; what the package says of itself."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from small_step import machine

import pardnn
import pardnn._core


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

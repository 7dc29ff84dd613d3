"""Links of real workers, and what their allocators count, measured in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pardnn.tensorflow import links

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    program = [sys.executable, str(HERE / "measured_workers.py")]
    done = subprocess.run(program, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return dict(json.loads(done.stdout))


def test_a_link_has_a_bandwidth_an_overhead_and_a_latency(found: dict[str, Any]) -> None:
    measured = found["links"]
    assert set(measured) == {"bandwidth", "overhead", "latency"}
    # Loopback and gRPC: between 10 MB/s and 20 GB/s, and a message takes between 20 us and 50 ms.
    assert 10**7 <= measured["bandwidth"] <= 2 * 10**10
    assert 20_000 <= measured["overhead"] <= 50_000_000
    assert 0 <= measured["latency"] <= 50_000_000


def test_one_worker_has_no_links() -> None:
    class Alone:
        device_strings = ["/job:worker/replica:0/task:0/device:CPU:0"]

    assert links.measure(Alone()) == {}


def test_what_keeps_small_tensors_apart_is_not_counted(found: dict[str, Any]) -> None:
    assert found["idle"] < 64 * 1024
    # The tensor, and the few numbers that it and the wait are made from, if they are still there.
    assert 0 <= found["held"] - found["size"] <= 8 * 256


def test_small_tensors_do_not_spoil_the_places_of_large_ones(found: dict[str, Any]) -> None:
    # A hundred scalars and eight tensors of 128 KiB, made from at most two numbers each; a worker
    # releases those some time after they were used, so all may still be there, and the wait's own.
    numbers = 2 * found["scalars"] + 2 * found["large"] + 2
    # One gap between large tensors would be as large as they are.
    assert numbers * 256 < found["halves"] // found["large"] // 2
    assert 0 <= found["with_small"] - found["halves"] <= numbers * 256

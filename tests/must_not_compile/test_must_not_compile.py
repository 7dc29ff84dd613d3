"""Ids of one kind are never taken for another, nor for a number: the compiler refuses each line."""

import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMPILER = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")
PROGRAM = """
#include "pardnn/base/table.h"
#include "pardnn/graph/graph.h"
using namespace pardnn;
void use(const Graph& graph, OpId op, TensorId tensor, DeviceId device,
         Table<TensorId, long>& sizes, Lists<TensorId, OpId>& lists) {
  (void)op, (void)tensor, (void)device;
  %s
}
"""


def compiles(line: str) -> bool:
    assert COMPILER is not None
    done = subprocess.run(
        [COMPILER, "-std=c++20", "-fsyntax-only", f"-I{ROOT}/src", "-x", "c++", "-"],
        input=PROGRAM % line,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode == 0


@pytest.mark.timeout(600)
def test_the_compiler_refuses_ids_of_the_wrong_kind() -> None:
    text = Path(__file__).with_name("ids.txt").read_text()
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    good = [line.removeprefix("ok ") for line in lines if line.startswith("ok ")]
    bad = [line for line in lines if not line.startswith("ok ")]
    assert len(good) >= 5
    assert len(bad) >= 15
    # All good lines at once; each bad one alone, or one refusal would hide another line's success.
    assert compiles("".join(f"{{ {line} }}\n" for line in good))
    with ThreadPoolExecutor(2) as pool:
        accepted = [line for line, yes in zip(bad, pool.map(compiles, bad), strict=True) if yes]
    assert accepted == []

"""The allocator on paper: chunks worked by hand, and the same sizes in the real allocator."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from pardnn.tensorflow.allocator import Allocator, Replacement, play

MIB = 1 << 20


def test_a_chunk_of_less_than_twice_the_request_is_given_whole() -> None:
    allocator = Allocator(10 * MIB)
    first = allocator.allocate(5 * MIB)
    assert (first, allocator.used) == (0, 5 * MIB)
    # 5 MiB are left: 3 MiB take them all, as 2 MiB would not.
    assert allocator.allocate(3 * MIB) == 5 * MIB
    assert allocator.used == 10 * MIB
    assert allocator.allocate(1 * MIB) is None


def test_free_neighbours_become_one_and_the_smallest_chunk_that_will_do_is_taken() -> None:
    allocator = Allocator(100 * MIB)
    a, b, c, d = (allocator.allocate(size * MIB) for size in (8, 4, 1, 2))
    assert (a, b, c, d) == (0, 8 * MIB, 12 * MIB, 13 * MIB)
    assert a is not None and b is not None and d is not None
    allocator.free(a)
    allocator.free(b)  # 12 MiB at 0; the last 2 MiB belong to the free end
    allocator.free(d)
    assert allocator.allocate(7 * MIB) == 0  # all 12, less than twice 7
    assert allocator.used == 13 * MIB


def test_small_tensors_have_places_of_their_own() -> None:
    allocator = Allocator(MIB)
    address = allocator.allocate(200)
    assert address is not None and address < 0
    assert allocator.reached == 0


def buffer(size: int, start: int, end: int, what: str = "output") -> Any:
    return (what, f"{what}{size}{start}", 0, size, start, end)


def test_a_region_may_be_too_small_although_the_bytes_would_fit() -> None:
    # 5 MiB of variables; 8 MiB are given the 15 that are left of 20, and 4 more have no place.
    step = [buffer(5 * MIB, 0, 9, "variable"), buffer(8 * MIB, 0, 2), buffer(4 * MIB, 1, 3)]
    assert play(step, 20 * MIB) is None
    played = play(step, 21 * MIB)
    assert played is not None
    # Of 16 MiB, 8 are split off; the 4 are split off the other 8.
    assert (played.peak_bytes, played.region_bytes) == (17 * MIB, 17 * MIB)


def test_a_variable_that_gets_a_new_buffer_leaves_a_hole_behind() -> None:
    w, v = ("variable", "w", None, 7 * MIB, 0, 9), ("variable", "v", None, 4 * MIB, 0, 9)
    step = [w, v, buffer(7 * MIB, 0, 2), buffer(4 * MIB, 3, 5)]
    played = play(step)
    assert played is not None and played.peak_bytes == 18 * MIB
    # After four steps w is at 15 and v at 0: the 11 MiB between them are too few for two of 7, so
    # the new w is given them whole, and the step after it begins with 15 MiB in use.
    replacements = [Replacement(2, "w", 2), Replacement(5, "v", 3)]
    played = play(step, replacements=replacements)
    assert played is not None
    assert (played.peak_bytes, played.region_bytes) == (22 * MIB, 26 * MIB)
    assert play(step, 26 * MIB, replacements) is not None
    assert play(step, 25 * MIB, replacements) is None
    assert play(step, 18 * MIB) is not None


REAL = """
import json, os, sys
import tensorflow as tf
from pardnn.tensorflow import worker
tf.config.threading.set_intra_op_parallelism_threads(1)
worker._preallocate(62 << 20)
held, variables, seen = {}, {}, []
for name, size, value in json.loads(sys.argv[1]):
    if value:
        if name not in variables:
            variables[name] = tf.Variable(held[value], shape=held[value].shape)
        variables[name].assign(held.pop(value))
    elif size:
        held[name] = tf.raw_ops.Empty(shape=[size // 1024, 256], dtype=tf.float32, init=False)
    else:
        del held[name]
    seen.append(worker._memory({})["current"])
print(json.dumps(seen))
"""


def _step(text: str) -> tuple[str, int, str]:
    name, _, value = text.partition("=")
    if value:
        return name, 0, value
    return (text[1:], 0, "") if text[0] == "-" else (text[0], int(text[1:]) * MIB, "")


@pytest.mark.parametrize(
    "order",
    [
        "a8 b4 c1 d2 -a -b e7 f3 -c g1",
        "a20 b12 -a c11 d6 -c e9 f5 -b g13",
        "a3 b5 c3 d5 -b -d e4 f4 -a -c g6 h2",
        "a7 w=a b4 v=b c7 w=c d4 v=d e7 w=e f4 v=f g7 w=g",
    ],
)
def test_the_real_allocator_counts_the_same(order: str) -> None:
    """Letters are tensors of so many MiB; -a frees a, w=a makes a's buffer that of variable w."""
    steps = [_step(text) for text in order.split()]
    allocator, where, expected = Allocator(62 * MIB), dict[str, int](), []
    for name, size, value in steps:
        if value:
            if name in where:
                allocator.free(where[name])
            where[name] = where.pop(value)
        elif size:
            address = allocator.allocate(size)
            assert address is not None
            where[name] = address
        else:
            allocator.free(where.pop(name))
        expected.append(allocator.used)
    environment = {
        **os.environ,
        "TF_CPU_ALLOCATOR_USE_BFC": "1",
        "TF_CPU_BFC_MEM_LIMIT_IN_MB": "64",
    }
    done = subprocess.run(
        [sys.executable, "-c", REAL, json.dumps(steps)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env=environment,
    )
    measured = json.loads(done.stdout)
    assert all(abs(m - e) <= 2048 for m, e in zip(measured, expected, strict=True)), (
        measured,
        expected,
    )

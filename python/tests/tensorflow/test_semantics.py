"""Every kernel takes the bytes that `semantics` says, measured in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import tensorflow as tf

from pardnn.tensorflow import semantics
from pardnn.tensorflow.semantics import Source, Touch
from pardnn.tensorflow.statics import Statics

HERE = Path(__file__).parent
# Row vectors and the like are below what the allocator counts, or not.
SMALL_BYTES = 8 * 1024


@pytest.fixture(scope="module")
def probed() -> dict[str, list[int]]:
    program = [sys.executable, str(HERE / "probed_kernels.py")]
    done = subprocess.run(program, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return dict(json.loads(done.stdout))


def test_kernels_take_as_many_bytes_as_stated(probed: dict[str, list[int]]) -> None:
    assert len(probed) > 150
    wrong = {
        name: (measured, stated)
        for name, (measured, stated) in probed.items()
        if abs(measured - stated) > SMALL_BYTES
    }
    assert wrong == {}


def test_a_take_over_and_an_alias_differ_when_the_input_is_kept(
    probed: dict[str, list[int]],
) -> None:
    # Input 1 MiB; the result is the input's buffer, or after all its own.
    assert probed["Relu, inputs dying"][0] == 1 << 20
    assert probed["Relu, inputs kept"][0] == 2 << 20
    assert probed["Reshape, inputs kept"][0] == 1 << 20


def sources_of(build: object) -> list[Source]:
    graph = tf.Graph()
    with graph.as_default():
        tensor = build()  # type: ignore[operator]
    return semantics.sources(tensor.op, Statics(graph))


def test_an_unknown_op_has_buffers_of_its_own() -> None:
    found = sources_of(lambda: tf.raw_ops.Lu(input=tf.compat.v1.placeholder(tf.float32, [4, 4])).lu)
    assert found == [Source(), Source()]


def test_both_sides_of_a_switch_are_its_input_and_a_merge_may_keep_either() -> None:
    def build() -> tf.Tensor:
        data = tf.compat.v1.placeholder(tf.float32, [4])
        switched = tf.raw_ops.Switch(data=data, pred=tf.compat.v1.placeholder(tf.bool, []))
        return tf.raw_ops.Merge(inputs=list(switched)).output

    assert sources_of(build) == [Source(takes=(0, 1)), Source()]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("ReadVariableOp", Touch.READ),
        ("ResourceGather", Touch.LOOK),
        ("VariableShape", Touch.LOOK),
        ("AssignSubVariableOp", Touch.UPDATE),
        ("ResourceApplyAdam", Touch.UPDATE),
        ("SomethingNew", Touch.UPDATE),
    ],
)
def test_what_an_op_does_with_a_variable(kind: str, expected: Touch) -> None:
    assert semantics.touch(kind) == expected


def test_only_updates_in_part_make_readers_copy() -> None:
    assert semantics.makes_copy_on_read("ResourceScatterAdd")
    assert not semantics.makes_copy_on_read("AssignAddVariableOp")

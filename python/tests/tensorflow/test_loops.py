"""What is known of a loop before it runs, and what is said where its trips are not."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
import tensorflow as tf

from pardnn.tensorflow import loops
from pardnn.tensorflow.place import base_graph
from pardnn.tensorflow.tracing import capture_function


def trips_of(step: Callable[..., Any]) -> list[int]:
    capture = capture_function(tf.function(step), tf.TensorSpec([4]), variables=[])
    graph = base_graph(capture, [[4]])
    found = [op for op in graph.get_operations() if op.type in ("While", "StatelessWhile")]
    return [loops.regions_of(graph).of(op).trips for op in found]


def until_large(x: tf.Tensor) -> tf.Tensor:
    while tf.reduce_sum(x) < 100.0:
        x = x * 2.0
    return x


def seven_times(x: tf.Tensor) -> tf.Tensor:
    for _ in tf.range(7):
        x = x * 2.0
    return x


def test_a_loop_that_its_data_end_counts_as_32_trips_and_that_is_said_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loops, "_told", set())
    with caplog.at_level(logging.WARNING):
        assert trips_of(until_large) == [32]
        assert trips_of(until_large) == [32]
    assert len(caplog.messages) == 1
    assert "depends on data; its time and memory are planned for 32 trips" in caplog.messages[0]


def test_a_loop_that_counts_is_known_and_nothing_is_said(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert trips_of(seven_times) == [7]
    assert not caplog.messages

"""Reads before updates, phases and enforced sequences, each on a graph of a few ops."""

from __future__ import annotations

from dataclasses import dataclass, field

from pardnn.tensorflow import order
from pardnn.tensorflow.order import Access


def test_a_reader_that_does_not_lead_to_the_update_gets_an_edge_to_it() -> None:
    #   read -> forward -> grad -> update      backward reads the same tensor and leads nowhere
    #     \-> backward
    before = {
        "read": [],
        "forward": ["read"],
        "backward": ["read"],
        "grad": ["forward"],
        "update": ["grad"],
    }
    accesses = [
        Access("read", "w", False, None),
        Access("forward", "w", False, "read"),
        Access("backward", "w", False, "read"),
        Access("update", "w", True, None),
    ]
    found = order.reads_before_updates(accesses, before)
    assert found.added == [("backward", "update")]
    assert found.copies == []


def test_an_update_whose_reader_comes_after_it_copies() -> None:
    # `late` reads the old value, but waits for the update.
    before = {"read": [], "update": ["read"], "late": ["read", "update"]}
    accesses = [
        Access("read", "w", False, None),
        Access("update", "w", True, None),
        Access("late", "w", False, "read"),
    ]
    found = order.reads_before_updates(accesses, before)
    assert found.copies == [("update", "w")]
    assert found.added == []


def test_a_read_after_the_update_is_another_tensor() -> None:
    before = {"update": [], "read": ["update"], "use": ["read"]}
    accesses = [
        Access("update", "w", True, None),
        Access("read", "w", False, None),
        Access("use", "w", False, "read"),
    ]
    assert order.reads_before_updates(accesses, before).added == []


def test_two_updates_without_an_order_get_the_graphs_own() -> None:
    before = {"first": [], "second": []}
    accesses = [Access("first", "w", True, None), Access("second", "w", True, None)]
    assert order.reads_before_updates(accesses, before).added == [("first", "second")]


def test_an_edge_added_for_one_variable_counts_for_the_next() -> None:
    # use_b waits for update_a, which must wait for use_a, which waits for update_b: adding both
    # edges would be a cycle, so the second update copies.
    before = {
        "read_a": [],
        "read_b": [],
        "update_a": ["read_a"],
        "update_b": ["read_b"],
        "use_a": ["read_a", "update_b"],
        "use_b": ["read_b", "update_a"],
    }
    accesses = [
        Access("read_a", "a", False, None),
        Access("use_a", "a", False, "read_a"),
        Access("update_a", "a", True, None),
        Access("read_b", "b", False, None),
        Access("use_b", "b", False, "read_b"),
        Access("update_b", "b", True, None),
    ]
    found = order.reads_before_updates(accesses, before)
    assert found.added == [("use_a", "update_a")]
    assert found.copies == [("update_b", "b")]


def test_only_large_ops_of_one_device_are_chained() -> None:
    sequences = {"d0": ["a", "small", "b", "c"], "d1": ["x", "y"]}
    edges = order.chain(sequences, frozenset({"a", "b", "c", "x"}), {})
    assert edges == [("a", "b"), ("b", "c")]


def test_nothing_outside_a_branch_waits_for_an_op_in_it() -> None:
    taken = frozenset({("cond", "then")})
    sequences = {"d0": ["a", "in_branch", "b"]}
    edges = order.chain(sequences, frozenset({"a", "in_branch", "b"}), {"in_branch": taken})
    assert edges == [("a", "in_branch"), ("a", "b")]


@dataclass
class Node:
    name: str
    sources: list[Node] = field(default_factory=list)
    control_inputs: list[Node] = field(default_factory=list)

    @property
    def inputs(self) -> list[Tensor]:
        return [Tensor(node) for node in self.sources]


@dataclass
class Tensor:
    op: Node


def test_phases_follow_the_tape_and_what_comes_after_it() -> None:
    x = Node("x")
    loss = Node("loss", [x])
    grad = Node("gradient_tape/MatMul", [loss])
    total = Node("AddN", [grad])  # made by the tape outside its name scope
    deeper = Node("gradient_tape/MatMul_1", [total])
    step = Node("adam/Mul", [deeper])
    metric = Node("metric", [loss])
    found = order.phases([x, loss, grad, total, deeper, step, metric])
    assert found == {
        "x": "f",
        "loss": "f",
        "gradient_tape/MatMul": "b",
        "AddN": "b",
        "gradient_tape/MatMul_1": "b",
        "adam/Mul": "u",
        "metric": "f",
    }

"""Order is never enforced through an op that a conditional may skip."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from pardnn.tensorflow import order
from pardnn.tensorflow.branches import branches_of, may_wait
from pardnn.tensorflow.place import StepPlacement, place
from pardnn.tensorflow.tracing import capture_function


def graph(*lines: str) -> list[Any]:
    """NodeDefs from lines `name op < inputs`."""
    nodes = []
    for line in lines:
        head, _, inputs = line.partition("<")
        name, op = head.split()
        nodes.append(tf.compat.v1.NodeDef(name=name, op=op, input=inputs.split()))
    return nodes


#            p        x
#             \      /
#              switch
#          0  /      \  1
#          no          yes ..> constant
#            \        /       (waits for yes)
#             merge -> after
CONDITIONAL = (
    "p X",
    "x X",
    "switch Switch < x p",
    "no Y < switch",
    "yes Y < switch:1",
    "constant Const < ^yes",
    "merge Merge < no constant",
    "after Y < merge",
)


def test_ops_between_switch_and_merge_are_in_a_branch() -> None:
    assert branches_of(graph(*CONDITIONAL)) == {
        "no": {("p", "0")},
        "yes": {("p", "1")},
        "constant": {("p", "1")},
    }


def test_only_what_runs_whenever_the_waiting_op_runs_may_be_waited_for() -> None:
    branches = branches_of(graph(*CONDITIONAL))
    pairs = [("x", "yes"), ("yes", "constant"), ("yes", "no"), ("yes", "after"), ("x", "after")]
    assert [may_wait(*pair, branches) for pair in pairs] == [True, True, False, False, True]


def test_a_chain_passes_by_the_ops_of_a_branch() -> None:
    branches = branches_of(graph(*CONDITIONAL))
    sequence = ["x", "yes", "constant", "no", "after"]
    assert order.chain({"d0": sequence}, frozenset(sequence), branches) == [
        ("x", "yes"),
        ("yes", "constant"),
        ("x", "no"),
        ("x", "after"),
    ]


def test_an_edge_out_of_a_branch_that_is_not_taken_skips_no_update() -> None:
    weight = tf.Variable(1.0)

    def step(x: Any) -> Any:
        y = tf.cond(x > 0.0, lambda: tf.exp(x), lambda: x)
        weight.assign_add(2.0)
        return y

    capture = capture_function(step, tf.TensorSpec([]), variables=[weight])
    kinds = {node.op: node.name for node in capture.graph_def.node}
    devices = {n.name: "/device:CPU:0" for n in capture.graph_def.node if n.op != "Placeholder"}
    edges = [(kinds["Exp"], kinds["AssignAddVariableOp"])]
    run = place(capture, [()], StepPlacement(devices, edges))
    run([tf.constant(-1.0)])
    assert weight.numpy() == 3.0

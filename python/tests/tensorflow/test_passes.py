"""The rewrites of a captured graph, one by one, on graphs of a few nodes."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from pardnn.tensorflow import passes


def graph(*lines: str) -> Any:
    """A GraphDef from lines `name op < inputs`, float tensors throughout."""
    result = tf.compat.v1.GraphDef()
    for line in lines:
        head, _, inputs = line.partition("<")
        name, op = head.split()
        node = result.node.add(name=name, op=op, input=inputs.split())
        if op in ("Identity", "AddN", "AddV2", "Mul"):
            node.attr["T"].type = tf.float32.as_datatype_enum
        if op == "IdentityN":
            data = [edge for edge in node.input if not edge.startswith("^")]
            node.attr["T"].list.type.extend([tf.float32.as_datatype_enum] * len(data))
    return result


def text(graph_def: Any) -> list[str]:
    return [
        f"{n.name} {n.op}" + (f" < {' '.join(n.input)}" if n.input else "") for n in graph_def.node
    ]


def test_an_identity_n_becomes_one_identity_per_tensor() -> None:
    g = graph(
        "a X", "b X", "wait X", "both IdentityN < a b ^wait", "p Y < both both:1", "q Z < ^both"
    )
    passes.split_identity_n(g)
    assert text(g) == [
        "a X",
        "b X",
        "wait X",
        "both_pardnn0 Identity < a ^wait",
        "both_pardnn1 Identity < b ^wait",
        "p Y < both_pardnn0 both_pardnn1",
        "q Z < ^both_pardnn0 ^both_pardnn1",
    ]


def test_a_sum_of_four_is_added_from_left_to_right_under_its_own_name() -> None:
    g = graph("a X", "b X", "c X", "d X", "s AddN < a b:1 c d ^a", "two AddN < a b")
    passes.split_add_n(g)
    assert text(g)[4:] == [
        "s_pardnn1 AddV2 < a b:1 ^a",
        "s_pardnn2 AddV2 < s_pardnn1 c ^a",
        "s AddV2 < s_pardnn2 d ^a",
        "two AddN < a b",
    ]


def test_sums_inside_functions_are_split_too_and_their_output_is_renamed() -> None:
    @tf.function
    def looped(x: Any) -> Any:
        return tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, tf.add_n([y, x, y])), (0, x))[
            1
        ]

    g = looped.get_concrete_function(tf.TensorSpec([2])).graph.as_graph_def()
    before = sum(n.op == "AddN" for f in g.library.function for n in f.node_def)
    passes.split_add_n(g)
    after = [n.op for f in g.library.function for n in f.node_def]
    # TensorFlow's own trip counter, ours, and two for a sum of three.
    assert (before, after.count("AddN"), after.count("AddV2")) == (1, 0, 1 + 1 + 2)
    rebuilt = tf.Graph()
    with rebuilt.as_default():
        tf.import_graph_def(g, name="")  # raises where an edge names an output that is not there


def test_returned_values_do_not_wait_for_all_side_effects() -> None:
    #  assign1 assign2          result (returned)   other (not returned)
    #       \   /                  |                  |
    #        all ------------------+------------------+
    g = graph(
        "x X",
        "assign1 W < x",
        "assign2 W < x",
        "all NoOp < ^assign1 ^assign2",
        "result Identity < x ^all",
        "other Mul < x x ^all ^assign1",
        f"{passes.SINK} NoOp < result other ^all",
    )
    passes.drop_group_noops(g)
    assert text(g)[3:] == [
        "result Identity < x",
        "other Mul < x x ^assign1 ^assign2",
        f"{passes.SINK} NoOp < result other ^assign1 ^assign2",
    ]


def test_a_returned_value_that_something_waits_for_keeps_its_waits() -> None:
    g = graph(
        "x X",
        "all NoOp < ^x",
        "result Identity < x ^all",
        "late W < x ^result",
        f"{passes.SINK} NoOp < result ^late",
    )
    passes.drop_group_noops(g)
    assert "result Identity < x ^x" in text(g)


def test_a_noop_that_would_make_too_many_edges_stays() -> None:
    g = graph(
        "a X", "b X", "all NoOp < ^a ^b", "p Y < ^all", "q Y < ^all", f"{passes.SINK} NoOp < p q"
    )
    passes.drop_group_noops(g, largest=3)
    assert "p Y < ^all" in text(g)


def test_equal_reads_become_one_and_so_do_scalars_behind_them() -> None:
    # Twice: read the step count, halve it. The read after the update is another one.
    g = graph(
        "count Placeholder",
        "weight Placeholder",
        "half Const",
        "read1 ReadVariableOp < count",
        "read2 ReadVariableOp < count",
        "mul1 Mul < read1 half",
        "mul2 Mul < read2 half",
        "update AssignAddVariableOp < count mul1 ^read1 ^read2",
        "read3 ReadVariableOp < count ^update",
        "w1 ReadVariableOp < weight",
        "w2 ReadVariableOp < weight",
        "big1 Mul < w1 mul1",
        "big2 Mul < w2 mul2",
    )
    passes.merge_equal_reads(g, frozenset({"count"}))
    assert text(g)[3:] == [
        "read1 ReadVariableOp < count",
        "mul1 Mul < read1 half",
        "update AssignAddVariableOp < count mul1 ^read1",
        "read3 ReadVariableOp < count ^update",
        "w1 ReadVariableOp < weight",
        "big1 Mul < w1 mul1",
        "big2 Mul < w1 mul1",
    ]


def test_the_sink_yields_results_and_side_effects_and_takes_dead_nodes_away() -> None:
    g = graph(
        "v Placeholder",
        "x X",
        "dead Y < x",
        "read ReadVariableOp < v",
        "save W < x",
        f"{passes.SINK} NoOp < x:1 ^read ^save",
    )
    assert passes.take_sink(g) == (["x:1"], ["save"])
    assert text(g) == ["x X", "save W < x"]


def test_topological_order_puts_producers_first_and_keeps_the_rest_as_it_was() -> None:
    g = graph("late Y < b ^c", "a X", "b X < a", "c X")
    assert [n.name for n in passes.in_topological_order(g.node)] == ["a", "b", "c", "late"]


def test_a_variable_counts_as_updated_when_it_is_read_and_assigned() -> None:
    g = graph(
        "v Placeholder",
        "w Placeholder",
        "fresh Placeholder",
        "i Identity < v",
        "r ReadVariableOp < v",
        "only_read ReadVariableOp < w",
        "u AssignSubVariableOp < i r",
        "first AssignVariableOp < fresh r",
    )
    assert passes.updated(g, {"v", "w", "fresh"}) == {"v"}

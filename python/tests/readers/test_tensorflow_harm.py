"""Files of TensorFlow that are damaged or mean harm end in one sentence, or are simply read."""

from __future__ import annotations

from pathlib import Path

import pytest
from given import refusal
from tf_files import binary, const, lines, node, placed_with, read

from pardnn.readers.ordering import Access, reads_before_updates
from pardnn.readers.tensorflow import devices
from pardnn.readers.tensorflow.devices import Device
from pardnn.readers.tensorflow.messages import message_class

F = "DT_FLOAT"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (node("a", "NoOp") * 2, "two nodes are named a; names must differ"),
        (
            node("a", "Neg", "b"),
            "node a reads 'b', and there is no node of that name; "
            "was the graph cut without its inputs?",
        ),
        ('node { name: "a" }', "node 0 (a) has no type"),
        ("node {\n  name: 5\n}", "line 2: found 5, expected a string in quotes"),
        (
            'node {\n name: "a"\n',
            "line 2: found the end of the text inside a message, expected '}'",
        ),
        ('node { name: "a" op: "b" } }', "line 1: found '}', expected the name of a field"),
        ("node { op: { } }", "line 1: found a message, expected a value of op"),
        (
            node("a", "Placeholder", dtype=F, shape=[2**31, 2**31]),
            "node a: its shape [2147483648, "
            "2147483648] means 18446744073709551616 bytes, expected less than 2^62",
        ),
        ("versions { producer: 1 }", "found a graph without nodes, expected at least one"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "graph"
    file.write_text(text)
    assert refusal(file) == message


def test_numbers_beyond_64_bits_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "graph"
    file.write_text(node("a", "Placeholder", dtype=F, shape=[2**63]))
    assert refusal(file) == "line 5: Value out of range: 9223372036854775808"


def test_sums_that_overflow_are_refused(tmp_path: Path) -> None:
    big = [node(f"v{n}", "VariableV2", dtype="DT_INT8", shape=[2**61]) for n in range(3)]
    reads = [node(f"r{n}", "Neg", f"v{n}", T="DT_INT8") for n in range(3)]
    file = tmp_path / "graph"
    file.write_text("".join([*big, *reads]))
    assert "2^62" in refusal(file)


def test_messages_inside_each_other_are_bounded(tmp_path: Path) -> None:
    deep = 'attr { key: "f" value { func { name: "g" '
    file = tmp_path / "graph"
    file.write_text(f'node {{ name: "a" op: "b" {deep * 50}' + "} } } " * 50 + "}")
    assert refusal(file) == "line 1: found more than 100 messages inside each other"
    # Unknown fields are skipped however deep they are.
    skipped = "x " + "{ y " * 5000 + "{}" + "}" * 5000
    assert lines(read(tmp_path, 'node { name: "a" op: "NoOp"', skipped, "}")) == ["op a NoOp"]


def test_names_that_are_no_utf8_and_cut_files_are_refused(tmp_path: Path) -> None:
    whole = binary(node("name", "Neg") + node("other", "Neg", "name"))
    file = tmp_path / "graph"
    file.write_bytes(whole.replace(b"other", b"o\xff\xfeer"))
    message = (
        "found a GraphDef that is cut short, nested too deeply or has names that are not UTF-8, "
        "expected a whole one as TensorFlow writes it"
    )
    assert refusal(file) == message
    file.write_bytes(whole[:-3])
    assert refusal(file) == message


def test_unknown_fields_and_all_of_the_text_form_are_read(tmp_path: Path) -> None:
    reading = read(
        tmp_path,
        "node < name: 'a' 'bc' op: \"Const\"; any_new: [1, 2] other { x: [ { y: 'z' } ] }\n",
        "  experimental_debug_info { original_node_names: 'q' } [some.extension] { v: -1e-5 }\n",
        "  attr: { key: 'dtype', value: { type: 1 } } # a comment\n",
        '  attr { key: "value" value { tensor { dtype: DT_FLOAT ',
        'tensor_content: "\\000\\x01\\n\\"" ',
        "tensor_shape { dim { size: 0x1 } } } } } >",
    )
    assert lines(reading) == ["op abc Const > 4 every=1"]


def test_many_ops_in_one_group_are_read(tmp_path: Path) -> None:
    x = node("x", "Placeholder", dtype=F, shape=[1024])
    ops = [node(f"n{n}", "Neg", "x", T=F, _class=placed_with("n0")) for n in range(3000)]
    assert all(line.endswith("@g_n0") for line in lines(read(tmp_path, x, *ops))[1:])


def test_shapes_of_nonsense_tell_nothing(tmp_path: Path) -> None:
    reading = read(
        tmp_path,
        node("x", "Placeholder", dtype=F, shape=[4, 8]),
        const("axes", 9, -9),
        node("t", "Transpose", "x", "axes", T=F),
        node("s", "Split", "x", "x", T=F, num_split=0),
        node("m", "MatMul", "axes", "x", T=F),
        node("r", "Reshape", "x", "missing", T=F),
        const("missing", -1, 0),
    )
    sizes = {line.split()[1]: line.split()[-1] for line in lines(reading)}
    assert sizes["t"] == sizes["m"] == "?"


# S03: partial device strings of all ages.
@pytest.mark.parametrize("text", ["/gpu:0", "GPU:0", "/device:GPU:0", "/device:GPU:*", "/gpu:*"])
def test_partial_device_strings_mean_one_device(text: str) -> None:
    whole = "/job:localhost/replica:0/task:0/device:GPU:0"
    assert devices.distinct([text, whole]) == [Device.parse(whole)]
    assert str(Device.parse(whole)) == whole
    assert Device.parse("/gpu:1").merged(Device.parse(whole)) is None


#        w ── r1 ── u1     two updates without an order: one edge fixes it; r reads before both
def test_updates_without_an_order_get_one() -> None:
    before = {"r": [], "u1": [], "u2": [], "use": ["r"]}
    touches = [
        Access("r", "w", False),
        Access("use", "w", False, "r"),
        Access("u1", "w", True),
        Access("u2", "w", True),
    ]
    ordered = reads_before_updates(touches, before)
    assert sorted(ordered.added) == [("u1", "u2"), ("use", "u1"), ("use", "u2")]
    assert ordered.late == []


def test_a_reader_that_cannot_come_first_is_named() -> None:
    before = {"r": [], "u": ["r"], "use": ["r", "u"]}
    touches = [Access("r", "w", False), Access("use", "w", False, "r"), Access("u", "w", True)]
    assert reads_before_updates(touches, before).late == [("use", "u", "w")]


def test_the_messages_are_declared_whole() -> None:
    graph = message_class("GraphDef")
    node_type = graph.DESCRIPTOR.fields_by_name["node"].message_type
    assert node_type.fields_by_name["attr"].message_type.GetOptions().map_entry

"""Graphs of Chakra: what is wrong with a converted trace is named, the first offender first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from given import is_planned, lines, read_json, refusal

from pardnn import readers


def row(number: int, deps: list[int], **more: Any) -> dict[str, Any]:
    found = {"Id": number, "Name": f"n{number}", "NodeType": 4, "data_deps": deps, "runtime": 3}
    return found | {"is_cpu_op": True} | more


#  5 ──> 6 (kernel)     7, after 5 and a node that is not there
def test_json_has_times_and_dependencies(tmp_path: Path) -> None:
    rows = [
        row(6, [5], is_cpu_op=False, NodeType=7),
        row(5, [], runtime=2.5),
        row(7, [], ctrlDeps=[5, 3], runtime=None),
    ]
    reading = read_json(tmp_path, {"workload_graph": rows})
    assert reading.counts == {"nodes": 3, "edges": 1}
    assert lines(reading) == [
        "op n5.5 Compute 2500 > ?",
        "op n6.6 Collective 3000 < n5.5",
        "op n7.7 Compute ? < ^n5.5",
    ]
    assert reading.notes == [
        "1 dependencies on nodes that are missing: 3 of node 7 first",
        '1 kernels have no successor: node 6 "n6" first',
        "1 nodes have no time: node 7 first",
        "Chakra states no sizes of 1 tensors; they are unknown",
    ]


def test_what_no_graph_has_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "chakra.json"
    for rows, message in (
        ([row(1, []), row(2, [1, 4]), row(3, [2]), row(4, [3])], "a cycle through node 2"),
        ([row(1, [1])], "node 0: found a cycle through node 1"),
        ([row(1, []), row(1, [])], "node 1: found the id 1 a second time"),
        ([], "found no nodes"),
        ([row(1, [], runtime=-1)], "node 0: found runtime"),
        ([row(1, ["x"])], "found a dependency"),
        ([7], 'node 0: found "7"'),
    ):
        file.write_text(json.dumps({"workload_graph": rows}))
        assert message in refusal(file)


def field(number: int, value: bytes | int) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def varint(value: int) -> bytes:
    found = b""
    while value > 127:
        found += bytes([value & 127 | 128])
        value >>= 7
    return found + bytes([value])


def part(*fields: bytes) -> bytes:
    whole = b"".join(fields)
    return varint(len(whole)) + whole


SIZE = field(10, field(1, b"comm_size") + field(9, 1 << 20))
HEAD = part(field(2, field(1, b"schema") + field(29, b"1.0.2-chakra.0.0.4")))
# The id 0 is left out, as protobuf does; the list of dependencies is packed.
FIRST = part(field(2, b"send"), field(3, 5), field(7, 4), SIZE)
SECOND = part(field(1, 1), field(2, b"add"), field(3, 4), field(5, b"\0"), field(7, 7))


def test_messages_behind_their_lengths(tmp_path: Path) -> None:
    file = tmp_path / "trace"
    file.write_bytes(HEAD + FIRST + SECOND)
    reading = readers.read(file)
    assert reading.counts == {"nodes": 2, "edges": 1, "bytes": len(HEAD + FIRST + SECOND)}
    assert lines(reading) == [
        "op send.0 Send 4000 > 1048576",
        "op add.1 Compute 7000 < send.0",
    ]
    assert is_planned(reading)
    file.write_bytes(HEAD + FIRST + SECOND[:-1])
    assert "a message that is cut short" in refusal(file)
    file.write_bytes(HEAD + FIRST + part(field(2, b"\xff")))
    assert "no message of a node" in refusal(file)

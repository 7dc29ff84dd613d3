"""Files are opened by what is in them, within bounds; files that are no graphs are named."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from pathlib import Path

import pytest
from given import refusal

from pardnn import readers

GRAPH = json.dumps({"nodes": [{"id": 0, "fpgaLatency": 1}], "edges": []}).encode()


def archive(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return packed.getvalue()


@pytest.mark.parametrize(
    "packed",
    [
        GRAPH,
        b"\xef\xbb\xbf" + GRAPH,
        gzip.compress(GRAPH),
        gzip.compress(GRAPH[:9]) + gzip.compress(GRAPH[9:]),
        gzip.compress(archive({"in.json": GRAPH})),
        archive({"in.json.gz": gzip.compress(GRAPH)}),
    ],
    ids=["plain", "with a mark", "gzip", "gzip of two members", "tar in gzip", "gzip in tar"],
)
def test_what_is_around_a_file_is_opened(tmp_path: Path, packed: bytes) -> None:
    file = tmp_path / "any.name"
    file.write_bytes(packed)
    assert readers.read(file).graph.op_keys == ["n0"]


def test_each_format_is_there_once() -> None:
    assert len(set(readers.formats())) == len(readers.formats())


def test_one_file_of_several_has_to_be_named(tmp_path: Path) -> None:
    file = tmp_path / "two.tar"
    file.write_bytes(archive({"a.json": GRAPH, "b.json": b"{}"}))
    assert refusal(file) == (
        'found an archive with the 2 files "a.json, b.json", '
        "expected one of them, named by --member"
    )
    assert readers.read(file, readers.Options(member="a.json")).format == "msr-fiddle"
    assert refusal(file, readers.Options(member="c")).startswith("--member c: found an archive")


def test_a_bomb_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "bomb.gz"
    file.write_bytes(gzip.compress(bytes(70 << 20)))  # 70 MB of zeros: 1024 to 1
    assert "with more than 7" in refusal(file)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "found an empty file, expected a file of one of the formats pdg, "),
        (b'{"a": 1}', 'found JSON with the members "a", expected a file of one of the formats'),
        (b"nothing\nof ours", 'found "nothing", expected'),
        (b"\x00\x01\x02", "found bytes that begin 00 01 02, expected"),
        (b'{"a": \n 1,}', '2:4: found "}", expected JSON ('),
        (b'{"a": ', "1:7: found the end of the file, expected JSON ("),
        (b'{"a": "\xff"}', "1: found the byte 0xFF, expected UTF-8 text"),
        (b"[" * 100_000, "found JSON nested too deeply, expected"),
        (b"[" + b"1" * 5000 + b"]", "found exceeds the limit"),
        (gzip.compress(GRAPH, mtime=0)[:-9], "found a gzip file that is cut short"),
        (gzip.compress(GRAPH, mtime=0) + b"more", "found bytes behind the end of a gzip file"),
        (b"\x1f\x8bbroken", "found a damaged gzip file"),
        (b'{"cpus": [], "fpgas": [], "maxLoad": -1}', "found a split of a graph by hand"),
        (b'{"problem": {"usage_limit": 5}}', "found a problem of the IOPDDL contest"),
        (b"[[-1, 1, 512, 7], [3, 2, 512, 7]]", "found a memory timeline"),
        (b'{"pardnn_plan": 1}', "found a plan of pardnn, expected the graph that it is for"),
    ],
)
def test_what_is_no_graph_is_refused_in_one_sentence(
    tmp_path: Path, data: bytes, message: str
) -> None:
    file = tmp_path / "file"
    file.write_bytes(data)
    assert refusal(file).startswith(message)


def test_an_option_that_a_format_has_no_use_for_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(GRAPH)
    assert refusal(file, readers.Options(dims={"batch": 3})) == (
        "--dim: found a file of the format msr-fiddle, expected one that leaves this open; "
        "drop the option"
    )

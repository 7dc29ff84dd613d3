"""Graphs out of the files of other programs: ``read(path)`` finds the format by content.

Each format is a module with ``NAME``, ``OPTIONS``, ``recognise`` and ``read``. A format's library
is imported only when a file of it is read.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pardnn
from pardnn.readers import dot, metis, msr_fiddle, mxnet, onnx, pipedream, refused, torch_traces
from pardnn.readers.content import Content
from pardnn.readers.errors import ReadError, one_line, quoted
from pardnn.readers.reading import FLAGS, Options, Reader, Reading
from pardnn.readers.tensorflow import graphs as tensorflow_graphs
from pardnn.readers.tensorflow import traces as tensorflow_traces
from pardnn.readers.torch_traces import chakra

__all__ = ["Options", "ReadError", "Reading", "formats", "read"]

# The first that recognises a file reads it: what is told by its members comes before what is told
# by the look of its text.
READERS: tuple[Reader, ...] = (
    msr_fiddle,
    torch_traces,
    chakra,
    tensorflow_traces,
    tensorflow_graphs,
    mxnet,
    onnx,
    pipedream,
    dot,
    metis,
)


def formats() -> list[str]:
    """Names of the formats that can be read."""
    return [reader.NAME for reader in READERS]


def read(path: str | Path, options: Options | None = None) -> Reading:
    """The graph of a file of any format that is known.

    Raises ReadError for a file that is none, or is damaged; pardnn.Error for a graph that breaks
    the rules of graphs; OSError where the system refuses.
    """
    options = options or Options()
    return read_content(Content.of_file(Path(path), options.member), options)


def read_content(content: Content, options: Options) -> Reading:
    """The graph of a file that was opened; otherwise like ``read``."""
    refused.refuse(content)
    for reader in READERS:
        if reader.recognise(content):
            _check_options(content, reader, options)
            return _read(reader, content, options)
    raise ReadError(
        content.name,
        _what(content),
        "a file of one of the formats pdg, " + ", ".join(formats()),
    )


def _read(reader: Reader, content: Content, options: Options) -> Reading:
    limit = sys.getrecursionlimit()
    try:
        reading = reader.read(content, options)
        reading.graph.op_keys  # noqa: B018  mistakes are named when the graph is first used
    except RecursionError:
        raise ReadError(content.name, "values nested too deeply", f"at most {limit}") from None
    except pardnn.Error as error:
        message = f"{content.name}: {_without_place(str(error))}"
        raise pardnn.Error(one_line(message)) from None
    return reading


def _without_place(message: str) -> str:
    """The builder counts lines of its own, which nobody sees."""
    head, _, rest = message.partition(": ")
    return rest if head.split(":")[0] == "graph" else message


def _check_options(content: Content, reader: Reader, options: Options) -> None:
    for name in options.given():
        if name not in (*reader.OPTIONS, "member"):
            raise ReadError(
                f"{content.name}: {FLAGS[name]}",
                f"a file of the format {reader.NAME}",
                "one that leaves this open; drop the option",
            )


def _what(content: Content) -> str:
    if not content.data:
        return "an empty file"
    if content.json is not None:
        top = content.json
        members = ", ".join(list(top)[:6]) if isinstance(top, dict) else ""
        return f"JSON with the members {quoted(members)}" if members else "JSON"
    if content.is_text:
        return quoted(content.head.lstrip().split("\n", 1)[0])
    return "bytes that begin " + " ".join(f"{byte:02X}" for byte in content.data[:8])

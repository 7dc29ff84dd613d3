"""``pardnn-read`` and ``pardnn-convert``: files of other programs as graph files."""

from __future__ import annotations

import argparse
import errno
import os
import re
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

import pardnn
from pardnn.errors import Refusal, UsageError
from pardnn.readers import Options, Reading, formats, read_content
from pardnn.readers.bounds import limit
from pardnn.readers.content import Content
from pardnn.readers.errors import one_line

_BAD_INPUT = 2
_DEFECT = 70
_INTERRUPTED = 128 + int(signal.SIGINT)
_CLOSED_PIPE = 128 + int(signal.SIGPIPE)
_MOST_DIMENSION = (1 << 62) - 1
_SHAPE = re.compile(r"[0-9]+(,[0-9]+)*")


def main(arguments: Sequence[str] | None = None) -> int:
    """``pardnn-read FILE``: the graph on standard output; returns the exit status."""
    return _run("read", _read, arguments)


def convert(arguments: Sequence[str] | None = None) -> int:
    """``pardnn-convert FILE OUT``: the graph in a file; returns the exit status."""
    return _run("convert", _convert, arguments)


def _read(arguments: Sequence[str]) -> None:
    parser = _parser("read", "pardnn-read FILE", "Writes the graph of a file as .pdg.")
    found = parser.parse_args(list(arguments))
    reading = _graph(found, "read")
    sys.stdout.write(reading.graph.text())
    sys.stdout.flush()


def _convert(arguments: Sequence[str]) -> None:
    parser = _parser("convert", "pardnn convert model.onnx model.pdg", "Keeps a graph as .pdg.")
    parser.add_argument("out", metavar="OUT.pdg", help="the graph file; .gz at its end packs it")
    found = parser.parse_args(list(arguments))
    _graph(found, "convert").graph.write(found.out)


def _graph(found: argparse.Namespace, word: str) -> Reading:
    options = _options(found)
    content = Content.of_file(Path(found.file), options.member)
    limit(len(content.data), found.file)
    reading = read_content(content, options)
    for note in reading.notes:
        _complain(word, one_line(f"{found.file}: {note}"))
    return reading


def _run(word: str, run: Callable[[Sequence[str]], None], arguments: Sequence[str] | None) -> int:
    """Whatever happens ends in one message at most."""
    try:
        run(sys.argv[1:] if arguments is None else arguments)
        return 0
    except (Refusal, pardnn.Error) as refusal:
        _complain(word, str(refusal))
        return _BAD_INPUT
    except BrokenPipeError:
        # Python would complain a second time when it closes the stream at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _CLOSED_PIPE
    except OSError as error:
        what = error.filename or ("the output" if error.errno == errno.ENOSPC else "a file")
        _complain(word, f"{what}: {error.strerror or error}")
        return _BAD_INPUT
    except MemoryError:
        _complain(word, "reading it takes more memory than a graph of this size may")
        return _BAD_INPUT
    except KeyboardInterrupt:
        _complain(word, "interrupted")
        return _INTERRUPTED
    except Exception as error:
        _complain(
            word, f"this is a defect of pardnn, please report it: {type(error).__name__}: {error}"
        )
        return _DEFECT


def _complain(word: str, message: str) -> None:
    sys.stderr.write(f"pardnn {word}: {message}\n")
    sys.stderr.flush()


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; '{self.prog} --help' shows what there is")


def _parser(word: str, example: str, description: str) -> _Parser:
    parser = _Parser(
        prog=f"pardnn {word}",
        description=description,
        epilog=f"Formats: {', '.join(formats())}. Example: {example}",
        allow_abbrev=False,
    )
    _add_options(parser)
    parser.add_argument("file", metavar="FILE", help="of any of the formats below")
    return parser


def _add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--dim", action="append", default=[], metavar="NAME=N", help="a dimension left open")
    add("--shape", action="append", default=[], metavar="NAME=N,N,...", help="of an input")
    add("--trips", metavar="N", help="of loops that do not say how often they run")
    add("--costs", metavar="FILE", help="measured times")
    add("--member", metavar="NAME", help="of an archive")


def parse_options(arguments: Sequence[str]) -> Options:
    """Options of readers, as the command line has them. Raises UsageError."""
    parser = _Parser(prog="options", allow_abbrev=False)
    _add_options(parser)
    return _options(parser.parse_args(list(arguments)))


def _options(found: argparse.Namespace) -> Options:
    dims = {}
    for text in found.dim:
        name, equals, value = text.rpartition("=")
        if not (name and equals):
            raise UsageError(f'--dim: found "{text}", expected NAME=N such as batch=32')
        dims[name] = _count("--dim", value)
    shapes = {}
    for text in found.shape:
        name, equals, value = text.rpartition("=")
        if not (name and equals and _SHAPE.fullmatch(value)):
            raise UsageError(f'--shape: found "{text}", expected NAME=N,N,... such as data=32,10')
        shapes[name] = tuple(_count("--shape", part) for part in value.split(","))
    trips = None if found.trips is None else _count("--trips", found.trips)
    return Options(dims, shapes, trips, found.costs, found.member)


def _count(flag: str, text: str) -> int:
    if text.isascii() and text.isdigit() and 0 < int(text[:20]) <= _MOST_DIMENSION:
        return int(text)
    raise UsageError(f'{flag}: found "{text}", expected a whole number of at least 1')


if __name__ == "__main__":
    sys.exit(main())

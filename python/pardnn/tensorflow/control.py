"""Questions and answers between the chief and a worker: one JSON line each, over one socket each.

A worker's TensorFlow server speaks gRPC and cannot be asked how much memory it holds, so every
worker answers on a control socket besides: a file in a private folder for workers on this machine,
a TCP port for workers on other hosts.
"""

from __future__ import annotations

import json
import logging
import socket
import threading
from collections.abc import Callable, Mapping
from typing import Any

Request = dict[str, Any]
Handler = Callable[[Request], Any]
Address = str | tuple[str, int]

_LOG = logging.getLogger(__name__)
_LONGEST_LINE = 256 << 20


class ControlError(RuntimeError):
    """The other side understood the question and answered that it failed."""


def ask(address: Address, request: Mapping[str, Any], timeout_s: float | None) -> Any:
    """Sends one request and returns the answer.

    ``address`` is the path of a Unix socket or a (host, port) pair. ``timeout_s`` bounds every
    wait on the socket; None waits for ever. Raises ``OSError`` (``TimeoutError`` among them) when
    nobody answers and ``ControlError`` with the other side's message when it answers an error.
    """
    family = socket.AF_UNIX if isinstance(address, str) else _family_of(address)
    with socket.socket(family, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout_s)
        connection.connect(address)
        connection.sendall(json.dumps(request).encode() + b"\n")
        with connection.makefile("rb") as answers:
            line = answers.readline(_LONGEST_LINE)
    if not line.endswith(b"\n"):
        raise ConnectionResetError("the connection closed before the answer came")
    answer = json.loads(line)
    if "error" in answer:
        raise ControlError(answer["error"])
    return answer["ok"]


def listen(address: Address) -> socket.socket:
    """Opens the socket that ``serve`` takes its connections from."""
    family = socket.AF_UNIX if isinstance(address, str) else _family_of(address)
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        if family != socket.AF_UNIX:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(64)
    except OSError:
        listener.close()
        raise
    return listener


def serve(listener: socket.socket, handlers: Mapping[str, Handler]) -> threading.Thread:
    """Answers requests for ever, each connection in a thread of its own.

    ``handlers`` maps the request's ``do`` to the function that answers it; an exception in one
    becomes the answer's error. Pings are thus answered while a long request is being worked on.
    """

    def accept_all() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return  # the listener was closed: this is how serving ends
            threading.Thread(target=_answer, args=(connection, handlers), daemon=True).start()

    thread = threading.Thread(target=accept_all, name="pardnn-control", daemon=True)
    thread.start()
    return thread


def _answer(connection: socket.socket, handlers: Mapping[str, Handler]) -> None:
    with connection:
        try:
            with connection.makefile("rb") as requests:
                line = requests.readline(_LONGEST_LINE)
            if not line:
                return
            connection.sendall(json.dumps(_result(line, handlers)).encode() + b"\n")
        except OSError as error:
            _LOG.info("a control connection broke: %s", error)


def _result(line: bytes, handlers: Mapping[str, Handler]) -> dict[str, Any]:
    try:
        request = json.loads(line)
        handler = handlers[request["do"]]
    except (ValueError, KeyError, TypeError):
        return {"error": f"no such request: {line[:80]!r}; known are {', '.join(handlers)}"}
    try:
        return {"ok": handler(request)}
    except Exception as error:  # noqa: BLE001  whatever went wrong is the answer
        return {"error": f"{type(error).__name__}: {error}"}


def _family_of(address: tuple[str, int]) -> socket.AddressFamily:
    return socket.getaddrinfo(address[0], address[1], type=socket.SOCK_STREAM)[0][0]

"""Ports on this machine that only this machine can reach.

TensorFlow's gRPC server has no authentication and listens on every network interface, whatever
address it is given. Binding its listening socket to the loopback interface afterwards (Linux 5.7
or newer lets a user do that) makes other hosts see a closed port.
"""

from __future__ import annotations

import logging
import os
import socket
import stat
from pathlib import Path

_LOG = logging.getLogger(__name__)


def free_port() -> int:
    """A TCP port nobody uses now. Somebody may take it before you do: be ready to ask again."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def accept_only_loopback(port: int) -> bool:
    """Closes this process's listening ``port`` to other hosts; False if that did not work."""
    done = False
    for listener in _listeners(port):
        with listener:
            try:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo\0")
                done = True
            except (OSError, AttributeError) as error:
                _LOG.warning(
                    "port %d of TensorFlow's server cannot be closed to other hosts (%s); "
                    "it has no authentication, so a firewall should close it",
                    port,
                    error,
                )
    return done


def _listeners(port: int) -> list[socket.socket]:
    """Copies of this process's sockets that listen on ``port``."""
    found = []
    for file in Path("/proc/self/fd").iterdir():
        try:
            if not stat.S_ISSOCK(os.fstat(int(file.name)).st_mode):
                continue
            candidate = socket.socket(fileno=os.dup(int(file.name)))
        except OSError:
            continue  # the file was closed since the folder was read
        if candidate.family in (socket.AF_INET, socket.AF_INET6) and _listens(candidate, port):
            found.append(candidate)
        else:
            candidate.close()
    return found


def _listens(candidate: socket.socket, port: int) -> bool:
    return bool(
        candidate.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        and candidate.getsockname()[1] == port
    )

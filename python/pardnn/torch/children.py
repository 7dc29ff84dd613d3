"""Processes of this package that speak with the one that starts them over a socket."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

# Variables of workers: the loopback interface; no memory that MKL keeps between its calls, which no
# plan counts.
WORKER = {"GLOO_SOCKET_IFNAME": "lo", "MKL_DISABLE_FAST_MM": "1"}
_PACKAGE_ROOT = str(Path(__file__).resolve().parents[2])


def start(
    module: str, output: Any = subprocess.DEVNULL, variables: Mapping[str, str] | None = None
) -> tuple[subprocess.Popen[bytes], Connection]:
    """Runs ``python -m module DESCRIPTOR`` and answers the process and our end of its socket.

    ``output``: where what it prints goes. ``variables``: of its environment, besides ours.
    """
    ours, theirs = socket.socketpair()
    environment = {**os.environ, **(variables or {})}
    paths = [_PACKAGE_ROOT, *filter(None, [environment.get("PYTHONPATH")])]
    environment["PYTHONPATH"] = os.pathsep.join(paths)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", module, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=environment,
            start_new_session=True,  # Ctrl-C is its starter's to handle
        )
    return process, Connection(ours.detach())

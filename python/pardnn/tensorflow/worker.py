"""The main program of a worker: one TensorFlow gRPC server whose allocator keeps a memory limit.

Workers on this machine are started by the chief and end with the chief, whatever ends it. For
another host, a user starts there

    python -m pardnn.tensorflow.worker --listen HOST:PORT

which waits for a chief whose machine file names that address, serves its run, and waits for the
next one; ``remote.py`` is that side.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from pardnn.tensorflow import control, loopback, small_tensors

MIB = 1 << 20
_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_SIGNED_UP_LATE = 3


def main(arguments: list[str]) -> int:
    """Runs a worker until its chief ends; never returns before."""
    if arguments:
        from pardnn.tensorflow import remote

        return remote.main(arguments)
    configuration = json.loads(sys.stdin.readline())
    return serve(configuration)


def serve(configuration: dict[str, Any]) -> int:
    """Is the worker that ``configuration`` describes until the chief ends; see ``Worker``."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal reaches the whole group
    if not _die_with(configuration["parent"]):
        return _SIGNED_UP_LATE
    _wake_gently()
    threading.Thread(target=_end_with_standard_input, daemon=True).start()
    return Worker(configuration).run()


def forked(
    configuration: dict[str, Any], environment: dict[str, str], log: int, input_: int
) -> int:
    """What a process does that the chief forked off itself, TensorFlow imported but untouched.

    Such a worker is there in a tenth of a second. ``log`` and ``input_`` are open files: for what
    it prints, and the pipe whose end is the chief's end.
    """
    for target, source in ((0, input_), (1, log), (2, log)):
        os.dup2(source, target)
    os.closerange(3, os.sysconf("SC_OPEN_MAX") if sys.platform != "linux" else _highest_file() + 1)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    os.environ.update(environment)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_NAME, b"pardnn-worker")
    return serve(configuration)


def _highest_file() -> int:
    return max(int(file.name) for file in Path("/proc/self/fd").iterdir())


def _die_with(parent: int) -> bool:
    """Asks the kernel to kill this process when its parent dies; False if it died already.

    Only Linux has this call. Elsewhere the closed standard input ends the worker.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
    return os.getppid() == parent


def _wake_gently() -> None:
    """Lets no thread of this process push another aside when it wakes up; threads inherit this.

    Where workers share cores, each message wakes threads of several of them. What they push aside
    may be the thread that still holds a tensor that has just come.
    """
    if hasattr(os, "SCHED_BATCH"):
        # A system that forbids the call is only slower.
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def _end_with_standard_input() -> None:
    """The chief holds the other end of this pipe and never writes: end of file is its end."""
    while sys.stdin.readline():
        pass
    os._exit(0)


class Worker:
    """One server and what the control socket answers about it.

    ``configuration``: task (its number in job "worker"), memory (bytes of the limit, or None),
    preallocate (bytes), threads, loopback (whether only this machine may connect), control (where
    to answer), parent (process id of the chief).
    """

    def __init__(self, configuration: dict[str, Any]) -> None:
        self._configuration = configuration
        self._ready = threading.Event()
        self._port = 0

    def run(self) -> int:
        """Answers requests, starts the server, and stays in it."""
        control.serve(
            control.listen(_address(self._configuration["control"])),
            {
                "ping": lambda request: time.monotonic_ns(),
                "ready": self._wait_until_ready,
                "memory": _memory,
                "reset": _reset_peak,
                "rss": _resident_memory,
                "call": _call,
            },
        )
        import tensorflow as tf

        threads = self._configuration["threads"]
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)
        _preallocate(self._configuration["preallocate"])
        server = _server(self._configuration["task"], threads)
        self._port = int(server.target.rpartition(":")[2])
        if self._configuration["loopback"]:
            loopback.accept_only_loopback(self._port)
        self._ready.set()
        server.join()
        return 0

    def _wait_until_ready(self, request: control.Request) -> dict[str, int]:
        self._ready.wait()
        return {"port": self._port}


def _server(task: int, threads: int) -> Any:
    """Starts the server on a port of the system's choice; the chief tells it who else is there."""
    import tensorflow as tf

    return tf.distribute.Server(
        tf.train.ClusterSpec({"worker": {task: "127.0.0.1:0"}}),
        job_name="worker",
        task_index=task,
        protocol="grpc",
        config=tf.compat.v1.ConfigProto(
            intra_op_parallelism_threads=threads, inter_op_parallelism_threads=threads
        ),
    )


def _address(given: str | list[Any]) -> control.Address:
    return given if isinstance(given, str) else (str(given[0]), int(given[1]))


def _preallocate(size_bytes: int) -> None:
    """Makes the allocator open one region of ``size_bytes`` and give it back to itself.

    Without this, regions double in size as they are needed and tensors sit in chunks up to twice
    their size, so that a plan that is right by the bytes does not fit. No page is touched.
    """
    if size_bytes <= 0:
        return
    import tensorflow as tf

    pages = size_bytes // 4096  # two dimensions: one alone would not count beyond 2 GiB
    tf.raw_ops.Empty(shape=tf.constant([pages, 1024], tf.int32), dtype=tf.float32, init=False)
    small_tensors.keep_apart()
    _reset_peak({})


def _memory(request: control.Request) -> dict[str, int]:
    """Bytes of tensors and variables now, and the most since the last reset."""
    import tensorflow as tf

    found = tf.config.experimental.get_memory_info("CPU:0")
    walls = small_tensors.wall_bytes()
    return {"current": int(found["current"]) - walls, "peak": int(found["peak"]) - walls}


def _reset_peak(request: control.Request) -> None:
    import tensorflow as tf

    tf.config.experimental.reset_memory_stats("CPU:0")


def _resident_memory(request: control.Request) -> dict[str, int]:
    """Bytes of the whole process as the system sees it, now and at most."""
    return resident_memory(os.getpid())


def resident_memory(process: int) -> dict[str, int]:
    """``current`` and ``peak`` resident bytes of a process of this machine."""
    found = {}
    for line in Path(f"/proc/{process}/status").read_text(errors="replace").splitlines():
        name, _, value = line.partition(":")
        if name in ("VmRSS", "VmHWM"):
            found[name] = int(value.split()[0]) * 1024
    return {"current": found["VmRSS"], "peak": found["VmHWM"]}


def _call(request: control.Request) -> Any:
    """Runs ``target`` ("module:function" of this package) with ``argument``, here."""
    module, _, function = str(request["target"]).partition(":")
    if module.split(".")[0] != "pardnn":
        raise ValueError(f"{module} is not part of pardnn")
    return getattr(importlib.import_module(module), function)(request["argument"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

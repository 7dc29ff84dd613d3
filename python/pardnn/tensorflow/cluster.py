"""The workers of one run: started or found, connected to this process as their chief, and ended.

A worker is a process that runs TensorFlow's own gRPC server with a limited allocator. The chief is
the user's process; it is part of the cluster so that results and inputs can go to and fro, and it
holds no variables or activations of the model.
"""

from __future__ import annotations

import atexit
import ctypes
import logging
import math
import os
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from pardnn.errors import UsageError
from pardnn.tensorflow import loopback
from pardnn.tensorflow.processes import (
    AnyWorker,
    LocalWorker,
    RemoteWorker,
    WorkerError,
    WorkerOptions,
)
from pardnn.tensorflow.small_tensors import FIRST_REGION_BYTES
from pardnn.tensorflow.watch import Watch
from pardnn.tensorflow.worker import MIB

LEAST_MEMORY_BYTES = 16 * MIB
PROCESS_BYTES = 600 * MIB  # what a worker needs besides its tensors: TensorFlow itself
MOST_WORKERS = 64
_PORT_ATTEMPTS = 5
# The job name that devices of this process have before it is part of a cluster: with any other,
# whatever was made before (datasets, variables) would belong to a device that is no more.
_CHIEF = "localhost"
_M_MMAP_THRESHOLD = -3
_STALE_S = 24 * 3600.0
_FOLDER_PREFIX = "pardnn-workers-"

_LOG = logging.getLogger(__name__)

# Numbers that the chief or the runtime keep on a worker come to this, seldom more.
_SMALL_TENSORS_BYTES = 4096


class ClusterError(UsageError):
    """The workers cannot be had; the message is meant for the user."""


class Cluster:
    """The workers of this process, a context manager; ``start`` makes one.

    ``device_strings[i]`` is worker i's device in TensorFlow's terms, ``limits[i]`` the bytes its
    allocator hands out at most (None: no limit).
    """

    def __init__(
        self, limits: Sequence[int | None], threads: int, addresses: Sequence[str]
    ) -> None:
        self.limits = list(limits)
        self.device_strings = [
            f"/job:worker/replica:0/task:{i}/device:CPU:0" for i in range(len(limits))
        ]
        self._threads = threads
        self._addresses = list(addresses)
        self._workers: list[AnyWorker] = []
        self._folder = Path(tempfile.mkdtemp(prefix=_FOLDER_PREFIX, dir=_temporary_folder()))
        self._owner = os.getpid()
        self._stopped = threading.Event()
        self._connected = False
        self._watch = Watch(self._workers)

    @classmethod
    def start(
        cls,
        devices: int,
        memory: Sequence[int | None] | int | None = None,
        *,
        threads: int = 1,
        addresses: Sequence[str] = (),
        limited: bool = True,
    ) -> Cluster:
        """Starts ``devices`` workers; ``connect`` waits until they are ready.

        Started before TensorFlow has run anything in this process, they are ready at once.

        ``memory``: bytes per worker (one number for all, or one each), rounded down to whole MiB;
        None means no limit. ``limited=False`` keeps the numbers as what plans have to respect and
        lets the allocators hand out more, to measure. ``threads`` of each kind per worker; more
        than one makes sums depend on timing. ``addresses``: "host:port" of listeners on other
        hosts to use instead of processes of this machine. Raises ClusterError.
        """
        limits = _limits(devices, memory)
        _refuse_nonsense(devices, local=not addresses)
        if addresses and len(addresses) != devices:
            raise ClusterError(f"{devices} devices but {len(addresses)} worker addresses")
        _remove_stale_folders()
        cluster = cls(limits, threads, addresses)
        atexit.register(cluster.stop)
        options = [WorkerOptions(m if limited else None, threads, not addresses) for m in limits]
        try:
            if threading.current_thread() is threading.main_thread():
                cluster._start_all(options)
            else:
                cluster._start_all_in_a_lasting_thread(options)
        except (OSError, WorkerError) as error:
            cluster.stop()
            raise ClusterError(f"the workers cannot be started: {error}") from None
        if addresses:
            cluster._watch.start()  # a listener ends a worker whose chief is silent
        return cluster

    def _start_all(self, options: Sequence[WorkerOptions]) -> None:
        fork = False
        if not self._addresses:
            import tensorflow  # noqa: F401  the workers inherit the import

            from pardnn.tensorflow import compat_state

            fork = hasattr(os, "fork") and not compat_state.tensorflow_is_running()
        for number, each in enumerate(options):
            self._workers.append(self._start_one(number, each, fork=fork))

    def _start_all_in_a_lasting_thread(self, options: Sequence[WorkerOptions]) -> None:
        """The kernel ends a worker with the thread that started it; the caller may soon end."""
        done = threading.Event()
        failed: list[BaseException] = []

        def keep() -> None:
            try:
                self._start_all(options)
            except BaseException as error:  # noqa: BLE001  handed to the thread that waits
                failed.append(error)
            done.set()
            self._stopped.wait()

        threading.Thread(target=keep, name="pardnn-keep", daemon=True).start()
        done.wait()
        if failed:
            raise failed[0]

    def _start_one(self, number: int, options: WorkerOptions, *, fork: bool) -> AnyWorker:
        if not self._addresses:
            return LocalWorker(number, options, self._folder, fork=fork)
        host, _, port = self._addresses[number].rpartition(":")
        return RemoteWorker(number, options, host, int(port))

    def connect(self) -> None:
        """Waits for the workers, and makes this process their chief.

        Settles what TensorFlow settles once per process: threads, no grappler (it would rename
        and fuse placed ops), no soft placement. Where TensorFlow is at work already, what was made
        before stays usable, and threads stay as they are. Raises ClusterError.
        """
        import tensorflow as tf

        from pardnn.tensorflow import compat

        try:
            workers = [worker.address() for worker in self._workers]
        except WorkerError as error:
            self.stop()
            raise ClusterError(str(error)) from None
        tf.config.set_soft_device_placement(False)
        tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
        compat.turn_off_folding()
        try:
            tf.config.threading.set_intra_op_parallelism_threads(self._threads)
            tf.config.threading.set_inter_op_parallelism_threads(self._threads)
        except RuntimeError:
            _LOG.info("TensorFlow is at work already: this process keeps the threads it has")
        _return_freed_memory()
        host = _own_address(self._addresses[0]) if self._addresses else "127.0.0.1"
        if not self._addresses:
            self._watch.start()
        for _attempt in range(_PORT_ATTEMPTS):
            port = loopback.free_port()
            spec = tf.train.ClusterSpec({_CHIEF: [f"{host}:{port}"], "worker": workers})
            try:
                tf.config.experimental_connect_to_cluster(
                    spec, job_name=_CHIEF, task_index=0, protocol="grpc"
                )
                tf.config.list_logical_devices()  # this is when the server starts
                break
            except tf.errors.UnknownError as error:
                _LOG.info("port %d was taken before it could be used: %s", port, error)
        else:
            self.stop()
            raise ClusterError(
                f"TensorFlow's server could not be started on any of {_PORT_ATTEMPTS} free ports "
                "of this machine; is the loopback interface up?"
            )
        if not self._addresses:
            loopback.accept_only_loopback(port)
        self._connected = True

    def memory(self, number: int) -> dict[str, int]:
        """Bytes of tensors and variables on worker ``number``: ``current``, and ``peak`` since
        ``reset_peak``. The allocator counts in chunks of 256 bytes."""
        return dict(self._ask(number, {"do": "memory"}))

    def room(self, number: int) -> float:
        """Bytes worker ``number`` can still hand out to large tensors; infinite without a limit.

        The region that its allocator opens first has places for small tensors only, and at least
        a few of those are there.
        """
        limit = self.limits[number]
        if limit is None:
            return math.inf
        large = max(0, self.memory(number)["current"] - _SMALL_TENSORS_BYTES)
        return limit - FIRST_REGION_BYTES - large

    def reset_peak(self, number: int) -> None:
        """Starts a new measurement of the peak."""
        self._ask(number, {"do": "reset"})

    def rss(self, number: int) -> dict[str, int]:
        """Resident bytes of the whole worker process: ``current`` and ``peak``."""
        return dict(self._ask(number, {"do": "rss"}))

    def call(self, number: int, target: str, argument: Any, timeout_s: float | None = None) -> Any:
        """Runs ``target`` ("pardnn.module:function") in worker ``number`` with one JSON argument,
        and returns its JSON result. Raises ControlError with the worker's message."""
        request = {"do": "call", "target": target, "argument": argument}
        return self._ask(number, request, timeout_s)

    def process_ids(self) -> list[int]:
        """Process ids of the workers on this machine."""
        return [worker.process for worker in self._workers if isinstance(worker, LocalWorker)]

    def failure(self, wait_s: float = 0.0) -> str | None:
        """The message about a worker that died or froze, or None.

        After an exception that a lost worker may have caused, give the loss ``wait_s`` to show.
        """
        message = self._watch.failure(wait_s)
        if message is not None:
            self._watch.acknowledge()
        return message

    def on_stuck(self, leave: Callable[[str], None]) -> None:
        """Sets what to do when a worker is lost and this process does not come back from its
        call; see ``Watch``."""
        self._watch.on_stuck = leave

    def stop(self) -> None:
        """Ends every worker and waits for its end; may be called again. The logs of a run that
        lost a worker stay."""
        if os.getpid() != self._owner or self._stopped.is_set():
            return  # a forked child inherits this object, not the workers
        lost = self._watch.failure()
        self._watch.stop()
        for worker in self._workers:
            worker.kill()
        self._stopped.set()
        if lost is None:
            shutil.rmtree(self._folder, ignore_errors=True)
        else:
            _LOG.info("worker logs are kept in %s", self._folder)

    def __enter__(self) -> Cluster:
        if not self._connected:
            self.connect()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _ask(self, number: int, request: dict[str, Any], timeout_s: float | None = 30.0) -> Any:
        return self._workers[number].ask(request, timeout_s)


def _limits(devices: int, memory: Sequence[int | None] | int | None) -> list[int | None]:
    """One limit per worker, in whole MiB because the allocator counts in them."""
    each = list(memory) if isinstance(memory, Sequence) else [memory] * devices
    if len(each) != devices:
        raise ClusterError(f"{devices} devices but {len(each)} memory sizes")
    limits: list[int | None] = []
    for size in each:
        if size is not None and size < LEAST_MEMORY_BYTES:
            raise ClusterError(
                f"a worker's memory of {size} bytes is too little to run anything; "
                f"the least is {LEAST_MEMORY_BYTES // MIB} MiB"
            )
        limits.append(None if size is None else size // MIB * MIB)
    return limits


def _refuse_nonsense(devices: int, *, local: bool) -> None:
    if devices < 1:
        raise ClusterError(f"{devices} devices: at least one is needed")
    if devices > MOST_WORKERS:
        raise ClusterError(f"{devices} devices: at most {MOST_WORKERS} workers can be started")
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if local and devices * PROCESS_BYTES > physical:
        raise ClusterError(
            f"{devices} devices: every worker process needs about {PROCESS_BYTES // MIB} MiB "
            f"besides its tensors, and this machine has {physical // MIB} MiB in all; "
            f"at most {physical // PROCESS_BYTES} fit"
        )


def _return_freed_memory() -> None:
    """Makes malloc give large blocks back to the system when they are freed.

    The C library stops doing so once it has seen large blocks come and go; pieces of tensors that
    pass through this process would then leave it growing with the model. Other C libraries than
    GNU's have no such call and no such habit.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, MIB)


def _own_address(other: str) -> str:
    """The address under which the host of ``other`` ("host:port") can reach this one."""
    host = other.rpartition(":")[0]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((host, 9))  # a datagram socket: nothing is sent
        return str(probe.getsockname()[0])


def _temporary_folder() -> str:
    """Where sockets and logs go: a socket's path must stay under about 100 characters."""
    folder = tempfile.gettempdir()
    return folder if len(folder) < 60 else "/tmp"


def _remove_stale_folders() -> None:
    """Removes what runs that were killed left behind more than a day ago."""
    for folder in Path(_temporary_folder()).glob(_FOLDER_PREFIX + "*"):
        try:
            if folder.stat().st_uid == os.getuid() and (
                time.time() - folder.stat().st_mtime > _STALE_S
            ):
                shutil.rmtree(folder)
        except OSError as error:
            _LOG.info("cannot remove %s: %s", folder, error)

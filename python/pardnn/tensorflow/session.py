"""One run of a TensorFlow script: workers, engine, the script itself, and an orderly end.

Whatever happens, no worker outlives the run, and a failure is said once.
"""

from __future__ import annotations

import atexit
import functools
import logging
import os
import signal
import sys
import threading
from typing import Any, NoReturn

from pardnn import doctor
from pardnn import script as user_script
from pardnn.errors import Refusal
from pardnn.launch import RunOptions, complain

_INSTALL = "pip install 'tensorflow-cpu==2.21.*' 'keras==3.15.*'"
# What a lost worker looks like from the chief takes a moment to become visible here.
_LOSS_SHOWS_WITHIN_S = 3.0
_INTERRUPTED = 128 + int(signal.SIGINT)

_LOG = logging.getLogger(__name__)


def run(options: RunOptions) -> int:
    """Runs the script of ``options`` over workers and returns the exit status.

    Raises Refusal for what the user has to know. A lost worker is reported here.
    """
    _log_to_terminal()
    for framework in ("tensorflow", "keras"):
        doctor.require(framework, _INSTALL)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    cluster = _start(options)
    cluster.on_stuck(_leave_stuck)
    try:
        status = _run_on(cluster, options)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # ending takes a moment; let it
        cluster.stop()
    _leave(status)


def _log_to_terminal() -> None:
    """Shows what the package has to say as the program says things, whatever the script, or what it
    imports, does with logging.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("pardnn run: %(message)s"))
    logger = logging.getLogger("pardnn")
    logger.addHandler(handler)
    logger.propagate = False


def _start(options: RunOptions) -> Any:
    from pardnn.tensorflow.cluster import Cluster

    if options.dry_run:  # workers that hold nothing stand in for devices that may not be here
        return Cluster.start(options.devices, None, threads=options.threads)
    return Cluster.start(
        options.devices,
        options.memory,
        threads=options.threads,
        addresses=options.addresses,
        limited=options.limited,
    )


def _run_on(cluster: Any, options: RunOptions) -> int:
    cluster.connect()
    from pardnn.tensorflow import saving, variables
    from pardnn.tensorflow.run import Engine

    _ignore_late_settings()
    variables.install(cluster, values=not options.dry_run)
    saving.install()
    engine = Engine(options, cluster)
    engine.install()
    try:
        status = user_script.run_as_main(options.script, options.arguments)
        engine.finish()
        return status
    except SystemExit as error:
        status = user_script.status_of(error)
        if status == 0:
            engine.finish()
        return status
    except Refusal as refusal:
        complain(str(refusal))
        return refusal.status
    except KeyboardInterrupt as error:
        user_script.show(error)
        return _INTERRUPTED
    except Exception as error:  # noqa: BLE001  the script may raise anything
        lost = cluster.failure(_LOSS_SHOWS_WITHIN_S if _may_be_a_loss(error) else 0.0)
        if lost is not None:
            complain(lost)
        else:
            user_script.show(error)
        return 1


def _ignore_late_settings() -> None:
    """Makes the script's settings that TensorFlow takes only before it runs into one line each:
    by the time the script starts, the workers have made it run."""
    import tensorflow as tf

    for owner, path, name, why in (
        (
            tf.config.threading,
            "threading.",
            "set_intra_op_parallelism_threads",
            "--threads decides",
        ),
        (
            tf.config.threading,
            "threading.",
            "set_inter_op_parallelism_threads",
            "--threads decides",
        ),
        (tf.config, "", "set_logical_device_configuration", "the workers are the devices"),
        (
            tf.config.experimental,
            "experimental.",
            "set_virtual_device_configuration",
            "the workers are the devices",
        ),
    ):
        message = f"the script's call of tf.config.{path}{name} has no effect: {why}"
        setattr(owner, name, functools.partial(_ignored, message, []))


def _ignored(message: str, said: list[bool], *arguments: Any, **keywords: Any) -> None:
    if not said:
        said.append(True)
        complain(message)


def _may_be_a_loss(error: BaseException) -> bool:
    """Whether a worker that died can have caused the exception."""
    import tensorflow as tf

    return isinstance(error, (tf.errors.OpError, OSError, RuntimeError))


def _leave_stuck(message: str) -> None:
    """Called by the watch when the chief hangs although all workers are gone."""
    complain(message)
    os._exit(1)


def _leave(status: int) -> NoReturn:
    """Ends the process as Python does, but for the destructors of TensorFlow's context.

    They would try to reach the workers, which are gone, and complain about each function.
    """
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError) as error:
            _LOG.info("cannot flush at the end: %s", error)
            status = status or 120  # as Python ends when its last output is lost
    os._exit(status)

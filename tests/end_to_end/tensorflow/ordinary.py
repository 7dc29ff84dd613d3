"""Runs a TensorFlow script unedited in one process, the reference that a placed run must equal.

    python ordinary.py [--defaults] [--peak | --memory MIB] [--json-out F] script.py args...

The script runs as `__main__` with TensorFlow's graph rewriter off and one thread of each kind, so
that two runs give the same bits; `--defaults` leaves every setting as TensorFlow has it. With
`--memory` TensorFlow's own allocator refuses more than so many MiB. Tests call `run`, which does
the same in a process of its own.
"""

from __future__ import annotations

import argparse
import dataclasses
import io
import json
import os
import pathlib
import runpy
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

MIB = 1 << 20
# More than any script here needs; reserved, not touched, it costs next to no memory.
AMPLE_MIB = 4 << 10
# The allocator opens a first region of this size before it can be asked for a large one.
FIRST_REGION_MIB = 2
INTERRUPTED = 128 + signal.SIGINT


def read_record(line: str) -> dict[str, Any] | None:
    """The object on a line of a script's output, None if the line is anything else."""
    if not line.startswith("{"):
        return None
    try:
        record = json.loads(line)
    except json.JSONDecodeError:
        return None
    return record if isinstance(record, dict) else None


def read_records(text: str) -> list[dict[str, Any]]:
    """Every JSON object that a script printed on a line of its own, in order."""
    return [record for line in text.splitlines() if (record := read_record(line)) is not None]


class RecordingOutput(io.TextIOBase):
    """Passes text on and keeps, with the time, each line that is a JSON object."""

    def __init__(self, onward: TextIO, start: float) -> None:
        self.onward = onward
        self.start = start
        self.partial = ""
        self.records: list[dict[str, Any]] = []
        self.times: list[float] = []

    def write(self, text: str) -> int:
        *lines, self.partial = (self.partial + text).split("\n")
        for line in lines:
            if (record := read_record(line)) is not None:
                self.records.append(record)
                self.times.append(time.perf_counter() - self.start)
        return self.onward.write(text)

    def flush(self) -> None:
        self.onward.flush()

    def fileno(self) -> int:
        return self.onward.fileno()


@dataclasses.dataclass(frozen=True)
class OrdinaryRun:
    """What an ordinary run printed and took.

    `records` are the JSON objects the script printed and `losses` the values of "loss" among them;
    `first_loss_s` is the time from the start of the process to the first of these, `step_s` the
    median between two of them (None with fewer than three); `peak_bytes` the most that tensors and
    variables took at one moment (None unless it was asked for); `error` the type and message of the
    exception that ended the script (None if none did).
    """

    status: int
    error: str | None
    records: list[dict[str, Any]]
    losses: list[float]
    seconds: float
    first_loss_s: float | None
    step_s: float | None
    peak_bytes: int | None
    stdout: str = ""
    stderr: str = ""


def run(
    script: pathlib.Path | str,
    args: Sequence[str] = (),
    *,
    peak: bool = False,
    memory_mib: int | None = None,
    defaults: bool = False,
    cwd: pathlib.Path | str | None = None,
    env: Mapping[str, str] | None = None,
    timeout_s: float = 240,
    interrupt_after_s: float | None = None,
) -> OrdinaryRun:
    """Runs a script in a process of its own; a script that fails gives its status, not an error.

    `env` is added to this process's environment. `interrupt_after_s` is for scripts without an
    end: they get the signal of Ctrl-C after so many seconds. Raises subprocess.TimeoutExpired
    after `timeout_s` seconds; nothing of the run is left then.
    """
    with tempfile.TemporaryDirectory() as folder:
        result = pathlib.Path(folder, "run.json")
        command = [sys.executable, __file__, "--json-out", str(result)]
        command += ["--peak"] * peak + ["--defaults"] * defaults
        command += [] if memory_mib is None else ["--memory", str(memory_mib)]
        command += [str(script), *args]
        status, stdout, stderr = run_command(
            command, cwd=cwd, env=env, timeout_s=timeout_s, interrupt_after_s=interrupt_after_s
        )
        if not result.exists():
            raise RuntimeError(f"{script}: status {status}, no result\n{stderr}")
        fields = json.loads(result.read_text())
    return OrdinaryRun(**fields, stdout=stdout, stderr=stderr)


def run_command(
    command: Sequence[str],
    *,
    cwd: pathlib.Path | str | None,
    env: Mapping[str, str] | None,
    timeout_s: float,
    interrupt_after_s: float | None = None,
) -> tuple[int, str, str]:
    """Runs a program in a process group of its own: its status, output and error output.

    Raises subprocess.TimeoutExpired with what was printed; the whole group is killed then.
    """
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env={**os.environ, **(env or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        if interrupt_after_s is not None:
            try:
                stdout, stderr = process.communicate(timeout=interrupt_after_s)
                return process.returncode, stdout, stderr
            except subprocess.TimeoutExpired:
                os.kill(process.pid, signal.SIGINT)
        stdout, stderr = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired as expired:
        os.killpg(process.pid, signal.SIGKILL)
        stdout, stderr = process.communicate()
        raise subprocess.TimeoutExpired(command, timeout_s, stdout, stderr) from expired
    return process.returncode, stdout, stderr


def prepare_environment(memory_mib: int | None) -> None:
    """Sets what TensorFlow reads while it is imported."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    if memory_mib is not None:
        # This allocator has a limit, and counts all tensors; the default one only large ones.
        os.environ["TF_CPU_ALLOCATOR_USE_BFC"] = "1"
        os.environ["TF_CPU_BFC_MEM_LIMIT_IN_MB"] = str(memory_mib)


def prepare_tensorflow(memory_mib: int | None, defaults: bool) -> Any:
    """Imports TensorFlow and makes its results and its use of memory repeatable."""
    import tensorflow as tf

    if not defaults:
        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(1)
        tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    if memory_mib is not None:
        # One region from the start: in several, chunks that are not split inflate the peak.
        with tf.device("CPU:0"):
            region = (memory_mib - FIRST_REGION_MIB) * MIB
            tf.raw_ops.Empty(shape=[region // 4], dtype=tf.float32, init=False)
        tf.config.experimental.reset_memory_stats("CPU:0")
    return tf


def run_script(script: str, args: Sequence[str]) -> tuple[int, str | None]:
    """Runs a script as `python script args` would; returns its exit status and its exception."""
    sys.argv = [script, *args]
    sys.path[0] = str(pathlib.Path(script).resolve().parent)
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as stop:
        if stop.code is None or isinstance(stop.code, int):
            return stop.code or 0, None
        print(stop.code, file=sys.stderr)
        return 1, None
    except KeyboardInterrupt:
        return INTERRUPTED, "KeyboardInterrupt"
    except Exception as error:
        traceback.print_exc()
        return 1, f"{type(error).__name__}: {error}"
    return 0, None


def main() -> int:
    start = time.perf_counter()
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--defaults", action="store_true", help="TensorFlow's own settings")
    memory = parser.add_mutually_exclusive_group()
    memory.add_argument("--peak", action="store_true", help="measure the bytes of all tensors")
    memory.add_argument("--memory", type=int, metavar="MIB", help="limit the bytes of all tensors")
    parser.add_argument("--json-out", type=pathlib.Path, help="where the result is written")
    parser.add_argument("script")
    parser.add_argument("args", nargs=argparse.REMAINDER)
    options = parser.parse_args()

    memory_mib = AMPLE_MIB if options.peak else options.memory
    prepare_environment(memory_mib)
    tf = prepare_tensorflow(memory_mib, options.defaults)
    output = RecordingOutput(sys.stdout, start)
    sys.stdout = output
    try:
        status, error = run_script(options.script, options.args)
    finally:
        sys.stdout = output.onward
    peak = tf.config.experimental.get_memory_info("CPU:0")["peak"] if options.peak else None

    stamps = [t for t, record in zip(output.times, output.records, strict=True) if "loss" in record]
    gaps = [after - before for before, after in zip(stamps, stamps[1:], strict=False)]
    result = OrdinaryRun(
        status=status,
        error=error,
        records=output.records,
        losses=[record["loss"] for record in output.records if "loss" in record],
        seconds=time.perf_counter() - start,
        first_loss_s=stamps[0] if stamps else None,
        step_s=statistics.median(gaps) if len(gaps) >= 2 else None,
        peak_bytes=peak,
    )
    if options.json_out:
        fields = dataclasses.asdict(result)
        del fields["stdout"], fields["stderr"]
        options.json_out.write_text(json.dumps(fields))
    return status


if __name__ == "__main__":
    sys.exit(main())

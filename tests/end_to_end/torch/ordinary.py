"""Runs a torch script unedited in one process with one thread, the reference of a run over ranks.

    python ordinary.py [--peak | --memory MIB] [--json-out F] script.py args...

With `--memory` the system refuses the process more than so many MiB from its first parameter on;
with `--peak` the most that it had from its allocator at one moment since then is measured.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import pathlib
import resource
import runpy
import statistics
import sys
import time
import traceback
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

MIB = 1 << 20


class Allocator(ctypes.Structure):
    """glibc's `struct mallinfo2`: ten sizes."""

    _fields_ = [  # noqa: RUF012
        (f"size{number}", ctypes.c_size_t) for number in range(10)
    ]


LIBC = ctypes.CDLL(None)
LIBC.mallinfo2.restype = Allocator


def bytes_in_use() -> int:
    found = LIBC.mallinfo2()
    return found.size7 + found.size4  # in use: of the heap, and mapped one by one


def data_bytes() -> int:
    """What RLIMIT_DATA counts."""
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmData")) * 1024


class Meter(TorchDispatchMode):
    """Looks at the allocator after every op."""

    def __init__(self) -> None:
        super().__init__()
        self.base: int | None = None
        self.peak = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if self.base is not None:
            self.peak = max(self.peak, bytes_in_use() - self.base)
        return out


def at_first_parameter(begin: Any) -> None:
    """Calls `begin` with the bytes of the first parameter, which are there when it is made."""
    new = nn.Parameter.__new__
    begun: list[bool] = []

    def first(cls: Any, data: Any = None, *args: Any, **kwargs: Any) -> Any:
        if not begun and data is not None:
            begun.append(True)
            begin(data.untyped_storage().nbytes())
        return new(cls, data, *args, **kwargs)

    nn.Parameter.__new__ = first


class Lines:
    """Passes output on and keeps the losses in it, with their times."""

    def __init__(self, onward: Any) -> None:
        self.onward = onward
        self.losses: list[float] = []
        self.times: list[float] = []

    def write(self, text: str) -> int:
        if text.startswith("{"):
            record = json.loads(text)
            if "loss" in record:
                self.losses.append(record["loss"])
                self.times.append(time.perf_counter())
        return self.onward.write(text)

    def flush(self) -> None:
        self.onward.flush()


def main() -> int:
    begin = time.perf_counter()
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    memory = parser.add_mutually_exclusive_group()
    memory.add_argument("--peak", action="store_true", help="measure the bytes of all tensors")
    memory.add_argument("--memory", type=int, metavar="MIB", help="limit them")
    parser.add_argument("--json-out", type=pathlib.Path, help="where the result is written")
    parser.add_argument("script")
    parser.add_argument("args", nargs=argparse.REMAINDER)
    options = parser.parse_args()

    torch.set_num_threads(1)
    meter = Meter()
    if options.peak:
        at_first_parameter(lambda n: setattr(meter, "base", bytes_in_use() - n))
    if options.memory:
        limit = options.memory * MIB
        hard = resource.RLIM_INFINITY
        at_first_parameter(
            lambda n: resource.setrlimit(resource.RLIMIT_DATA, (data_bytes() - n + limit, hard))
        )
    sys.argv = [options.script, *options.args]
    sys.path[0] = str(pathlib.Path(options.script).resolve().parent)
    lines = Lines(sys.stdout)
    sys.stdout = lines  # type: ignore[assignment]
    error = None
    try:
        if options.peak:
            with meter:
                runpy.run_path(options.script, run_name="__main__")
        else:
            runpy.run_path(options.script, run_name="__main__")
    except Exception as found:
        traceback.print_exc()
        error = f"{type(found).__name__}: {found}"
    finally:
        sys.stdout = lines.onward
    gaps = [after - before for before, after in zip(lines.times, lines.times[1:], strict=False)]
    result = {
        "error": error,
        "losses": lines.losses,
        "peak_bytes": meter.peak if options.peak else None,
        "step_s": statistics.median(gaps) if len(gaps) > 1 else None,
        "seconds": time.perf_counter() - begin,
    }
    if options.json_out:
        resource.setrlimit(resource.RLIMIT_DATA, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        options.json_out.write_text(json.dumps(result))
    return 0 if error is None else 1


if __name__ == "__main__":
    sys.exit(main())

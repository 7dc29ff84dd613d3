"""Runs the program: one process for each plan, with its CPU seconds and its wall clock."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from corpus import Graph
from settings import UNLIMITED, UNLIMITED_BYTES, Setting

Row = dict[str, Any]


def answer(command: list[str]) -> tuple[Any, float, float]:
    """The JSON that a command prints, its CPU seconds (all threads) and its wall seconds."""
    with tempfile.TemporaryFile() as out:
        began = time.monotonic()
        process = subprocess.Popen(command, stdout=out)
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except KeyboardInterrupt:
            process.wait()  # it got the signal, too
            raise
        wall = time.monotonic() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in (0, 1):  # 1: no plan that fits
            sys.exit(f"status {process.returncode} of {' '.join(command)}")
        out.seek(0)
        return json.load(out), usage.ru_utime + usage.ru_stime, wall


class Measured:
    """A graph with what all its settings share."""

    def __init__(self, program: Path, graph: Graph) -> None:
        self.program = str(program)
        self.graph = graph
        self.info = answer([self.program, "info", str(graph.file), "--json"])[0]
        self._whole_bytes: int | None = None

    @property
    def whole_bytes(self) -> int:
        """S: what one device needs for the whole step, variables and activations.

        The smaller of the peaks of two orders: by the longest path that follows an op, and first
        come, first served. The even share of K devices is S / K.
        """
        if self._whole_bytes is None:
            with tempfile.NamedTemporaryFile("w", suffix=".csv") as placement:
                placement.writelines(f"{key},d0\n" for key in keys(self.graph.file))
                placement.flush()
                self._whole_bytes = min(
                    self._peak(placement.name, sequence) for sequence in ("free", "fifo")
                )
        return self._whole_bytes

    def _peak(self, placement: str, sequence: str) -> int:
        command = [self.program, "simulate", str(self.graph.file), "--placement", placement]
        machine = ["--devices", "1", "--memory", str(UNLIMITED_BYTES), "--sequence", sequence]
        (device,) = answer([*command, *machine, "--json"])[0]["devices"]
        return int(device["peak_bytes"])

    def simple_bound_ns(self, devices: int) -> int:
        """max(critical path, work / K): what older publications compare with."""
        (kind,) = self.info["kinds"]
        return int(max(kind["longest_path_ns"], -(-kind["work_ns"] // devices)))

    def plan(self, setting: Setting, algorithm: str, search: list[str]) -> Row:
        """One plan; `search` holds the program's options of how long."""
        whole_bytes = 0 if setting.memory == UNLIMITED else self.whole_bytes
        options = setting.options(whole_bytes)
        command = [self.program, "compare", str(self.graph.file), *options, *search]
        rows, cpu, wall = answer([*command, "--algorithms", algorithm, "--format", "json"])
        (row,) = rows
        return {
            "graph": self.graph.name,
            "part": self.graph.part,
            "devices": setting.devices,
            "link": setting.link,
            "contention": setting.contention,
            "memory": setting.memory,
            "algorithm": algorithm,
            "found_by": row["found_by"],
            "fits": row["fits"],
            "overflow_bytes": row["overflow_bytes"],
            "step_ns": row["step_ns"],
            "bound_ns": row["bound_ns"],
            "simple_bound_ns": self.simple_bound_ns(setting.devices),
            "limit_bytes": setting.limit_bytes(whole_bytes),
            "most_peak_bytes": row["most_peak_bytes"],
            "bytes_sent": row["bytes_sent"],
            "cpu_s": round(cpu, 4),
            "wall_s": round(wall, 4),
        }


def keys(file: Path) -> list[str]:
    """Keys of the ops and variables of a graph file that have a place, as the file writes them."""
    content = file.read_bytes()
    text = (gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content).decode()
    lines = (line.split() for line in text.splitlines() if line.startswith(("op ", "var ")))
    return [words[1] for words in lines if "every=1" not in words]

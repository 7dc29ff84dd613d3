"""``pardnn doctor``: what this machine has for pardnn to work with, found without importing it."""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import logging
import os
import platform
import sys
from collections.abc import Sequence
from typing import Any

import psutil

import pardnn
from pardnn.errors import UsageError
from pardnn.quantities import show_bytes

_LOG = logging.getLogger(__name__)
# Framework: the packages that may hold it, and the version that was tried (None: not yet used).
FRAMEWORKS: dict[str, tuple[tuple[str, ...], str | None]] = {
    "tensorflow": (
        ("tensorflow-cpu", "tensorflow", "tensorflow-intel", "tensorflow-rocm"),
        "2.21",
    ),
    "keras": (("keras",), "3.15"),
    "torch": (("torch",), "2.13"),
    "mxnet": (("mxnet",), None),
    "jax": (("jax",), None),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """The program; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="pardnn doctor",
        description="Says what this machine has: versions, cores, memory, frameworks.",
        epilog="example: pardnn doctor --json",
        allow_abbrev=False,
    )
    parser.add_argument("--json", action="store_true", help="for programs")
    found = examine()
    if parser.parse_args(arguments).json:
        sys.stdout.write(json.dumps(found, indent=2) + "\n")
    else:
        sys.stdout.write(_text(found))
    return 0


def examine() -> dict[str, Any]:
    """Versions, cores, bytes of memory, and each framework with what can be said about it."""
    memory = psutil.virtual_memory()
    return {
        "pardnn": pardnn.__version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1,
        "memory_bytes": memory.total,
        "available_bytes": memory.available,
        "frameworks": {name: _framework(name) for name in FRAMEWORKS},
    }


def version_of(framework: str) -> str | None:
    """The installed version of a framework, or None; nothing is imported."""
    for package in FRAMEWORKS[framework][0]:
        try:
            return importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return None


def require(framework: str, install: str) -> None:
    """Raises UsageError when a framework is missing or of a version nobody has tried.

    ``install``: the command that installs it. PARDNN_ANY_VERSION=1 lets an untried version through.
    """
    spec = importlib.util.find_spec(framework)
    if spec is None or spec.origin is None:  # a folder of that name is no package
        raise UsageError(f"{framework} is not installed here; {install}")
    found = version_of(framework)
    if found is None or is_tried(framework, found):
        return
    tried = FRAMEWORKS[framework][1]
    if os.environ.get("PARDNN_ANY_VERSION") == "1":
        _LOG.warning("%s %s was never tried; %s.* was", framework, found, tried)
        return
    raise UsageError(
        f"{framework} {found} was never tried, {tried}.* was; {install}, "
        "or set PARDNN_ANY_VERSION=1 to see how far it gets"
    )


def is_tried(framework: str, version: str) -> bool:
    """Whether this version is one that pardnn was tried with."""
    tried = FRAMEWORKS[framework][1]
    return tried is not None and version.split(".")[:2] == tried.split(".")


def _framework(name: str) -> dict[str, Any]:
    version = version_of(name) if importlib.util.find_spec(name) is not None else None
    return {"version": version, "tried": version is not None and is_tried(name, version)}


def _text(found: dict[str, Any]) -> str:
    lines = [
        f"pardnn {found['pardnn']}, Python {found['python']}, {found['system']}",
        f"{found['cores']} cores, {show_bytes(found['memory_bytes'])} of memory, "
        f"{show_bytes(found['available_bytes'])} available",
    ]
    for name, framework in found["frameworks"].items():
        tried = FRAMEWORKS[name][1]
        if framework["version"] is None:
            state = "not installed"
        elif tried is None:
            state = f"{framework['version']}, not used by this version of pardnn"
        elif framework["tried"]:
            state = f"{framework['version']}, tried"
        else:
            state = f"{framework['version']}, never tried: {tried} was"
        lines.append(f"{name}: {state}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())

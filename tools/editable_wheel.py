#!/usr/bin/env python
"""Builds FOLDER/pardnn-*.whl, an editable wheel, with this environment's tools in the tree BUILD.

pip builds an editable install for one environment at a time and needs the build tools in it; one
wheel built here goes into the environment of every framework.
"""

import fcntl
import sys
from pathlib import Path

from scikit_build_core.build import build_editable


def main() -> int:
    if len(sys.argv) != 3:
        sys.stderr.write("usage: tools/editable_wheel.py FOLDER BUILD\n")
        return 2
    folder, build = (Path(argument) for argument in sys.argv[1:])
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        # Two makes at once would write the same objects; the second finds them built.
        fcntl.flock(lock, fcntl.LOCK_EX)
        for old in folder.glob("*.whl"):
            old.unlink()
        build_editable(str(folder), {"build-dir": str(build)})
    return 0


if __name__ == "__main__":
    sys.exit(main())

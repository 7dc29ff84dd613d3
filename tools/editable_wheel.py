#!/usr/bin/env python
"""Builds FOLDER/pardnn-*.whl, an editable wheel, with this environment's tools in the tree BUILD.

pip builds an editable install for one environment at a time and needs the build tools in it; one
wheel built here goes into the environment of every framework.
"""

import sys
from pathlib import Path

from scikit_build_core.build import build_editable


def main() -> int:
    if len(sys.argv) != 3:
        sys.stderr.write("usage: tools/editable_wheel.py FOLDER BUILD\n")
        return 2
    Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    build_editable(sys.argv[1], {"build-dir": sys.argv[2]})
    return 0


if __name__ == "__main__":
    sys.exit(main())

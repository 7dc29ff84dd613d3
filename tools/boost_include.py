"""Prints the folder of Boost's headers that the Python package cmeel-boost brought."""

import sys
from pathlib import Path


def main() -> int:
    for entry in sys.path:
        include = Path(entry) / "cmeel.prefix" / "include"
        if (include / "boost" / "version.hpp").is_file():
            sys.stdout.write(f"{include}\n")
            return 0
    sys.stderr.write(
        f"Boost's headers not found: {sys.executable} has no package cmeel-boost "
        f"(install it with: {sys.executable} -m pip install cmeel-boost)\n"
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())

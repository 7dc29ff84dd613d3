"""Fuzzes the reader of one format with atheris (libFuzzer's options stand behind `--`).

usage: python tests/fuzz/readers.py FORMAT [--seeds FOLDER] [--keep FOLDER] -- -max_total_time=60
A file is read, or refused by ReadError or pardnn.Error in one line; all else is a finding.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import shutil
import sys
import tempfile
from pathlib import Path

import atheris

import pardnn
from pardnn import readers
from pardnn.readers.content import Content

sys.path.insert(0, str(Path(__file__).parents[2] / "python" / "tests" / "readers"))
from test_damaged import SEEDS  # noqa: E402

READERS = {reader.NAME: reader for reader in readers.READERS}
MOST_SEED_BYTES = 200_000
LIBFUZZER = ["-timeout=30", "-rss_limit_mb=3000", "-max_len=100000"]


def is_of(name: str, file: Path) -> bool:
    """Whether a file is small enough, and one that the reader takes for its own."""
    if not file.is_file() or file.stat().st_size > MOST_SEED_BYTES:
        return False
    try:
        return READERS[name].recognise(Content.of_file(file))
    except readers.ReadError:
        return False


def instrument() -> None:
    """Makes the readers' functions report where they go; an import hook does not see them.

    They come from an editable install, which has an import hook of its own.
    """
    for name, module in list(sys.modules.items()):
        if name.startswith("pardnn.readers"):
            for what in list(vars(module).values()):
                members = vars(what).values() if inspect.isclass(what) else (what,)
                for each in members:
                    if inspect.isfunction(each) and each.__module__ == name:
                        atheris.instrument_func(each)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("format", choices=readers.formats())
    parser.add_argument("--seeds", type=Path, action="append", default=[], help="folders of files")
    parser.add_argument("--keep", type=Path, help="where new inputs stay; else they are dropped")
    at = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    found = parser.parse_args(sys.argv[1:at])
    reader = READERS[found.format]

    for seed in SEEDS.values():  # what is imported late is there now
        with contextlib.suppress(readers.ReadError, pardnn.Error):
            readers.read_content(Content(Path("input"), seed), readers.Options())
    instrument()

    def one_input(data: bytes) -> None:
        content = Content(Path("input"), data)
        try:
            if reader.recognise(content):
                readers.read_content(content, readers.Options())
        except (readers.ReadError, pardnn.Error) as refusal:
            assert "\n" not in str(refusal)

    with tempfile.TemporaryDirectory() as temporary:
        folder = found.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if found.format in SEEDS:
            (folder / "seed").write_bytes(SEEDS[found.format])
        for number, file in enumerate(each for seeds in found.seeds for each in seeds.rglob("*")):
            if is_of(found.format, file):
                shutil.copy(file, folder / f"seed-{number}")
        atheris.Setup([sys.argv[0], *LIBFUZZER, *sys.argv[at + 1 :], str(folder)], one_input)
        atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The documents are right: examples give what the pages say, links lead somewhere, rules exist.

In a page, `<!-- file: NAME -->` before a fenced block makes it a file; `<!-- run -->` before a
`console` block runs its commands, one after another, in the folder of the page's files, and
compares what they print. After `run:` may stand `status N` (of the last command) and `last column
varies`.
Python blocks with `>>>` run too, one after another in one namespace for each page.

With PARDNN_REWRITE_GOLDEN in the environment the console blocks get what the commands print now;
read what has changed before committing it.
"""

from __future__ import annotations

import ast
import doctest
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(
    [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"]
    + [*(ROOT / "docs").rglob("*.md"), ROOT / "examples" / "README.md"]
)
SHOWN = [str(page.relative_to(ROOT)) for page in PAGES]
REWRITE = "PARDNN_REWRITE_GOLDEN"
RULE = re.compile(r"\b[NDTMVXE][1-9]b?\b")
BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>file|run)(?:: (?P<detail>[^\n]*?))? -->\n+)?"
    r"^```(?P<language>\w*)\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A fenced block: where it is in its page, what the mark before it says, and its text."""

    start: int
    end: int
    language: str
    mark: str
    detail: str
    body: str


def blocks(text: str) -> Iterator[Block]:
    for found in BLOCK.finditer(text):
        yield Block(
            found.start("body"),
            found.end("body"),
            found["language"],
            found["mark"] or "",
            found["detail"] or "",
            found["body"],
        )


# --- shell ----------------------------------------------------------------------------------------


def environment() -> dict[str, str]:
    """The one in which examples run: programs of this Python's environment first on the path, those
    that `make build` leaves last, texts of one width.
    """
    path = [str(Path(sys.executable).parent), os.environ["PATH"], str(ROOT / "build")]
    return {**os.environ, "PATH": os.pathsep.join(path), "COLUMNS": "100", "LC_ALL": "C.UTF-8"}


def commands(body: str) -> list[tuple[str, str]]:
    """(command, what it prints) of a console block; a backslash at the end joins lines."""
    parts = re.split(r"^\$ ", body, flags=re.MULTILINE)
    assert parts[0] == "", f"a console block begins with $: {body[:60]!r}"
    result = []
    for part in parts[1:]:
        found = re.match(r"((?:[^\n]*\\\n)*[^\n]*\n)(.*)", part, re.DOTALL)
        assert found is not None
        result.append((found[1], found[2]))
    return result


def run(command: str, folder: Path, env: dict[str, str]) -> tuple[int, str]:
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout


def write_files(text: str, folder: Path) -> None:
    for block in blocks(text):
        if block.mark == "file":
            (folder / block.detail).write_text(block.body)


def without_last_column(text: str) -> str:
    return re.sub(r"[ ,]+\S+$", "", text, flags=re.MULTILINE)


def test_the_shell_examples_of_a_page_print_what_it_says(page: Path, tmp_path: Path) -> None:
    text = page.read_text()
    folder = tmp_path / "page"
    folder.mkdir()
    write_files(text, folder)
    env = environment()
    if os.environ.get(REWRITE):
        rewrite(page, folder, env)
        return
    for block in blocks(text):
        if block.mark != "run" or block.language != "console":
            continue
        status = 0
        for command, expected in commands(block.body):
            assert status == 0, f"only the last command of a block may fail: {block.body}"
            status, printed = run(command, folder, env)
            if "last column varies" in block.detail:
                expected, printed = without_last_column(expected), without_last_column(printed)
            assert printed == expected, f"$ {command}"
        wanted = re.search(r"status (\d+)", block.detail)
        assert status == (int(wanted[1]) if wanted else 0), block.body


# --- Python ---------------------------------------------------------------------------------------


def test_the_python_examples_of_a_page_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = page.read_text()
    write_files(text, tmp_path)
    monkeypatch.chdir(tmp_path)
    parser, names = doctest.DocTestParser(), dict[str, object]()
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
    for block in blocks(text):
        if block.language != "python":
            continue
        if ">>>" not in block.body:
            compile(block.body, str(page), "exec")  # of a framework that is not here
            continue
        line = text[: block.start].count("\n")
        example = parser.get_doctest(block.body, names, page.name, str(page), line)
        said: list[str] = []
        runner.run(example, out=said.append, clear_globs=False)
        names.update(example.globs)
        assert said == [], "".join(said)


# --- C++ ------------------------------------------------------------------------------------------


def test_the_cpp_example_of_how_to_add_a_row_compiles(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    write_files(text, tmp_path)
    sources = list(tmp_path.glob("*.cc"))
    assert sources
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    assert compiler is not None
    for source in sources:
        flags = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/src"]
        done = subprocess.run(
            [compiler, *flags, f"-I{tmp_path}", str(source)],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr


# --- what the pages promise -----------------------------------------------------------------------


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    text = BLOCK.sub("", text)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in plain}


def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    text = BLOCK.sub("", page.read_text())
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        where = (page.parent / path).resolve() if path else page
        assert where.exists(), f"{target}: there is no such file"
        if anchor:
            assert anchor in anchors(where.read_text()), f"{target}: there is no such heading"


def rules_of_the_model() -> set[str]:
    return set(
        re.findall(
            r"^\*\*([NDTMVXE][1-9]b?)\b", (ROOT / "docs" / "model.md").read_text(), re.MULTILINE
        )
    )


def test_every_rule_that_code_cites_is_in_the_model() -> None:
    known = rules_of_the_model()
    sources = [*(ROOT / "src").rglob("*.cc"), *(ROOT / "src").rglob("*.h")]
    sources += (ROOT / "python" / "pardnn").rglob("*.py")
    missing = {
        f"{rule} in {path.relative_to(ROOT)}"
        for path in sources
        for rule in RULE.findall(path.read_text())
        if rule not in known
    }
    assert missing == set()


def test_every_rule_that_a_page_cites_is_in_the_model() -> None:
    known = rules_of_the_model()
    for page in (ROOT / "docs").rglob("*.md"):
        assert set(RULE.findall(BLOCK.sub("", page.read_text()))) <= known, page


def test_every_row_stands_in_the_page_of_algorithms_with_its_summary() -> None:
    text = (ROOT / "src" / "pardnn" / "partition" / "rows.cc").read_text()
    rows = re.findall(r'\.name = "([^"]+)",\s*\.summary = "([^"]+)"', text)
    assert rows
    page = (ROOT / "docs" / "algorithm.md").read_text()
    for name, summary in rows:
        assert f"| `{name}` | {summary} |" in page


def environment_variables(source: str) -> Iterator[str]:
    """Names that a module asks `os.environ` for."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "os.environ.get":
            yield ast.literal_eval(node.args[0])


def test_every_environment_variable_that_the_package_reads_is_documented() -> None:
    for path in (ROOT / "python" / "pardnn").rglob("*.py"):
        about = "pytorch.md" if "torch" in path.parts else "tensorflow.md"
        page = (ROOT / "docs" / about).read_text()
        for name in environment_variables(path.read_text()):
            assert f"`{name}`" in page, f"{name}, which {path.relative_to(ROOT)} reads"


def test_every_decision_is_listed() -> None:
    folder = ROOT / "docs" / "decisions"
    index = (folder / "README.md").read_text()
    for page in folder.glob("*.md"):
        assert page.name == "README.md" or f"({page.name})" in index


@pytest.fixture(params=SHOWN)
def page(request: pytest.FixtureRequest) -> Path:
    return ROOT / str(request.param)


# --- rewriting ------------------------------------------------------------------------------------


def rewrite(page: Path, folder: Path, env: dict[str, str]) -> None:
    """Puts what the commands of a page print now into it."""
    text = page.read_text()
    result, at = "", 0
    for block in blocks(text):
        if block.mark != "run" or block.language != "console":
            continue
        printed = ""
        for command, _ in commands(block.body):
            printed += f"$ {command}{run(command, folder, env)[1]}"
        result += text[at : block.start] + printed
        at = block.end
    page.write_text(result + text[at:])

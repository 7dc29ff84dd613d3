"""tools/check finds each kind of broken rule and names file and line; a clean tree has none."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def check(root: Path) -> tuple[int, str]:
    """Exit status and output of the rules of tools/check on the tree `root`."""
    command = [sys.executable, str(ROOT / "tools" / "check"), "--rules-only", "--root", str(root)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.stderr == ""
    return done.returncode, done.stdout


def plant(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_tree_that_includes_downwards_is_clean(tmp_path: Path) -> None:
    plant(
        tmp_path, "src/pardnn/sim/simulate.cc", '#include <vector>\n#include "pardnn/plan/plan.h"\n'
    )
    plant(tmp_path, "src/pardnn/io/json.cc", "#include <boost/json.hpp>\n")
    plant(
        tmp_path, "src/pardnn/cli/main.cc", '#include "pardnn/io/json.h"\nint i = std::exit(1);\n'
    )
    plant(tmp_path, "python/pardnn/tensorflow/compat.py", "from keras.src import backend\n")
    assert check(tmp_path) == (0, "tools/check: 0 findings, 0 warnings\n")


# In two pieces, or this file would itself be a finding.
SOMEBODYS_FOLDER = "/home" + "/ada/"

# A file, its text with the fault on line 2, and how the finding begins after `file:2: `.
FAULTS = {
    "an include upwards": (
        "src/pardnn/graph/graph.h",
        '\n#include "pardnn/plan/plan.h"\n',
        "graph includes pardnn/plan/plan.h",
    ),
    "sim that includes check": (
        "src/pardnn/sim/simulate.cc",
        '\n#include "pardnn/check/check.h"\n',
        "sim includes pardnn/check/check.h",
    ),
    "check that includes sim": (
        "src/pardnn/check/check.cc",
        '\n#include "pardnn/sim/simulate.h"\n',
        "check includes pardnn/sim/simulate.h",
    ),
    "a checker's test that includes sim": (
        "src/pardnn/check/check_test.cc",
        '\n#include "pardnn/sim/simulate.h"\n',
        "check includes pardnn/sim/simulate.h",
    ),
    "io that includes report": (
        "src/pardnn/io/trace.cc",
        '\n#include "pardnn/report/table.h"\n',
        "io includes pardnn/report/table.h",
    ),
    "report that includes io": (
        "src/pardnn/report/table.cc",
        '\n#include "pardnn/io/json.h"\n',
        "report includes pardnn/io/json.h",
    ),
    "a folder the drawing does not have": (
        "src/pardnn/extra/extra.h",
        '\n#include "pardnn/base/ids.h"\n',
        "extra includes pardnn/base/ids.h, expected only a layer of the drawing",
    ),
    "an include beside the root": (
        "src/pardnn/plan/plan.cc",
        '\n#include "plan.h"\n',
        '"plan.h", expected a path from src',
    ),
    "Boost below io": (
        "src/pardnn/plan/plan.cc",
        "\n#include <boost/json.hpp>\n",
        "third-party header <boost/json.hpp>",
    ),
    "a header g++ 12 lacks": ("src/pardnn/base/text.cc", "\n#include <format>\n", "<format>"),
    "printing below cli": (
        "src/pardnn/plan/plan.cc",
        '\n  std::cerr << "here";\n',
        "std::cerr in plan",
    ),
    "printf in a binding": ("src/bindings/plan.cc", '\n  printf("here");\n', "printf( in bindings"),
    "the environment below cli": (
        "src/pardnn/io/files.cc",
        '\n  auto home = std::getenv("HOME");\n',
        "std::getenv in io",
    ),
    "an exit below cli": ("src/pardnn/base/error.cc", "\n  std::abort();\n", "std::abort( in base"),
    "views": ("src/pardnn/cli/main.cc", "\n  auto v = std::views::all(x);\n", "std::views"),
    "an algorithm that returns a subrange": (
        "src/pardnn/cli/main.cc",
        "\n  std::ranges::unique(names);\n",
        "std::ranges::unique, expected a loop or an older algorithm",
    ),
    "a private framework name outside compat": (
        "python/pardnn/tensorflow/run.py",
        "\nfrom tensorflow.python.eager import context\n",
        "tensorflow.python, expected private framework names in compat.py only",
    ),
    "a framework outside its package": (
        "python/pardnn/launch.py",
        "\nimport keras\n",
        "import keras, expected only inside python/pardnn/tensorflow/",
    ),
    "a path of one machine": ("docs/use.md", f"\ncd {SOMEBODYS_FOLDER}models\n", SOMEBODYS_FOLDER),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_named_with_file_and_line(tmp_path: Path, fault: str) -> None:
    name, text, message = FAULTS[fault]
    plant(tmp_path, name, text)
    status, output = check(tmp_path)
    assert status == 1
    assert output.startswith(f"{name}:2: {message}"), output
    assert output.endswith("tools/check: 1 findings, 0 warnings\n")


def test_a_header_with_boost_inside_is_for_its_own_folder(tmp_path: Path) -> None:
    plant(tmp_path, "src/pardnn/io/json.h", "#include <boost/json.hpp>\n")
    plant(tmp_path, "src/pardnn/io/fields.h", '#include "pardnn/io/json.h"\n')
    plant(tmp_path, "src/pardnn/io/fields.cc", '#include "pardnn/io/fields.h"\n')
    assert check(tmp_path)[0] == 0
    plant(tmp_path, "src/pardnn/cli/main.cc", '\n#include "pardnn/io/fields.h"\n')
    status, output = check(tmp_path)
    assert status == 1
    assert output.startswith(
        "src/pardnn/cli/main.cc:2: pardnn/io/fields.h brings <boost/json.hpp> with it"
    ), output


def test_comments_strings_and_names_that_resemble_printing_are_no_findings(tmp_path: Path) -> None:
    text = """
// std::cout is not used here, nor exit(1).
/* printf("no");
   std::views */
const char* kText = "std::cerr getenv exit(2)";
std::snprintf(buffer, 8, "x"); worker.exit(3); on_exit(4);
"""
    plant(tmp_path, "src/pardnn/plan/plan.cc", text)
    assert check(tmp_path) == (0, "tools/check: 0 findings, 0 warnings\n")


def test_a_long_file_is_a_warning_and_a_very_long_one_a_finding(tmp_path: Path) -> None:
    plant(tmp_path, "src/pardnn/base/long.cc", "int i;\n" * 401)
    assert check(tmp_path) == (
        0,
        "src/pardnn/base/long.cc:1: 401 lines, expected at most 400 (warning)\n"
        "tools/check: 0 findings, 1 warnings\n",
    )
    plant(tmp_path, "src/pardnn/base/long.cc", "int i;\n" * 601)
    assert check(tmp_path) == (
        1,
        "src/pardnn/base/long.cc:1: 601 lines, expected at most 600\n"
        "tools/check: 1 findings, 0 warnings\n",
    )


def test_this_repository_keeps_its_own_rules() -> None:
    status, output = check(ROOT)
    assert status == 0, output

"""tools/sum_results.py adds up runners, and counts a runner that told nothing as a failure."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PASSED = '<testcase classname="suite" name="good" time="0.1"/>'
FAILED = '<testcase classname="suite" name="bad"><failure message="1 != 2"/></testcase>'
BROKEN = '<testcase classname="suite" name="worse"><failure/><error/></testcase>'
SKIPPED = '<testcase classname="suite" name="later"><skipped/></testcase>'


def leave(results: Path, name: str, status: int, *cases: str) -> None:
    """What tools/run_tests leaves after a runner with these test cases."""
    (results / f"{name}.status").write_text(f"{status}\n")
    text = f"<testsuites><testsuite name='x'>{''.join(cases)}</testsuite></testsuites>"
    (results / f"{name}.xml").write_text(text)


def total(results: Path, *names: str) -> tuple[int, list[str]]:
    """Exit status and lines of the sum over the runners `names`."""
    command = [sys.executable, str(ROOT / "tools" / "sum_results.py"), str(results), *names]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout.splitlines()


def test_runners_are_summed_in_the_last_line(tmp_path: Path) -> None:
    leave(tmp_path, "unit", 0, PASSED, PASSED)
    leave(tmp_path, "core", 0, PASSED, SKIPPED)
    status, lines = total(tmp_path, "unit", "core")
    assert (status, lines[-1]) == (0, "3 passed, 0 failed")


def test_a_failed_test_is_named_and_counted_once(tmp_path: Path) -> None:
    leave(tmp_path, "unit", 1, PASSED, FAILED, BROKEN)
    status, lines = total(tmp_path, "unit")
    assert status == 1
    assert lines[1:] == [
        "  failed: unit: suite.bad",
        "  failed: unit: suite.worse",
        "1 passed, 2 failed",
    ]


@pytest.mark.parametrize("cases", [(), (SKIPPED,)])
def test_a_runner_that_ran_nothing_is_a_failure(tmp_path: Path, cases: tuple[str, ...]) -> None:
    leave(tmp_path, "unit", 0, PASSED)
    leave(tmp_path, "core", 0, *cases)
    status, lines = total(tmp_path, "unit", "core")
    assert (status, lines[-1]) == (1, "1 passed, 1 failed")
    assert "  failed: core: ran no test" in lines


def test_a_runner_that_died_after_its_tests_is_a_failure(tmp_path: Path) -> None:
    leave(tmp_path, "unit", 139, PASSED)
    status, lines = total(tmp_path, "unit")
    assert (status, lines[-1]) == (1, "1 passed, 1 failed")
    assert "  failed: unit: ended with status 139 although no test failed" in lines


def test_a_runner_that_was_not_built_is_a_failure(tmp_path: Path) -> None:
    leave(tmp_path, "unit", 0, PASSED)
    status, lines = total(tmp_path, "unit", "properties")
    assert (status, lines[-1]) == (1, "1 passed, 1 failed")


def test_results_cut_short_are_a_failure(tmp_path: Path) -> None:
    leave(tmp_path, "unit", 134, PASSED)
    (tmp_path / "unit.xml").write_text("<testsuite><testcase")
    status, lines = total(tmp_path, "unit")
    assert (status, lines[-1]) == (1, "0 passed, 1 failed")

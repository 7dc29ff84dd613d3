#!/usr/bin/env python
"""Sums the results of several test runners; the last line is `N passed, N failed`.

usage: tools/sum_results.py RESULTS NAME…
Reads RESULTS/NAME.xml (JUnit) and RESULTS/NAME.status (exit status) of every NAME. A runner without
results, or one that ran nothing or ended badly although no test of it failed, is one more failure.
The exit status is 0 only if nothing failed.
"""

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path


def judge(results: Path, name: str) -> tuple[int, int, list[str]]:
    """Passed and failed tests of the runner `name`, and a sentence for each failure."""
    try:
        status = int((results / f"{name}.status").read_text())
        cases = list(ElementTree.parse(results / f"{name}.xml").iter("testcase"))
    except FileNotFoundError:
        return 0, 1, [f"{name}: did not run (see what was printed above)"]
    except (ElementTree.ParseError, ValueError) as error:
        return 0, 1, [f"{name}: left broken results ({error})"]
    passed = 0
    failures = []
    for case in cases:
        if case.find("failure") is not None or case.find("error") is not None:
            failures.append(f"{name}: {case.get('classname')}.{case.get('name')}")
        elif case.find("skipped") is None:
            passed += 1
    if passed == 0 and not failures:
        failures.append(f"{name}: ran no test")
    elif status != 0 and not failures:
        failures.append(f"{name}: ended with status {status} although no test failed")
    return passed, len(failures), failures


def main() -> int:
    if len(sys.argv) < 3:
        sys.stderr.write("usage: tools/sum_results.py RESULTS NAME…\n")
        return 2
    total_passed = total_failed = 0
    for name in sys.argv[2:]:
        passed, failed, failures = judge(Path(sys.argv[1]), name)
        print(f"{name}: {passed} passed, {failed} failed")
        for failure in failures:
            print(f"  failed: {failure}")
        total_passed += passed
        total_failed += failed
    print(f"{total_passed} passed, {total_failed} failed")
    return 1 if total_failed else 0


if __name__ == "__main__":
    sys.exit(main())

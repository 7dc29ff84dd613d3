"""`pardnn doctor` says what is there without importing it."""

from __future__ import annotations

import json
import sys

import pytest
from stories import finished

from pardnn import doctor


def test_the_frameworks_of_this_environment_are_found_and_not_imported() -> None:
    code = (
        "import sys; from pardnn import doctor; status = doctor.main(['--json'])\n"
        "sys.exit(status or 3 * ('tensorflow' in sys.modules))"
    )
    done = finished([sys.executable, "-c", code])
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["frameworks"]["tensorflow"]["tried"] is True
    assert found["frameworks"]["keras"]["version"].startswith("3.15")
    assert found["frameworks"]["torch"] == {"version": None, "tried": False}
    assert found["cores"] >= 1
    assert found["memory_bytes"] >= found["available_bytes"] > 0


def test_people_read_one_line_per_framework(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = {"tensorflow": "2.21.0", "keras": "3.14.1", "torch": "2.9.0"}
    monkeypatch.setattr(doctor, "version_of", versions.get)
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: versions.get(name))
    assert doctor.main([]) == 0
    assert capsys.readouterr().out.splitlines()[2:] == [
        "tensorflow: 2.21.0, tried",
        "keras: 3.14.1, never tried: 3.15 was",
        "torch: 2.9.0, never tried: 2.13 was",
        "mxnet: not installed",
        "jax: not installed",
    ]

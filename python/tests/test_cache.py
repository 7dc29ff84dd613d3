"""What is remembered between runs, and what happens where nothing can be."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from pardnn import cache


def test_the_folder_is_where_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.folder("plans") == tmp_path / "pardnn" / "plans"
    assert (tmp_path / "pardnn" / "plans").is_dir()


def test_without_the_environment_it_is_in_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.folder("costs") == tmp_path / ".cache" / "pardnn" / "costs"


def test_where_nothing_can_be_written_one_warning_is_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "file"
    file.write_text("not a folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(file))
    with caplog.at_level(logging.WARNING):
        assert cache.folder("plans") is None
        assert cache.folder("costs") is None
    assert len(caplog.records) == 1
    assert "nothing is remembered for the next run" in caplog.text


def test_a_key_tells_all_its_parts_apart() -> None:
    assert cache.key("ab", "c") != cache.key("a", "bc")
    assert cache.key("ab", "c") == cache.key("ab", "c")


def test_a_file_is_written_whole_or_not_at_all(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache.write(tmp_path / "plan.json", "new")
    assert (tmp_path / "plan.json").read_text() == "new"
    cache.write(tmp_path / "no such folder" / "plan.json", "new")
    assert "was not written" in caplog.text
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]

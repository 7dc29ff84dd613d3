"""The reference runner reports what a script printed, how it ended and what it needed."""

from __future__ import annotations

import pathlib

import pytest

from end_to_end.tensorflow import ordinary


def script(folder: pathlib.Path, text: str) -> pathlib.Path:
    path = folder / "script.py"
    path.write_text(text)
    return path


def test_only_lines_that_are_json_objects_are_records() -> None:
    text = 'hello\n{"loss": 0.1}\n{broken\n[1, 2]\n  {"loss": 0.2}\n{"step": 2, "loss": 3e-05}\n'

    assert ordinary.read_records(text) == [{"loss": 0.1}, {"step": 2, "loss": 3e-05}]


def test_a_script_sees_itself_as_main_and_its_own_arguments(tmp_path: pathlib.Path) -> None:
    path = script(
        tmp_path,
        'import json, sys\nif __name__ == "__main__":\n'
        '    print(json.dumps({"loss": 0.1 + 0.2, "args": sys.argv[1:]}))\n    sys.exit(3)\n',
    )

    run = ordinary.run(path, ["--peak", "x"])

    assert run.status == 3
    assert run.records == [{"loss": 0.30000000000000004, "args": ["--peak", "x"]}]
    assert run.losses == [0.30000000000000004]
    assert run.peak_bytes is None


def test_the_peak_counts_every_tensor_that_lives_at_once(tmp_path: pathlib.Path) -> None:
    path = script(
        tmp_path,
        "import tensorflow as tf\n"
        "a = tf.zeros([4, 1 << 20])\n"  # 16 MiB, and
        "b = a + 1.0\n"  # as many again while `a` lives, and at most some scalars
        "del a, b\n",
    )

    run = ordinary.run(path, peak=True)

    assert run.status == 0
    assert run.peak_bytes is not None
    assert 32 << 20 <= run.peak_bytes <= (32 << 20) + 8192


def test_an_interrupted_script_keeps_what_it_printed(tmp_path: pathlib.Path) -> None:
    path = script(
        tmp_path,
        "import os, signal, time\n"
        "print('{\"loss\": 1.5}', flush=True)\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # also where tests run with &
        "os.kill(os.getpid(), signal.SIGINT)\n"
        "time.sleep(60)\n",
    )

    run = ordinary.run(path)

    assert run.status == 130
    assert run.losses == [1.5]


def test_a_limited_allocator_refuses_with_the_error_of_tensorflow(tmp_path: pathlib.Path) -> None:
    path = script(tmp_path, "import tensorflow as tf\ntf.zeros([10, 1 << 20])\n")  # 40 MiB

    run = ordinary.run(path, memory_mib=32)

    assert run.status == 1
    assert run.error is not None
    assert run.error.startswith("ResourceExhaustedError")
    assert "OOM when allocating tensor with shape[10,1048576]" in run.error


def test_a_run_that_hangs_is_ended(tmp_path: pathlib.Path) -> None:
    path = script(tmp_path, "import time\ntime.sleep(600)\n")

    with pytest.raises(ordinary.subprocess.TimeoutExpired):
        ordinary.run(path, timeout_s=1)

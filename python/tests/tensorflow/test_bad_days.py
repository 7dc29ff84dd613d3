"""Whatever goes wrong in a run: one message in time, a status that is not 0, no process left."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest
from stories import Running, finished, none_left, pardnn_run, running

# A model small enough to train for ever at a step in a few milliseconds.
_SCRIPT = """
import sys
import keras
import numpy as np

keras.utils.set_random_seed(0)
model = keras.Sequential(
    [keras.Input((64,))] + [keras.layers.Dense(64, activation="relu") for _ in range(4)]
)
model.compile("adam", loss="mse")
data = np.random.default_rng(0).random((32, 64), "float32")

class Say(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        print("step", batch, flush=True)
        if "raise" in sys.argv:
            raise KeyError("of the script")

model.fit(data, data, batch_size=16, epochs=int(sys.argv[1]), verbose=0, callbacks=[Say()])
"""
_FOR_EVER = "100000"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(_SCRIPT)
    return path


@pytest.fixture
def training(script: Path, tmp_path: Path):
    """A run over two workers that trains until something happens to it."""
    command = pardnn_run("--devices", "2", "--memory", "200MiB", script, _FOR_EVER)
    with running(command, tmp_path / "output") as run:
        run.wait_for("step 1")
        yield run


def _messages(run: Running) -> list[str]:
    return [line for line in run.output().splitlines() if line.startswith("pardnn run:")]


def test_a_killed_worker_is_named_once(training: Running) -> None:
    workers = training.workers()
    assert len(workers) == 2
    began = time.monotonic()
    workers[1].kill()
    assert training.ended_within(15.0) == 1
    assert time.monotonic() - began < 15.0
    (message,) = _messages(training)
    assert message.startswith("pardnn run: worker 1 was ended by signal 9 (SIGKILL)")
    assert "Traceback" not in training.output()
    assert none_left(workers)


def test_destructors_that_miss_a_worker_print_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import tensorflow as tf

    from pardnn.tensorflow import session

    class Ends:
        def __init__(self, error: Exception) -> None:
            self._error = error

        def __del__(self) -> None:
            raise self._error

    monkeypatch.setattr(sys, "unraisablehook", sys.__unraisablehook__)
    session._log_failing_destructors()
    Ends(tf.errors.UnavailableError(None, None, "recvmsg:Connection reset by peer"))
    assert capsys.readouterr().err == ""
    Ends(KeyError("of the script"))
    assert "KeyError: 'of the script'" in capsys.readouterr().err


def test_a_frozen_worker_is_ended_and_named_once(training: Running) -> None:
    workers = training.workers()
    began = time.monotonic()
    workers[0].suspend()
    assert training.ended_within(15.0) == 1
    assert time.monotonic() - began < 15.0
    (message,) = _messages(training)
    assert message.startswith("pardnn run: worker 0 gave no sign of life for ")
    assert "Traceback" not in training.output()
    assert none_left(workers)


def test_ctrl_c_in_a_terminal_ends_everything(training: Running) -> None:
    workers = training.workers()
    training.signal(signal.SIGINT, group=True)
    assert training.ended_within(15.0) == 130
    assert training.output().rstrip().endswith("KeyboardInterrupt")
    assert _messages(training) == []
    assert none_left(workers)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_killed_chief_takes_its_workers_along(training: Running, number: signal.Signals) -> None:
    workers = training.workers()
    training.signal(number)
    assert training.ended_within(5.0) == -number
    assert none_left(workers)


def test_a_killed_chief_takes_a_frozen_worker_along(training: Running) -> None:
    workers = training.workers()
    workers[0].suspend()
    training.signal(signal.SIGKILL)
    assert training.ended_within(5.0) == -signal.SIGKILL
    assert none_left(workers)


def test_ctrl_z_and_fg_harm_nothing(training: Running) -> None:
    # A terminal stops and continues the whole group. Longer than a worker may be silent.
    training.signal(signal.SIGSTOP, group=True)
    time.sleep(12.0)
    before = training.output().count("step")
    training.signal(signal.SIGCONT, group=True)
    end = time.monotonic() + 20.0
    while training.output().count("step") < before + 20:
        assert time.monotonic() < end and training.process.poll() is None, training.output()[-2000:]
        time.sleep(0.1)


def test_the_scripts_exception_is_its_own(script: Path) -> None:
    done = finished(pardnn_run("--devices", "2", script, "1", "raise"))
    assert done.returncode == 1
    trace = done.stderr[done.stderr.index("Traceback") :].splitlines()
    assert trace[1].startswith(f'  File "{script}", line ')
    assert trace[-1] == "KeyError: 'of the script'"
    assert "pardnn run:" not in done.stderr


def test_the_scripts_exit_status_passes_through(tmp_path: Path) -> None:
    script = tmp_path / "leaves.py"
    script.write_text(
        "import tensorflow, sys, atexit\natexit.register(print, 'bye')\nsys.exit(7)\n"
    )
    done = finished(pardnn_run("--devices", "1", script))
    assert (done.returncode, done.stdout) == (7, "bye\n")


def test_a_missing_tensorflow_is_one_sentence(script: Path, tmp_path: Path) -> None:
    # A finder that knows no TensorFlow stands before the others.
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text(
        "import importlib.util as u\n"
        "find = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'tensorflow' else find(name, *a)\n"
    )
    path = os.pathsep.join([str(hidden), os.environ.get("PYTHONPATH", "")])
    done = finished(pardnn_run(script, "1"), PYTHONPATH=path)
    assert done.returncode == 2
    assert done.stderr == (
        "pardnn run: tensorflow is not installed here; "
        "pip install 'tensorflow-cpu==2.21.*' 'keras==3.15.*'\n"
    )


def test_an_untried_version_is_one_sentence(script: Path, tmp_path: Path) -> None:
    found = tmp_path / "tensorflow_cpu-2.20.0.dist-info"
    found.mkdir()
    (found / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: tensorflow-cpu\nVersion: 2.20.0\n"
    )
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = finished(pardnn_run(script, "1"), PYTHONPATH=path)
    assert done.returncode == 2
    assert done.stderr == (
        "pardnn run: tensorflow 2.20.0 was never tried, 2.21.* was; "
        "pip install 'tensorflow-cpu==2.21.*' 'keras==3.15.*', "
        "or set PARDNN_ANY_VERSION=1 to see how far it gets\n"
    )


def test_more_devices_than_sense_is_one_message(script: Path) -> None:
    done = finished(pardnn_run("--devices", "5000", script, "1"))
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        "pardnn run: 5000 devices: at most 64 workers can be started"
    )


def test_a_model_too_large_is_refused_before_any_step(tmp_path: Path) -> None:
    script = tmp_path / "large.py"
    script.write_text(
        "import keras\n"
        "keras.Sequential([keras.Input((4096,)), keras.layers.Dense(4096)])\n"
        "print('built')\n"
    )
    done = finished(pardnn_run("--devices", "2", "--memory", "40MiB", script))
    assert (done.returncode, done.stdout) == (1, "")
    message = done.stderr[done.stderr.index("pardnn run:") :]
    # 4096 * 4096 floats are 67,108,864 bytes, and 40 MiB are 41,943,040.
    assert "variable kernel needs 67108864 bytes" in message
    assert "worker 0 holds 0 of 41943040 bytes" in message
    assert "Traceback" not in done.stderr


def test_a_wrong_machine_file_is_one_message(script: Path, tmp_path: Path) -> None:
    machine = tmp_path / "machine.json"
    machine.write_text('{"pardnn_machine": 1, "devices": [{"name": "a", "memory": "lots"}]}')
    done = finished(pardnn_run("--machine", machine, script, "1"))
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line == (
        f'pardnn run: {machine}: devices[0].memory: found "lots", '
        "expected bytes such as 700MiB or 16GiB"
    )


def test_an_unwritable_cache_is_said_once_and_nothing_is_lost(script: Path) -> None:
    done = finished(pardnn_run("--devices", "1", script, "1"), XDG_CACHE_HOME="/proc/nowhere")
    assert done.returncode == 0, done.stderr
    assert "step 1" in done.stdout
    assert done.stderr.count("/proc/nowhere/pardnn cannot be written") == 1


def test_a_plan_of_another_graph_is_one_message(script: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    done = finished(pardnn_run("--devices", "1", "--save-plan", plan, script, "1"))
    assert done.returncode == 0, done.stderr
    other = tmp_path / "other.py"
    other.write_text(_SCRIPT.replace("range(4)", "range(3)"))
    done = finished(pardnn_run("--devices", "1", "--plan", plan, other, "1"))
    assert done.returncode == 2
    assert "step" not in done.stdout
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("pardnn run:")]
    assert str(plan) in line
    assert "Traceback" not in done.stderr

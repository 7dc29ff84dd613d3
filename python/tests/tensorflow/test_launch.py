"""`pardnn run`: options, the framework found without a run, and the script as __main__."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from stories import finished, pardnn_run

import pardnn
from pardnn import launch
from pardnn.errors import UsageError
from pardnn.quantities import parse_bytes, show_bytes
from pardnn.script import frameworks_of

MIB = 1 << 20


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text("import keras\n")
    return path


def test_sizes_are_read_as_the_planner_reads_them() -> None:
    assert parse_bytes("700MiB") == 700 * 1024 * 1024
    assert parse_bytes("1.5 GiB") == 3 * 512 * 1024 * 1024
    assert parse_bytes("2GB") == 2_000_000_000
    assert parse_bytes("3KB") == 3000
    assert parse_bytes("4096") == 4096
    for wrong in ("", "MiB", "-1MiB", "1.5", "0.1KiB", "7 bananas", "1mib"):
        with pytest.raises(ValueError, match="is not a size; expected whole bytes such as 700MiB"):
            parse_bytes(wrong)
    assert show_bytes(1.5 * 2**30) == "1.5 GiB"
    assert show_bytes(100) == "100 bytes"


def test_one_size_is_for_all_and_several_are_one_each(script: Path) -> None:
    options = launch.parse(["--devices", "3", "--memory", "700MiB", str(script), "--epochs", "2"])
    assert options.devices == 3
    assert options.memory == (700 * MIB,) * 3
    assert options.arguments == ("--epochs", "2")
    options = launch.parse(["--memory", "400MiB,700MiB,1GiB", str(script)])
    assert (options.devices, options.memory) == (3, (400 * MIB, 700 * MIB, 1024 * MIB))
    options = launch.parse([str(script)])
    assert (options.devices, options.memory) == (2, (None, None))


def test_what_stands_behind_the_script_is_the_scripts(script: Path) -> None:
    options = launch.parse([str(script), "--devices", "9", "--dry-run"])
    assert (options.devices, options.dry_run) == (2, False)
    assert options.arguments == ("--devices", "9", "--dry-run")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--devices", "2", "none.py"], "none.py: there is no such file; expected a Python script"),
        (["/tmp"], "/tmp: is a folder; expected a Python script"),
        ([], "a script is missing; 'pardnn run --help' shows what there is"),
        (["--algorithm", "best", "SCRIPT"], "--algorithm best: no such algorithm; there are "
         + ", ".join(pardnn.algorithms())),
        (["--device", "2", "x.py"], "unrecognized arguments: --device; "
         "'pardnn run --help' shows what there is"),
        (["--devices", "two", "SCRIPT"], "argument --devices: invalid int value: 'two'; "
         "'pardnn run --help' shows what there is"),
        (["--devices", "0", "SCRIPT"], "--devices 0: expected at least 1"),
        (["--devices", "2", "--memory", "1GiB,2GiB,3GiB", "SCRIPT"],
         "--devices 2, but --memory names 3 sizes"),
        (["--memory", "much", "SCRIPT"], "--memory: 'much' is not a size; "
         "expected whole bytes such as 700MiB, 1.5GiB or 2GB"),
        (["--machine", "none.json", "SCRIPT"], "none.json: there is no such file"),
        (["--plan", "none.json", "SCRIPT"], "none.json: there is no such file"),
        (["--machine", "SCRIPT", "--devices", "2", "SCRIPT"],
         "--machine says what the devices are; drop --devices and --memory"),
        (["--margin", "1000", "SCRIPT"], "--margin 1000: expected 0 to 999 (per mille)"),
        (["--threads", "0", "SCRIPT"], "--threads 0: expected at least 1"),
        (["--json-out", "/nowhere/x.json", "SCRIPT"],
         "/nowhere/x.json: its folder does not exist"),
    ],
)  # fmt: skip
def test_wrong_options_are_one_message_and_status_2(
    arguments: list[str], message: str, script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert launch.main([a.replace("SCRIPT", str(script)) for a in arguments]) == 2
    assert capsys.readouterr().err == f"pardnn run: {message}\n"


def test_ctrl_c_before_the_script_begins_is_one_word(
    script: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from pardnn.tensorflow import session

    def interrupted(_: launch.RunOptions) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(session, "run", interrupted)
    assert launch.main([str(script)]) == 130
    assert capsys.readouterr().err == "pardnn run: interrupted\n"


def test_help_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        launch.main(["--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert "pardnn run --devices 3 --memory 700MiB train.py --epochs 2" in shown
    for option in ("--machine", "--dry-run", "--plan", "--save-plan", "--json-out", "--framework"):
        assert option in shown


def test_a_machine_file_names_devices_memory_and_hosts(script: Path, tmp_path: Path) -> None:
    pardnn = pytest.importorskip("pardnn")
    machine = json.loads(
        pardnn.Machine.uniform(
            devices=2, memory=[64 * MIB, 96 * MIB], bandwidth=10**9, overhead=1000, latency=0
        ).text()
    )
    path = tmp_path / "machine.json"
    path.write_text(json.dumps(machine))
    options = launch.parse(["--machine", str(path), str(script)])
    assert (options.devices, options.memory, options.addresses) == (2, (64 * MIB, 96 * MIB), ())
    machine["devices"][0]["address"] = "node0:5000"
    path.write_text(json.dumps(machine))
    with pytest.raises(UsageError, match="either all devices have an address, or none has"):
        launch.parse(["--machine", str(path), str(script)])
    machine["devices"][1]["address"] = "node1:5000"
    path.write_text(json.dumps(machine))
    options = launch.parse(["--machine", str(path), str(script)])
    assert options.addresses == ("node0:5000", "node1:5000")
    path.write_text('{"pardnn_machine": 1}')
    with pytest.raises(UsageError, match=str(path)):
        launch.parse(["--machine", str(path), str(script)])


# --- which framework ------------------------------------------------------------------------------


def _frameworks(folder: Path, **files: str) -> list[str]:
    for name, text in files.items():
        path = folder / (name.replace("__", "/") + ".py")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return frameworks_of(folder / "main.py")


def test_the_framework_is_found_in_the_script_and_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KERAS_BACKEND", raising=False)
    assert _frameworks(tmp_path, main="import numpy") == []
    assert _frameworks(tmp_path, main="import tensorflow.keras as k") == ["tensorflow"]
    assert _frameworks(tmp_path, main="def f():\n  from keras import layers") == ["tensorflow"]
    assert _frameworks(tmp_path, main="import torch, tensorflow") == ["tensorflow", "torch"]
    assert _frameworks(
        tmp_path, main="from models import net", models__net="from . import base",
        models__base="import torch",
    ) == ["torch"]  # fmt: skip
    assert _frameworks(tmp_path, main="import net", net="import jax") == ["jax"]
    assert _frameworks(
        tmp_path, main="import importlib\nimportlib.import_module('mxnet')"
    ) == ["mxnet"]  # fmt: skip


def test_keras_counts_as_what_it_runs_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KERAS_BACKEND", raising=False)
    in_script = "import os\nos.environ['KERAS_BACKEND'] = 'jax'\nimport keras"
    assert _frameworks(tmp_path, main=in_script) == ["jax"]
    assert _frameworks(tmp_path, main="import keras, torch") == ["torch"]
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    assert _frameworks(tmp_path, main="import keras") == ["torch"]


def test_no_framework_or_two_are_asked_about(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "main.py"
    script.write_text("import json")
    assert launch.main([str(script)]) == 2
    assert capsys.readouterr().err == (
        f"pardnn run: {script} imports no framework; say which one with --framework\n"
    )
    script.write_text("import torch, jax")
    assert launch.main([str(script)]) == 2
    assert "imports jax and torch; say which" in capsys.readouterr().err
    assert launch.main(["--framework", "jax", str(script)]) == 2
    assert "uses jax; this version trains with tensorflow and torch" in capsys.readouterr().err
    assert launch.main(["--framework", "torch", str(script)]) == 2
    assert "torch is not installed here; pip install torch==2.13.0" in capsys.readouterr().err


def test_finding_out_imports_no_framework(script: Path) -> None:
    code = (
        "import sys; from pardnn import launch, script; from pathlib import Path\n"
        f"launch.parse([{str(script)!r}]); script.frameworks_of(Path({str(script)!r}))\n"
        "print(sorted({'tensorflow', 'keras', 'h5py'} & set(sys.modules)))"
    )
    assert finished([sys.executable, "-c", code]).stdout == "[]\n"


# --- the script -----------------------------------------------------------------------------------


def test_a_script_runs_as_python_would_run_it(tmp_path: Path) -> None:
    (tmp_path / "neighbour.py").write_text("NAME = __name__\n")
    script = tmp_path / "main.py"
    script.write_text(
        "import sys, json, tensorflow as tf\nimport neighbour, __main__\n"
        "class Kept: pass\n"
        "here = tf.Variable(1.0).device\n"
        "tf.config.threading.set_intra_op_parallelism_threads(3)\n"
        "print(json.dumps([__name__, __file__, sys.argv, sys.path[0], neighbour.NAME,\n"
        "    __main__.Kept is Kept, here[:11]]))\n"
        "sys.exit('a last word')\n"
    )
    done = finished(pardnn_run("--devices", "1", "--memory", "64MiB", script, "-x", "1"))
    assert json.loads(done.stdout.splitlines()[-1]) == [
        "__main__",
        str(script),
        [str(script), "-x", "1"],
        str(tmp_path),
        "neighbour",
        True,
        "/job:worker",
    ]
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "a last word"
    # TensorFlow takes this setting only before it runs, and then raises.
    assert (
        "pardnn run: the script's call of tf.config.threading.set_intra_op_parallelism_threads "
        "has no effect: --threads decides\n" in done.stderr
    )


@pytest.mark.parametrize("options", [[], ["--framework", "tensorflow", "--devices", "1"]])
def test_a_syntax_error_is_pythons_own(options: list[str], tmp_path: Path) -> None:
    script = tmp_path / "main.py"
    script.write_text("import tensorflow\nif:\n")
    done = finished(pardnn_run(*options, script))
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("SyntaxError: ")
    assert f'  File "{script}", line 2' in done.stderr
    assert "launch.py" not in done.stderr

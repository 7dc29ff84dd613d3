"""What Keras users do gives the ordinary run's numbers over two workers, to the last bit."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from stories import finished, pardnn_run, story

MIB = 1 << 20
HERE = Path(__file__).parent
FEATURES = HERE / "features.py"
ORDINARY = HERE.parents[2] / "tests" / "end_to_end" / "tensorflow" / "ordinary.py"
CASES = [
    node.name
    for file in (HERE / "features_inside.py", FEATURES)
    for node in ast.parse(file.read_text()).body
    if isinstance(node, ast.FunctionDef) and node.decorator_list
]


def results(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr[-4000:]
    lines = [line for line in done.stdout.splitlines() if line.startswith("[")]
    return dict(map(json.loads, lines))


@pytest.fixture(scope="module")
def ordinary() -> dict[str, Any]:
    return results(finished([sys.executable, str(ORDINARY), str(FEATURES)]))


@pytest.fixture(scope="module")
def placed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The same over two workers; `chunks` cuts every step in two, however small it is."""
    folder = tmp_path_factory.mktemp("placed")
    options = ["--devices", "2", "--algorithm", "chunks", "--json-out", str(folder / "run.json")]
    command = pardnn_run(*options, FEATURES)
    done = finished(command, XDG_CACHE_HOME=str(folder))
    report = json.loads((folder / "run.json").read_text())
    return results(done), report, done.stderr, done.stdout


def test_all_cases_are_here() -> None:
    assert len(CASES) == 23


@pytest.mark.parametrize("case", CASES)
def test_a_case_gives_the_ordinary_numbers(
    ordinary: dict[str, Any], placed: Any, case: str
) -> None:
    assert not isinstance(ordinary[case], str), ordinary[case]
    assert placed[0][case] == ordinary[case]


def test_both_workers_held_tensors_of_a_step(placed: Any) -> None:
    _, report, *_ = placed
    trained = [f for f in report["functions"] if f["training"] and f["steps"] > 2]
    assert trained
    assert all(min(f["predicted_peak_bytes"]) > 0 for f in trained)
    assert any(f["bytes_sent"] > 0 for f in trained)


def test_what_cannot_be_placed_as_asked_is_said_in_one_line(placed: Any) -> None:
    _, _, said, _ = placed
    assert said.count("run_eagerly: pardnn traces the step") == 1
    assert said.count("is called under a GradientTape outside of it and is not placed") == 1


def test_what_a_step_prints_is_printed_here(placed: Any) -> None:
    _, _, _, printed = placed
    assert printed.count("printed by the step: ") == 4


def test_the_run_ends_with_a_table(placed: Any) -> None:
    _, _, said, _ = placed
    assert "plan by chunks" in said
    assert "predicted peak" in said
    assert "ms on one device, no plan below" in said


SCRIPT = """
import keras, numpy as np
x, y = np.ones((16, 4000), "f"), np.zeros((16, 1), "f")
model = keras.Sequential([keras.Input((4000,)), keras.layers.Dense(3000), keras.layers.Dense(1)])
model.compile("adam", "mse"{options})
model.fit(x, y, 8, verbose=0)
print("trained")
"""


def script(folder: Path, options: str = "") -> Path:
    path = folder / "train.py"
    path.write_text(SCRIPT.format(options=options))
    return path


def test_a_dry_run_ends_with_the_table_and_trains_nothing(tmp_path: Path) -> None:
    command = pardnn_run("--dry-run", "--devices", "3", "--memory", "400MiB", script(tmp_path))
    done = finished(command, XDG_CACHE_HOME=str(tmp_path))
    assert done.returncode == 0, done.stderr[-4000:]
    assert "trained" not in done.stdout
    assert "not run" in done.stderr


def test_a_saved_plan_is_used_again_and_refused_where_it_cannot_hold(tmp_path: Path) -> None:
    plan, report = tmp_path / "plan.json", tmp_path / "run.json"
    cached = {"XDG_CACHE_HOME": str(tmp_path)}
    first = ["--devices", "2", "--memory", "400MiB", "--algorithm", "chunks"]
    first += ["--save-plan", str(plan), "--json-out", str(report)]
    done = finished(pardnn_run(*first, script(tmp_path)), **cached)
    assert done.returncode == 0, done.stderr[-4000:]
    second = ["--devices", "2", "--memory", "400MiB", "--plan", plan]
    done = finished(pardnn_run(*second, script(tmp_path)), **cached)
    assert (done.returncode, done.stdout) == (0, "trained\n"), done.stderr[-4000:]
    assert "plan by chunks" in done.stderr
    planned = json.loads(report.read_text())["functions"][0]
    too_little = max(planned["predicted_peak_bytes"]) // MIB
    done = finished(
        pardnn_run(
            "--memory", f"{too_little}MiB", "--devices", "2", "--plan", plan, script(tmp_path)
        ),
        **cached,
    )
    assert done.returncode == 2
    assert f"--plan {plan}: it needs " in done.stderr
    other = script(tmp_path)
    other.write_text(other.read_text().replace("3000", "2000"))
    done = finished(pardnn_run(*second, other), **cached)
    assert done.returncode == 2
    assert f"--plan {plan}: " in done.stderr
    assert "Traceback" not in done.stderr


def test_a_strategy_of_the_scripts_own_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text("import tensorflow as tf\ntf.distribute.MirroredStrategy()\n")
    done = finished(pardnn_run(path))
    assert done.returncode == 1
    assert "this script uses tf.distribute.MirroredStrategy" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_does_not_fit_is_said_before_any_step(tmp_path: Path) -> None:
    command = pardnn_run("--devices", "2", "--memory", "100MiB", script(tmp_path))
    done = finished(command, XDG_CACHE_HOME=str(tmp_path))
    assert (done.returncode, done.stdout) == (1, "")
    assert "does not fit" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_program_distributes_its_model_and_takes_it_back(tmp_path: Path) -> None:
    printed = story(
        f"""
        os.environ["XDG_CACHE_HOME"] = {str(tmp_path)!r}
        import keras, numpy as np, pardnn, pardnn.tensorflow, tensorflow as tf
        tf.config.optimizer.set_experimental_options({{"disable_meta_optimizer": True}})
        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(1)
        x, y = np.random.RandomState(0).rand(32, 50).astype("f"), np.arange(32) % 5

        def model():
            keras.utils.set_random_seed(1)
            hidden = [keras.layers.Dense(60, "relu") for _ in range(3)]
            model = keras.Sequential([keras.Input((50,)), *hidden, keras.layers.Dense(5)])
            loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
            model.compile("adam", loss)
            return model

        def again(model):
            return model.fit(x, y, 8, verbose=0, shuffle=False).history

        plain, placed = model(), model()
        expected = plain.fit(x, y, 8, 2, verbose=0, shuffle=False).history
        machine = pardnn.Machine.uniform(devices=2, memory=[2**25] * 2, kind="cpu")
        batch = (x[:8], y[:8])
        with pardnn.tensorflow.distribute(placed, batch, machine, algorithm="chunks") as found:
            assert len(set(found.training_plan.plan.device_of.values())) == 2
            assert placed.fit(x, y, 8, 2, verbose=0, shuffle=False).history == expected
            assert all("worker" in v.value.device for v in placed.weights)
            assert found.report()["functions"][0]["steps"] == 8
        assert all((a == b).all() for a, b in zip(plain.get_weights(), placed.get_weights()))
        assert again(placed) == again(plain)
        print("equal", flush=True)
        """
    )
    assert printed.endswith("equal\n")


def test_a_program_captures_twice_plans_and_applies(tmp_path: Path) -> None:
    """Two outputs: Keras makes the means of their losses while the step is traced."""
    printed = story(
        f"""
        os.environ["XDG_CACHE_HOME"] = {str(tmp_path)!r}
        import keras, numpy as np, pardnn, pardnn.tensorflow
        rng = np.random.RandomState(0)
        x, y = rng.rand(32, 50).astype("f"), [rng.rand(32, 5), rng.rand(32, 3)]

        def model():
            keras.utils.set_random_seed(1)
            given = keras.Input((50,))
            hidden = keras.layers.Dense(60, "relu")(given)
            outputs = [keras.layers.Dense(n, name=f"out_{{n}}")(hidden) for n in (5, 3)]
            model = keras.Model(given, outputs)
            model.compile("adam", ["mse", "mae"])
            return model

        plain, placed = model(), model()
        expected = plain.fit(x, y, 8, verbose=0, shuffle=False).history
        machine = pardnn.Machine.uniform(devices=2, memory=[2**25] * 2, kind="cpu")
        batch = (x[:8], [one[:8] for one in y])
        captured = [pardnn.tensorflow.capture(placed, batch) for _ in range(2)]
        assert all(c.variable is not None for one in captured for c in one.capture.captured)
        training = pardnn.tensorflow.plan(captured[1], machine)
        with pardnn.tensorflow.apply(placed, training):
            found = placed.fit(x, y, 8, verbose=0, shuffle=False).history
            evaluated = placed.evaluate(x, y, 8, verbose=0)
        assert found.keys() == expected.keys()
        assert all(np.allclose(found[k], expected[k], rtol=1e-5) for k in found), (found, expected)
        assert np.allclose(evaluated, plain.evaluate(x, y, 8, verbose=0), rtol=1e-5)
        print("equal", flush=True)
        """
    )
    assert printed.endswith("equal\n")

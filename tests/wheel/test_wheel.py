"""The wheel holds all that a user needs, and works in an environment with nothing else of ours."""

import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def run(*command: str | Path, cwd: Path) -> str:
    """Standard output of a command that must succeed."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=1200,
    )
    assert done.returncode == 0, f"{command}: {done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout, built with the tools and in the tree of `make python`."""
    folder = tmp_path_factory.mktemp("wheel")
    pip_wheel = (sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation")
    run(
        *pip_wheel,
        f"--config-settings=build-dir={ROOT}/build/python",
        "-w",
        folder,
        ROOT,
        cwd=folder,
    )
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs' folder of a fresh environment with the wheel and what it depends on."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    run(folder / "bin" / "python", "-m", "pip", "install", "--quiet", wheel, cwd=folder)
    return folder / "bin"


def test_the_wheel_holds_every_python_file_and_the_licence(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    package = ROOT / "python"
    sources = {
        path.relative_to(package).as_posix()
        for pattern in ("*.py", "*.pyi", "py.typed")
        for path in (package / "pardnn").rglob(pattern)
    }
    assert sources - names == set()
    assert f"pardnn-{VERSION}.dist-info/licenses/LICENSE" in names
    assert any(name.startswith("pardnn/_core.") and name.endswith(".so") for name in names)
    assert f"pardnn-{VERSION}.data/scripts/pardnn" in names


def test_the_wheel_holds_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    allowed = ("pardnn/", f"pardnn-{VERSION}.dist-info/", f"pardnn-{VERSION}.data/scripts/")
    assert [name for name in names if not name.startswith(allowed)] == []
    assert [name for name in names if "__pycache__" in name or "test" in name] == []


def test_the_installed_program_and_package_say_the_same_version(environment: Path) -> None:
    program = run(environment / "pardnn", "--version", cwd=environment)
    assert program.split() == ["pardnn", VERSION]
    script = "import pardnn; print(pardnn.__version__)"
    assert run(environment / "python", "-c", script, cwd=environment).strip() == VERSION


def test_the_installed_program_plans_a_graph(environment: Path, tmp_path: Path) -> None:
    run(environment / "pardnn", "generate", "chain", "--ops", "20", "-o", "g.pdg", cwd=tmp_path)
    machine = ("--devices", "2", "--memory", "1GiB", "--bandwidth", "10GB/s")
    run(environment / "pardnn", "plan", "g.pdg", *machine, "-o", "plan.json", cwd=tmp_path)
    run(environment / "pardnn", "check", "g.pdg", "plan.json", cwd=tmp_path)
    script = (
        "import pardnn; graph = pardnn.Graph.read('g.pdg'); "
        "print(pardnn.Plan.read('plan.json', graph).fits)"
    )
    assert run(environment / "python", "-c", script, cwd=tmp_path).strip() == "True"


def test_the_installed_program_reads_files_of_other_programs(
    environment: Path, tmp_path: Path
) -> None:
    (tmp_path / "tasks.dot").write_text('digraph { a [duration="1us" size="8"]; a -> b }')
    run(environment / "pardnn", "convert", "tasks.dot", "g.pdg", cwd=tmp_path)
    assert "op a Node 1000 > 8" in (tmp_path / "g.pdg").read_text()
    assert "source        dot" in run(environment / "pardnn", "info", "tasks.dot", cwd=tmp_path)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_pip_installs_the_checkout_into_a_fresh_environment(tmp_path: Path) -> None:
    """As a user does it: pip alone, its own isolated build, no make."""
    venv.create(tmp_path / "environment", with_pip=True)
    programs = tmp_path / "environment" / "bin"
    run(programs / "python", "-m", "pip", "install", "--quiet", ROOT, cwd=tmp_path)
    assert run(programs / "pardnn", "--version", cwd=tmp_path).split() == ["pardnn", VERSION]

"""The user's script: which framework it uses, found without running it, and its run as __main__."""

from __future__ import annotations

import ast
import os
import sys
import traceback
import types
from collections.abc import Iterator, Sequence
from pathlib import Path

from pardnn.errors import UsageError

FRAMEWORKS = {
    "tensorflow": "tensorflow",
    "tf_keras": "tensorflow",
    "torch": "torch",
    "mxnet": "mxnet",
    "jax": "jax",
    "flax": "jax",
}


def frameworks_of(script: Path) -> list[str]:
    """The frameworks that ``script`` and the modules of its own folder import, sorted.

    Keras counts as what it runs on: the environment variable KERAS_BACKEND, also where the script
    sets it, else TensorFlow. Raises UsageError where the script cannot be read, and Python's own
    SyntaxError or ValueError where it is not Python.
    """
    names, backend = _imports(script)
    found = {FRAMEWORKS[name] for name in names if name in FRAMEWORKS}
    if "keras" in names:
        backend = backend or os.environ.get("KERAS_BACKEND") or "tensorflow"
        if not found or backend != "tensorflow":
            found.add(FRAMEWORKS.get(backend, backend))
    return sorted(found)


def _imports(script: Path) -> tuple[set[str], str | None]:
    """Names of the modules imported below the script, and the backend it asks Keras for."""
    names: set[str] = set()
    backend: str | None = None
    pending, seen = [script], {script.resolve()}
    while pending:
        file = pending.pop()
        tree = _parsed(file, main=script)
        if tree is None:
            continue
        backend = backend or _keras_backend(tree)
        for module, level in _imported_modules(tree):
            if level == 0:
                names.add(module.partition(".")[0])
            folder = script.parent if level == 0 else [file, *file.parents][level]
            for path in _own_files(folder, module):
                if path.resolve() not in seen:
                    seen.add(path.resolve())
                    pending.append(path)
    return names, backend


def _parsed(path: Path, main: Path) -> ast.Module | None:
    """The file's syntax tree; None where Python itself will say what is wrong, if it gets there."""
    try:
        return ast.parse(path.read_bytes(), filename=str(path))
    except (SyntaxError, ValueError):
        if path != main:
            return None
        raise
    except OSError as error:
        if path != main:
            return None
        raise UsageError(f"{path}: {error.strerror}; expected a Python script") from None


def _imported_modules(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """(module, number of leading dots) of everything that may be a module imported in ``tree``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, 0) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if base:
                yield base, node.level
            yield from ((f"{base}.{alias.name}".lstrip("."), node.level) for alias in node.names)
        elif isinstance(node, ast.Call) and _callee(node) in ("import_module", "__import__"):
            first = node.args[0] if node.args else None
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value, 0


def _callee(call: ast.Call) -> str:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _keras_backend(tree: ast.Module) -> str | None:
    """The constant in ``os.environ["KERAS_BACKEND"] = "jax"``, if there is one."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)):
            continue
        for target in node.targets:
            if (
                isinstance(target, ast.Subscript)
                and isinstance(target.slice, ast.Constant)
                and target.slice.value == "KERAS_BACKEND"
            ):
                return str(node.value.value)
    return None


def _own_files(folder: Path, module: str) -> list[Path]:
    """The files of ``folder`` that importing ``module`` would run."""
    found, here = [], folder
    for part in module.split("."):
        for candidate in (here / f"{part}.py", here / part / "__init__.py"):
            if candidate.is_file():
                found.append(candidate)
        here = here / part
    return found


def run_as_main(script: Path, arguments: Sequence[str]) -> int:
    """Runs the script as ``python script.py arguments…`` would, and returns its exit status.

    An exception is shown as Python shows it, without our own frames, and makes the status 1;
    ``sys.exit`` decides its own. Refusal and KeyboardInterrupt are the caller's.
    """
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=str(script), __builtins__=__builtins__, __cached__=None)
    sys.modules["__main__"] = main
    sys.argv = [str(script), *arguments]
    sys.path[0] = str(script.resolve().parent)
    code = compile(script.read_bytes(), str(script), "exec")
    exec(code, main.__dict__)
    return 0


def status_of(error: SystemExit) -> int:
    """The status that Python would end with; a text is printed, as Python does."""
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code
    sys.stderr.write(f"{error.code}\n")
    return 1


def show(error: BaseException) -> None:
    """Shows an exception of the script as Python would, from the script's first frame on."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals.get("__name__") != "__main__":
        trace = trace.tb_next
    if isinstance(error, SyntaxError) and trace is None:
        traceback.print_exception(type(error), error, None)
        return
    if trace is not None:
        error = error.with_traceback(trace)
    sys.excepthook(type(error), error, error.__traceback__)

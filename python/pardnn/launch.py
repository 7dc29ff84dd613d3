"""``pardnn run``: trains with the user's unchanged script on several memory-limited devices."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pardnn
from pardnn.errors import Refusal, UsageError
from pardnn.quantities import parse_bytes
from pardnn.script import frameworks_of, show

_EXAMPLE = """\
example: three workers that may hold 700 MiB of tensors and variables each
  pardnn run --devices 3 --memory 700MiB train.py --epochs 2

Everything behind the script's name belongs to the script. The script's own exit status is passed
on; 1 also means that the model does not fit, 2 that an option, a file or the environment is wrong.
"""
_DEFAULT_DEVICES = 2
_INTERRUPTED = 128 + int(signal.SIGINT)
_SUPPORTED = ("tensorflow", "torch")


@dataclass(frozen=True)
class RunOptions:
    """What the command line asked for.

    ``devices``: how many. ``memory``: bytes of tensors and variables each may hold, None without
    a limit. ``machine``: a machine file, which decides both. ``addresses``: "host:port" of each
    worker on other hosts, empty when all are processes of this machine. ``dry_run``: stop after
    the table of the plan. ``plan``, ``save_plan``: a plan file to use, to write. ``json_out``:
    where the summary of the run goes. ``algorithm``: name of a row. ``margin``: per mille of each
    limit that plans leave free. ``threads``: of each kind, per process. ``respect_devices``: the
    script's own tf.device calls are orders, not hints. ``limited``: False keeps the limits for
    planning and lets the workers hold more, to measure what a plan really needs.
    """

    devices: int
    memory: tuple[int | None, ...]
    script: Path
    arguments: tuple[str, ...] = ()
    machine: Path | None = None
    addresses: tuple[str, ...] = ()
    dry_run: bool = False
    plan: Path | None = None
    save_plan: Path | None = None
    json_out: Path | None = None
    algorithm: str = "auto"
    framework: str | None = None
    margin: int = 30
    threads: int = 1
    respect_devices: bool = False
    limited: bool = True


def main(arguments: Sequence[str] | None = None) -> int:
    """The program; returns the exit status."""
    try:
        options = parse(sys.argv[1:] if arguments is None else arguments)
        try:
            framework = _framework(options)
        except (SyntaxError, ValueError) as error:
            show(error.with_traceback(None))
            return 1
        if framework not in _SUPPORTED:
            raise UsageError(
                f"{options.script} uses {framework}; this version trains with "
                + " and ".join(_SUPPORTED)
            )
        if framework == "torch":
            from pardnn.torch.script import session as torch_session

            return torch_session.run(options)
        from pardnn.tensorflow import session

        return session.run(options)
    except Refusal as refusal:
        complain(str(refusal))
        return refusal.status
    except KeyboardInterrupt:  # before the script began; later it is the script's own
        complain("interrupted")
        return _INTERRUPTED


def complain(message: str) -> None:
    """Says something on standard error, as this program."""
    sys.stderr.write(f"pardnn run: {message}\n")
    sys.stderr.flush()


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; 'pardnn run --help' shows what there is")


def parse(arguments: Sequence[str]) -> RunOptions:
    """Options from the command line. Raises UsageError."""
    found = _parser().parse_args(list(arguments))
    if found.script is None:
        raise UsageError("a script is missing; 'pardnn run --help' shows what there is")
    script = Path(found.script)
    if not script.is_file():
        what = "is a folder" if script.is_dir() else "there is no such file"
        raise UsageError(f"{script}: {what}; expected a Python script")
    if not 0 <= found.margin < 1000:
        raise UsageError(f"--margin {found.margin}: expected 0 to 999 (per mille)")
    if found.algorithm not in pardnn.algorithms():
        known = ", ".join(pardnn.algorithms())
        raise UsageError(f"--algorithm {found.algorithm}: no such algorithm; there are {known}")
    if found.threads < 1:
        raise UsageError(f"--threads {found.threads}: expected at least 1")
    devices, memory, addresses = _machine(found.machine, found.devices, found.memory)
    for path in (found.machine, found.plan):
        if path is not None and not Path(path).is_file():
            raise UsageError(f"{path}: there is no such file")
    for path in (found.save_plan, found.json_out):
        if path is not None and not Path(path).resolve().parent.is_dir():
            raise UsageError(f"{path}: its folder does not exist")
    return RunOptions(
        devices=devices,
        memory=memory,
        script=script,
        arguments=tuple(found.arguments),
        machine=_path(found.machine),
        addresses=addresses,
        dry_run=found.dry_run,
        plan=_path(found.plan),
        save_plan=_path(found.save_plan),
        json_out=_path(found.json_out),
        algorithm=found.algorithm,
        framework=found.framework,
        margin=found.margin,
        threads=found.threads,
        respect_devices=found.respect_devices,
        limited=not found.measure,
    )


def _parser() -> _Parser:
    parser = _Parser(
        prog="pardnn run",
        usage="pardnn run [options] script.py [the script's own arguments]",
        description="Trains with an unchanged script on several memory-limited devices.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--devices", type=int, metavar="N", help="how many workers (2, or one per memory size)")
    add(
        "--memory",
        metavar="SIZE[,SIZE…]",
        help="bytes of tensors and variables each worker may hold, such as 700MiB; one size for "
        "all or one each; rounded down to whole MiB; a worker process needs about 600 MiB besides",
    )
    add("--machine", metavar="M.json", help="a machine file, instead of the two above")
    add("--dry-run", action="store_true", help="stop after the table of the plan")
    add("--plan", metavar="P", help="use this plan file instead of planning")
    add("--save-plan", metavar="P", help="write the plan of the training step")
    add("--json-out", metavar="F", help="write a summary of the run as JSON")
    add("--algorithm", default="auto", metavar="A", help="a planner by name (auto)")
    add("--framework", choices=sorted({*_SUPPORTED, "mxnet", "jax"}), help="if in doubt")
    add("--margin", type=int, default=30, metavar="N", help="per mille of memory left free (30)")
    add("--threads", type=int, default=1, metavar="N", help="per process; above 1, sums vary (1)")
    add(
        "--respect-devices",
        action="store_true",
        help="tf.device scopes of the script are orders: GPU:1 is worker 1",
    )
    add("--measure", action="store_true", help="plan with the limits, do not enforce them")
    add("script", nargs="?", help="the training script")
    add("arguments", nargs=argparse.REMAINDER, help="the script's own arguments")
    return parser


def _path(text: str | None) -> Path | None:
    return None if text is None else Path(text)


def _machine(
    machine: str | None, devices: int | None, memory: str | None
) -> tuple[int, tuple[int | None, ...], tuple[str, ...]]:
    """Number of devices, bytes of each, and addresses of those on other hosts."""
    if machine is not None:
        if devices is not None or memory is not None:
            raise UsageError("--machine says what the devices are; drop --devices and --memory")
        return _from_machine_file(Path(machine))
    try:
        sizes = [parse_bytes(part) for part in memory.split(",")] if memory is not None else []
    except ValueError as error:
        raise UsageError(f"--memory: {error}") from None
    if devices is None:
        devices = len(sizes) if len(sizes) > 1 else _DEFAULT_DEVICES
    if devices < 1:
        raise UsageError(f"--devices {devices}: expected at least 1")
    if len(sizes) > 1 and len(sizes) != devices:
        raise UsageError(f"--devices {devices}, but --memory names {len(sizes)} sizes")
    each = sizes if len(sizes) > 1 else [sizes[0] if sizes else None] * devices
    return devices, tuple(each), ()


def _from_machine_file(path: Path) -> tuple[int, tuple[int | None, ...], tuple[str, ...]]:
    if not path.is_file():
        raise UsageError(f"{path}: there is no such file")
    try:
        devices = json.loads(pardnn.Machine.read(str(path)).text())["devices"]
    except pardnn.Error as error:
        raise UsageError(str(error)) from None
    addresses = tuple(str(d["address"]) for d in devices if d.get("address"))
    if addresses and len(addresses) != len(devices):
        raise UsageError(f"{path}: either all devices have an address, or none has")
    memory = tuple(int(d["memory"]) - int(d.get("reserve", 0)) for d in devices)
    return len(devices), memory, addresses


def _framework(options: RunOptions) -> str:
    if options.framework is not None:
        return options.framework
    found = frameworks_of(options.script)
    if len(found) == 1:
        return found[0]
    what = "imports no framework" if not found else f"imports {' and '.join(found)}"
    raise UsageError(f"{options.script} {what}; say which one with --framework")


if __name__ == "__main__":
    sys.exit(main())

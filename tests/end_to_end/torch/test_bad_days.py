"""Scripts that cannot run over ranks, ranks that die: one message, a status, nothing left."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
MODEL = """
import os, sys, threading, time
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 2))
optimizer = torch.optim.Adam(model.parameters())
def step(x):
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()
"""
# What only a hang takes.
TIMEOUT_S = 120.0


def command(script: pathlib.Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "pardnn.launch", "--devices", "2", *options, str(script)]


def run(
    folder: pathlib.Path, text: str, *options: str, random: bool = False
) -> subprocess.CompletedProcess[str]:
    script = folder / "train.py"
    script.write_text(MODEL + text)
    env = dict(os.environ)
    if random:  # without a look ahead, which would meet the trouble first
        env["PARDNN_RANDOM_PLACEMENT"] = "1"
    return subprocess.run(
        command(script, *options),
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


def processes_of(script: pathlib.Path) -> list[int]:
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if str(script).encode() in line:
                found.append(int(entry.name))
    return sorted(found)


def test_ranks_that_go_different_ways_end_with_a_message(tmp_path: pathlib.Path) -> None:
    text = "print(step(torch.ones(1 + os.getpid() % 50, 8)))\nprint(step(torch.ones(4, 8)))"
    done = run(tmp_path, text, random=True)
    assert done.returncode == 1
    assert "went different ways in the script: at op" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "model[0].weight.detach().to_sparse_csr()",
            "a tensor of layout torch.sparse_csr cannot be on one of several ranks",
        ),
        (
            "torch.distributed.init_process_group('gloo')",
            "the script distributes itself with torch.distributed",
        ),
        (
            "thread = threading.Thread(target=step, args=(torch.ones(2, 8),))\n"
            "thread.start()\nthread.join()",
            "of the script computes with tensors of the model",
        ),
        (
            "torch.func.vmap(lambda x: model(x))(torch.ones(4, 8))",
            "torch.func.vmap over parameters that are on several ranks",
        ),
    ],
    ids=["sparse", "distributed", "thread", "vmap"],
)
def test_what_cannot_be_is_refused_in_one_sentence(
    tmp_path: pathlib.Path, text: str, said: str
) -> None:
    done = run(tmp_path, text)
    line = len((MODEL + text).splitlines())  # the last one does it
    assert done.returncode == 1
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    if "computes with tensors" not in said:  # that is found in a thread, wherever it is
        assert f"train.py:{line}: " in done.stderr


def test_an_error_of_the_script_is_shown_once_as_python_shows_it(tmp_path: pathlib.Path) -> None:
    done = run(tmp_path, "print(step(torch.ones(4, 8)))\nraise ValueError('mine')", random=True)
    assert done.returncode == 1
    assert done.stderr.count("ValueError: mine") == 1
    assert done.stderr.startswith("Traceback")
    assert len(done.stdout.splitlines()) == 1


def test_the_scripts_own_status_is_passed_on(tmp_path: pathlib.Path) -> None:
    assert run(tmp_path, "step(torch.ones(4, 8))\nsys.exit(7)", random=True).returncode == 7


def test_a_rank_that_is_refused_memory_is_named(tmp_path: pathlib.Path) -> None:
    text = "step(torch.ones(4, 8))\nlarge = model(torch.ones(1 << 19, 8))"  # 128 MiB and more
    done = run(tmp_path, text, "--memory", "40MiB")
    assert done.returncode == 1
    assert "was refused memory" in done.stderr
    assert "give more --memory" in done.stderr


def test_a_rank_that_dies_is_named_within_seconds_and_nothing_stays(
    tmp_path: pathlib.Path,
) -> None:
    # The second rank ends itself: the first of two processes that the launcher started is rank 0.
    text = (
        "step(torch.ones(4, 8))\n"
        "if os.readlink('/proc/self/fd/1') == '/dev/null': os.kill(os.getpid(), 9)\n"
        "while True: step(torch.ones(4, 8))"
    )
    begin = time.monotonic()
    done = run(tmp_path, text, random=True)
    assert done.returncode == 1
    assert "rank 1 was ended by SIGKILL" in done.stderr
    assert "its tensors are lost, so the run ends" in done.stderr
    assert time.monotonic() - begin < 60  # a start takes most of it where cores are busy
    assert processes_of(tmp_path / "train.py") == []


def test_ctrl_c_ends_all_ranks(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(MODEL + "while True: print(step(torch.ones(4, 8)), flush=True)")
    # Where the tests run in the background of a shell, Ctrl-C is ignored, which children inherit.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(
        command(script),
        cwd=tmp_path,
        env={**os.environ, "PARDNN_RANDOM_PLACEMENT": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    signal.signal(signal.SIGINT, before)
    assert process.stdout is not None
    process.stdout.readline()  # training has begun
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 130
    assert said == "pardnn run: interrupted\n"
    assert processes_of(script) == []


def test_one_device_runs_the_script_as_it_is(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(MODEL + "print(step(torch.ones(4, 8)), model[0].weight.untyped_storage())")
    done = subprocess.run(
        [sys.executable, "-m", "pardnn.launch", "--devices", "1", str(script)],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == "pardnn: nothing was planned: one device runs the script as it is\n"


def test_files_are_written_once_and_output_is_printed_once(tmp_path: pathlib.Path) -> None:
    text = (
        "print(step(torch.ones(4, 8)))\n"
        "with open('log.txt', 'a') as log: log.write('one line\\n')\n"
        "os.makedirs('checkpoints')\n"
        "torch.save(model.state_dict(), 'checkpoints/last.pt')\n"
        "found = torch.load('checkpoints/last.pt')\n"
        "print(all(torch.equal(a, b) for a, b in zip(found.values(), model.parameters())))"
    )
    done = run(tmp_path, text, random=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "log.txt").read_text() == "one line\n"
    assert done.stdout.splitlines()[1:] == ["True"]


def test_what_cannot_be_written_is_refused_to_all_ranks_alike(tmp_path: pathlib.Path) -> None:
    text = """
print(step(torch.ones(4, 8)))
for attempt in (
    lambda: open("missing/log.txt", "w"),
    lambda: torch.save(model.state_dict(), "missing/last.pt"),
    lambda: os.mkdir("."),
):
    try:
        attempt()
    except (OSError, RuntimeError) as error:
        print(type(error).__name__, step(torch.ones(5, 8)) > 0)
open("/dev/full", "w").write("x" * 100_000)
"""
    done = run(tmp_path, text, random=True)
    assert done.returncode == 1
    assert done.stdout.splitlines()[1:] == [
        "FileNotFoundError True",
        "RuntimeError True",
        "FileExistsError True",
    ]
    assert done.stderr.startswith("Traceback")
    assert done.stderr.endswith("OSError: [Errno 28] No space left on device\n")


def test_a_checkpoint_can_be_written_over_the_one_that_was_loaded(tmp_path: pathlib.Path) -> None:
    text = """
def save():
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "last.pt")
step(torch.ones(4, 8))
save()
found = torch.load("last.pt")
model.load_state_dict(found["model"])
optimizer.load_state_dict(found["optimizer"])
save()
again = torch.load("last.pt")
print(torch.equal(found["model"]["0.weight"], again["model"]["0.weight"]))
print(step(torch.ones(4, 8)) > 0)
"""
    done = run(tmp_path, text, random=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["True", "True"]


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_fifty_starts_in_a_row_end_cleanly(tmp_path: pathlib.Path) -> None:
    text = "print([step(torch.randn(4, 8)) for _ in range(5)])"
    outputs = set()
    for number in range(50):
        script = tmp_path / "train.py"
        script.write_text(MODEL + text)
        done = subprocess.run(
            [sys.executable, "-m", "pardnn.launch", "--devices", "3", str(script)],
            env={**os.environ, "PARDNN_RANDOM_PLACEMENT": str(number)},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        outputs.add(done.stdout)
    assert len(outputs) == 1

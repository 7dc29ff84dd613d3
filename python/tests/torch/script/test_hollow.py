"""Hollow tensors: true shapes, no memory, and a home that every view has."""

from __future__ import annotations

import faulthandler
import os
import pathlib
import signal

import torch

from pardnn.torch.script.hollow import (
    Home,
    hollow,
    hollow_like,
    home_of,
    image_of,
    settle,
    view_in,
)

GIB = 1 << 30


def data_bytes() -> int:
    """What the system counts as this process's memory."""
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmData")) * 1024


def test_hundred_gibibytes_take_no_memory() -> None:
    before = data_bytes()
    tensors = [hollow((GIB // 4,), (1,), torch.float32, 0, Home(1), GIB) for _ in range(100)]
    assert data_bytes() - before < 1 << 20
    assert all(tensor.shape == (GIB // 4,) for tensor in tensors)


def test_views_and_detached_tensors_are_at_home_where_the_tensor_is() -> None:
    home = Home(2, parameter=7)
    tensor = hollow((4, 6), (6, 1), torch.float32, 0, home, 96)
    for view in (tensor.t(), tensor[1:3], tensor.detach(), tensor.view(24), tensor.data):
        assert home_of(view) is home
    assert tensor.t().stride() == (1, 6)
    assert tensor[1:3].storage_offset() == 6


def test_an_ordinary_tensor_has_no_home_until_it_is_given_one() -> None:
    tensor = torch.zeros(3)
    assert home_of(tensor) is None
    settle(tensor, Home(1))
    assert home_of(tensor[:2]).owner == 1


def test_a_hollow_twin_lies_in_its_storage_as_the_original_does() -> None:
    original = torch.arange(24.0).view(4, 6)[1:3, ::2]  # offset 6, strides 6 and 2
    twin = hollow_like(original, Home(0))
    assert (twin.shape, twin.stride(), twin.storage_offset()) == ((2, 3), (6, 2), 6)
    assert twin.untyped_storage().nbytes() == 96


def test_a_view_is_found_again_in_a_copy_of_its_storage() -> None:
    whole = torch.arange(24.0).view(4, 6)
    part = whole[1:3, ::2]
    copy = image_of(whole.untyped_storage()).clone()
    assert torch.equal(view_in(copy.untyped_storage(), part), part)


def test_reading_a_hollow_tensor_is_a_crash_and_never_a_number() -> None:
    process = os.fork()
    if process == 0:
        faulthandler.disable()  # a crash that is meant is no news
        hollow((8,), (1,), torch.float32, 0, Home(1), 32).sum().item()
        os._exit(0)
    _, status = os.waitpid(process, 0)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGSEGV

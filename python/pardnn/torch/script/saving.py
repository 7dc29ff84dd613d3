"""``torch.save`` and ``torch.load``: the usual files, whoever holds what is in them.

Saving brings one storage at a time to rank 0. Loading maps the file; a parameter or optimizer state
that comes from it goes to its rank, and what nobody holds any more costs nothing.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.optim import optimizer as optimizers

from pardnn.errors import Refusal
from pardnn.torch.script import compat
from pardnn.torch.script.hollow import Home, hollow_like, home_of, image_of, settle

Gather = Callable[[torch.Tensor], torch.Tensor | None]


def install(
    rank: int,
    fetch: Callable[[torch.Tensor], torch.Tensor],
    gather: Gather,
    agree: Callable[[Callable[[], Any]], Any],
    mapped: Callable[[int], None],
) -> None:
    """From now on ``torch.save`` and ``torch.load`` do this.

    ``fetch`` gives a tensor's values to all ranks, ``gather`` to rank 0 only. ``mapped(nbytes)`` is
    told of files that are mapped.
    """
    save, load = torch.save, torch.load
    write_record, unlink = compat.FileWriter.write_record, os.unlink
    loaded: set[str] = set()
    to_file: list[bool] = []

    def written(self: Any, name: str, data: Any, nbytes: int) -> Any:
        if not nbytes or getattr(data, "home", None) is None:
            return write_record(self, name, data, nbytes)
        image = image_of(data)
        values = gather(image) if to_file[-1] else fetch(image)
        if values is None:
            return None
        return write_record(self, name, values.untyped_storage(), nbytes)

    def placed_save(obj: Any, f: Any, *args: Any, **kwargs: Any) -> None:
        is_path = isinstance(f, (str, os.PathLike))
        target = f
        if is_path and _is_writable(f):
            target = os.devnull if rank else f
            if not rank and os.path.realpath(f) in loaded:
                unlink(os.path.realpath(f))  # what was loaded from it is still mapped
        to_file.append(is_path or hasattr(f, "fileno") and _is_file(f))
        try:
            with compat.without_modes(), torch.no_grad():
                save(obj, target, *args, **kwargs)
        finally:
            to_file.pop()
        if hasattr(f, "flush"):
            f.flush()
        agree(lambda: None)  # nobody reads the file before it is there

    def placed_load(f: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(f, (str, os.PathLike)) and kwargs.get("mmap") is None:
            agree(lambda: None)
            if zipfile.is_zipfile(f):
                kwargs["mmap"] = True
                loaded.add(os.path.realpath(f))
                mapped(Path(f).stat().st_size)
        return load(f, *args, **kwargs)

    compat.FileWriter.write_record = written
    torch.save = placed_save
    torch.load = placed_load
    _refuse_old_format()
    settle_loaded_state(rank)


def _is_writable(path: Any) -> bool:
    """Asked of all ranks together; where it is not, torch tells all of them alike."""
    try:
        with open(path, "ab"):  # noqa: PTH123  the script's open, which ranks share
            return True
    except OSError:
        return False


def _is_file(f: Any) -> bool:
    try:
        f.fileno()
    except OSError:
        return False
    return True


def _refuse_old_format() -> None:
    write = torch.UntypedStorage._write_file

    def write_file(self: Any, *args: Any) -> Any:
        if getattr(self, "home", None) is not None:
            raise Refusal(
                "pickle, or torch.save in its old format, of a tensor that is on one rank; use "
                "torch.save as it is by default"
            )
        return write(self, *args)

    torch.UntypedStorage._write_file = write_file


def settle_loaded_state(rank: int) -> None:
    """State that an optimizer loads goes to where its parameter is."""
    name = "_process_value_according_to_param_policy"
    process = getattr(optimizers.Optimizer, name)

    def placed_process(param: Any, value: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        value = process(param, value, *args, **kwargs)
        home = home_of(param)
        if home is None or home_of(value) is not None or value.dim() == 0:
            return value
        if isinstance(value, nn.Parameter) or value.layout != torch.strided:
            return value
        new = Home(home.owner)
        settle(value, new)
        if home.owner == rank:
            return value
        return hollow_like(value, new)

    setattr(optimizers.Optimizer, name, staticmethod(placed_process))

"""Private calls of torch that the runtime of ``pardnn run`` needs, as 2.13 has them."""

from __future__ import annotations

from typing import Any

import torch

# Optimizers and checkpoints import this when they are first used: ten mebibytes, which would count
# as the script's, and once in each process instead of before all of them start.
import torch._dynamo
from torch.utils._python_dispatch import TorchDispatchMode as _Mode
from torch.utils._python_dispatch import _disable_current_modes


class TorchDispatchMode(_Mode):
    """A mode that torch calls itself, not through wrappers that keep torch.compile out: the runs
    have none.
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False


without_modes = _disable_current_modes
"""A context in which no dispatch mode sees what is done."""

current_node = torch._C._current_autograd_node
"""The node of the graph whose backward runs now, None outside of backward."""

next_sequence_number = torch._C._autograd._get_sequence_nr
"""The number that the next node of the graph will get."""

FileWriter = torch._C.PyTorchFileWriter
"""What ``torch.save`` writes its archive with."""

_CPU = torch.device("cpu")


def kernel_of(func: Any) -> Any:
    """Calls an op without the checks that torch makes in Python before."""
    return func._op


def storage_at(address: int, nbytes: int) -> torch.UntypedStorage:
    """A storage over memory that somebody else owns."""
    storage: torch.UntypedStorage = torch._C._construct_storage_from_data_pointer(
        address, _CPU, nbytes
    )
    return storage


def is_composite(func: Any) -> bool:
    """Whether torch has no kernel of its own for the op and makes it of others."""
    found: bool = torch._C._dispatch_has_kernel_for_dispatch_key(
        func.name(), "CompositeImplicitAutograd"
    )
    return found

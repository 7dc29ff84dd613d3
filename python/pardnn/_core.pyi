from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy
from numpy.typing import NDArray


version: str = '0.1.0'

class Error(ValueError):
    pass

NOT_ALLOWED: int = -1

def escape_key(text: str) -> str:
    """
    The legal key that stands for any text: what keys may not hold becomes %XX.
    """

class Graph:
    """
    The ops, tensors and variables of one training step.

    A builder until something needs the whole graph; from then on it does not change.
    """

    def __init__(self, kinds: Sequence[str] = ['any'], about: Mapping[str, str] = {}) -> None: ...

    def group(self, name: str, *, on: Sequence[str] = [], avoid: Sequence[str] = []) -> None:
        """State where a group must, or must not, be: names of devices or kinds."""

    def var(self, key: str, bytes: int | None, *, group: str | None = None, on: Sequence[str] = [], avoid: Sequence[str] = [], name: str | None = None) -> None:
        """
        Add a variable: state that lives across steps. `bytes` is None when unknown.
        """

    def op(self, key: str, type: str, cost: object | None, inputs: Sequence = (), outputs: Sequence = (), *, group: str | None = None, workspace: int = 0, phase: str | None = None, on: Sequence[str] = [], avoid: Sequence[str] = [], flops: int | None = None, moved: int | None = None, every: bool = False, at: int | None = None, name: str | None = None) -> None:
        """
        Add an op.

        cost: ns, None when unknown, NOT_ALLOWED, or a sequence of these, one per kind.
        inputs: 'KEY', 'KEY:1', '^KEY' (control edge), 'VAR', '!X' (modified), as in graph files.
        outputs: bytes, None when unknown, or as in graph files: '=0', '=0/64', '1024~1', '4*'.
        workspace: bytes that the op needs while it runs. phase: 'f', 'b' or 'u'.
        Mistakes are named when the graph is first used: pardnn.Error.
        """

    @staticmethod
    def read(path: str) -> Graph:
        """Read a graph file, gzipped or not; '-' is standard input."""

    @staticmethod
    def parse(text: str) -> Graph:
        """The graph that a text in the format of graph files states."""

    def write(self, path: str) -> None:
        """Write the canonical graph file; a name ending in .gz is compressed."""

    def text(self) -> str:
        """The canonical graph file as text."""

    @property
    def hash(self) -> str:
        """SHA-256 of the canonical form without names and notes."""

    @property
    def op_keys(self) -> list[str]:
        """Keys of the ops, in topological order: position i is op number i."""

    @property
    def var_keys(self) -> list[str]:
        """Keys of the variables, sorted."""

class Machine:
    """Devices with their memory, and the links between them."""

    @staticmethod
    def uniform(*, devices: int, memory: int | Sequence[int], kind: str = 'any', bandwidth: int = 12000000000, overhead: int = 0, latency: int = 0, granularity: int = 1, reserve: int = 0) -> Machine:
        """
        Devices d0, d1, ... of one kind, each pair with a link of its own.

        memory: bytes, one number or one per device. bandwidth: bytes per second.
        overhead, latency: ns. granularity: buffers are rounded up to it. reserve:
        bytes of each device that are always in use.
        """

    @staticmethod
    def read(path: str) -> Machine:
        """
        Read a machine file (JSON), or take a preset by its name, such as 'pcie-4'.
        """

    @staticmethod
    def parse(text: str) -> Machine:
        """The machine that the text of a machine file states."""

    def text(self) -> str:
        """The machine as the text of a machine file."""

    @property
    def device_names(self) -> list[str]:
        """Names of the devices, in order."""

    @property
    def addresses(self) -> list[str]:
        """host:port of each device, '' where the file names none."""

    @property
    def memory(self) -> list[int]:
        """Bytes of each device."""

class Plan:
    """
    Where every op and variable goes, in which order ops start, and what is predicted of it.
    """

    @property
    def fits(self) -> bool:
        """Whether no device ever holds more than its limit."""

    @property
    def why(self) -> str:
        """
        What stands in the way when the plan does not fit, and the smallest changes that
        would make it fit.
        """

    @property
    def explanation(self) -> dict[str, Any] | None:
        """
        The same as a dictionary, with the names of `explanation` in the JSON of
        `pardnn plan --json`; None for a plan that fits.
        """

    @property
    def moves(self) -> dict[str, int] | None:
        """
        What became of the plan that plan() was given as `from_plan`; else None.

        ops_matched: ops of the graph that it has, by key. ops_moved: those of them on
        another device than before. ops_new: ops that it has not. ops_gone: ops of it
        that the graph has not.
        """

    @property
    def algorithm(self) -> str:
        """The row that found it."""

    @property
    def device_of(self) -> dict[str, str]:
        """Device of every op and variable by key; `every` ops have none."""

    @property
    def sequences(self) -> dict[str, list[str]]:
        """Keys of the ops of each device, in order."""

    @property
    def transfers(self) -> list[tuple[str, int | None, str, int, int, int, int]]:
        """
        (producer key, output number or None for a control edge, destination,
        request ns, start ns, arrival ns, bytes) of everything that is sent.
        """

    @property
    def buffers(self) -> dict[str, list[tuple[str, str | None, int | None, int, int, int]]]:
        """
        What each device holds, by device, in the order of allocation.

        (what, key, output number, bytes as counted, allocated ns, freed ns), where
        what is 'output' or 'copy' (of a tensor: key of its producer and number),
        'workspace' (key of the op, no number), or one that lasts all step and comes
        first: 'variable', 'every' (of a tensor) or 'reserve' (no key). A buffer that
        is taken over is one entry, named by the first tensor in it. What is freed at
        an instant is freed before anything is allocated at it. Raises pardnn.Error
        for a plan that check() finds something wrong with.
        """

    def write(self, path: str) -> None:
        """Write the plan file (JSON)."""

    @staticmethod
    def read(path: str, graph: Graph) -> Plan:
        """
        Read a plan file of this graph; pardnn.Error when it is one of another.
        """

    @property
    def starts(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """
        When each op starts: int64 ns of shape (ops,) by op number, -1 for `every` ops.
        """

    @property
    def step_ns(self) -> int:
        """Predicted length of a step."""

    @property
    def bound_ns(self) -> int:
        """No plan on this machine has a shorter step."""

    @property
    def bytes_sent(self) -> int:
        """Bytes that cross devices in a step."""

    @property
    def peaks(self) -> dict[str, int]:
        """Predicted most bytes in use at one moment, by device."""

    @property
    def any_timing_peaks(self) -> dict[str, int]:
        """Bytes that no timing of the same sequences can pass, by device."""

    @property
    def peak_at_ns(self) -> dict[str, int]:
        """First moment of each peak, by device."""

    @property
    def limits(self) -> dict[str, int]:
        """Bytes that each device may use, by device."""

def plan(graph: Graph, machine: Machine, *, algorithm: str = 'auto', steps: int | None = None, budget: float | None = None, seed: int = 0, margin: int = 0, sequence: str = 'free', contention: bool = True, guarantee: str | None = None, from_plan: Plan | str | None = None) -> Plan:
    """
    Place every op of the graph on the machine, and order each device's ops.

    budget: seconds. steps: of the search, reproducible, wins over the budget.
    margin: per mille of each device's memory that stays free. sequence: 'free',
    'given' (the graph's own order) or 'fifo'. from_plan: a Plan, or the path of a plan
    file, of this graph or one like it (ops are matched by key): few ops move, and
    Plan.moves says how many. A plan that does not fit is an answer,
    not an error: see Plan.fits and Plan.why. Raises pardnn.Error for a problem that
    cannot be planned, such as unknown costs or pins in conflict.
    """

def simulate(graph: Graph, machine: Machine, placement: Mapping[str, str], order: Mapping[str, Sequence[str]] | None = None, *, margin: int = 0, sequence: str = 'free', contention: bool = True) -> Plan:
    """
    What a placement of your own leads to.

    placement: device name by key, of every op (but `every` ops) and every variable.
    order: keys in sequence by device name; without it ops are listed by the longest
    path that follows them.
    """

def check(graph: Graph, plan: Plan) -> list[str]:
    """
    Recompute a plan and its prediction independently; what is wrong with it, in sentences.
    """

def algorithms() -> list[str]:
    """Names that plan() takes as `algorithm`."""

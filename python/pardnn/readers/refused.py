"""Files that people keep beside graphs, and that are none: each is refused for what it is."""

from __future__ import annotations

from pardnn.readers.content import Content
from pardnn.readers.errors import ReadError

_GRAPH = "a graph"
_ACTION_COLUMNS = 4


def refuse(content: Content) -> None:
    """Raises ReadError for a file that is known to be something other than a graph."""
    what = _what(content)
    if what is not None:
        raise ReadError(content.name, *what)


def _what(content: Content) -> tuple[str, str] | None:
    found = content.json
    if isinstance(found, dict):
        if {"cpus", "fpgas", "maxLoad"} <= found.keys():
            return "a split of a graph by hand (cpus, fpgas, maxLoad)", "the graph that it splits"
        problem = found.get("problem")
        if isinstance(problem, dict) and "usage_limit" in problem:
            return (
                "a problem of the IOPDDL contest (choices with costs and usages)",
                "a graph of ops and tensors",
            )
        if "pardnn_plan" in found:
            return "a plan of pardnn", "the graph that it is for"
        if "pardnn_machine" in found:
            return "a machine of pardnn, which goes behind --machine", _GRAPH
    if isinstance(found, list) and found and _is_timeline(found):
        return "a memory timeline (allocations over time, no ops)", "the trace that it was made of"
    return None


def _is_timeline(rows: list[object]) -> bool:
    """Rows of time, action, bytes, category, as torch's memory profiler exports them."""
    return all(
        isinstance(row, list)
        and len(row) == _ACTION_COLUMNS
        and all(isinstance(value, int) for value in row)
        for row in rows[:100]
    )

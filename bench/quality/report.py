"""What many plans amount to: geometric means by group, and how two runs differ."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

Row = dict[str, Any]
Key = tuple[str, ...]

GROUP = ("devices", "link", "contention", "memory", "part", "algorithm")
PLAN = ("graph", *GROUP)
# A group may get longer by this factor before it counts as a loss.
TOLERANCE = 1.005


def geometric_mean(values: Iterable[float]) -> float:
    """The geometric mean of positive numbers; not a number when there are none."""
    logs = [math.log(value) for value in values]
    return math.exp(math.fsum(logs) / len(logs)) if logs else math.nan


def key_of(row: Row, members: tuple[str, ...]) -> Key:
    return tuple(str(row[member]) for member in members)


def grouped(rows: Iterable[Row], members: tuple[str, ...]) -> dict[Key, list[Row]]:
    """Rows by the values of these members, in the order of their first appearance."""
    groups: dict[Key, list[Row]] = {}
    for row in rows:
        groups.setdefault(key_of(row, members), []).append(row)
    return groups


def ratio_to(rows: list[Row], others: list[Row]) -> float:
    """How much longer these steps are than the others' where both fit."""
    same = tuple(member for member in PLAN if member != "algorithm")
    steps = {key_of(row, same): row["step_ns"] for row in others if row["fits"]}
    return geometric_mean(
        row["step_ns"] / steps[key_of(row, same)]
        for row in rows
        if row["fits"] and key_of(row, same) in steps
    )


def group_lines(rows: list[Row], members: tuple[str, ...]) -> list[list[str]]:
    """A line for each group and algorithm; means are over the plans that fit."""
    lines = []
    for key, group in grouped(rows, members).items():
        by_algorithm = grouped(group, ("algorithm",))
        automatic = by_algorithm.get(("auto",), [])
        for (algorithm,), mine in by_algorithm.items():
            fitting = [row for row in mine if row["fits"]]
            lines.append(
                [
                    *key,
                    algorithm,
                    f"{len(fitting)}/{len(mine)}",
                    number(geometric_mean(r["step_ns"] / r["bound_ns"] for r in fitting)),
                    number(geometric_mean(r["step_ns"] / r["simple_bound_ns"] for r in fitting)),
                    number(ratio_to(mine, automatic)),
                    f"{sum(row['cpu_s'] for row in mine):.1f}",
                    f"{sum(row['wall_s'] for row in mine):.1f}",
                ]
            )
    return lines


def number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3f}"


def table(heads: Iterable[str], lines: list[list[str]]) -> str:
    columns = list(zip(heads, *lines, strict=True))
    widths = [max(map(len, column)) for column in columns]
    return "\n".join(
        "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in zip(*columns, strict=True)
    )


def summary(rows: list[Row]) -> str:
    """The table of all groups, then the same over all numbers of devices."""
    tail = ["algorithm", "fits", "/bound", "/max(CP,W/K)", "/auto", "cpu s", "wall s"]
    names = {"devices": "K"}
    tables = []
    for members in (GROUP[:-1], GROUP[1:-1]):
        heads = [names.get(member, member) for member in members]
        tables.append(table([*heads, *tail], group_lines(rows, members)))
    return "\n\n".join(tables)


def details(rows: list[Row]) -> str:
    heads = ["graph", "K", *PLAN[2:], "fits", "step ms", "/bound", "found by", "cpu s"]
    lines = [
        [
            *key_of(row, PLAN),
            "yes" if row["fits"] else f"over {row['overflow_bytes'] / 1e6:.0f} MB",
            f"{row['step_ns'] / 1e6:.3f}",
            number(row["step_ns"] / row["bound_ns"]),
            row["found_by"],
            f"{row['cpu_s']:.2f}",
        ]
        for row in rows
    ]
    return table(heads, lines)


def losses(old: list[Row], new: list[Row]) -> list[str]:
    """A sentence for each plan that was lost and each group that got longer than TOLERANCE."""
    found = []
    now = {key_of(row, PLAN): row for row in new}
    for key, row in ((key_of(row, PLAN), row) for row in old):
        if key not in now:
            found.append(f"{' '.join(key)}: not planned any more")
        elif row["fits"] and not now[key]["fits"]:
            found.append(f"{' '.join(key)}: no longer fits")
    for key, ratio in changed_groups(old, new, GROUP):
        if ratio > TOLERANCE:
            found.append(f"{' '.join(key)}: steps are {(ratio - 1) * 100:.2f} % longer")
    return found


def changed_groups(
    old: list[Row], new: list[Row], members: tuple[str, ...]
) -> list[tuple[Key, float]]:
    """New step / old step of each group, over the plans that fit in both; only where not 1."""
    before = {key_of(row, PLAN): row for row in old}
    paired: Callable[[Row], bool] = lambda row: (  # noqa: E731
        row["fits"] and before.get(key_of(row, PLAN), {}).get("fits", False)
    )
    changes = []
    for key, group in grouped(filter(paired, new), members).items():
        ratio = geometric_mean(
            row["step_ns"] / before[key_of(row, PLAN)]["step_ns"] for row in group
        )
        if abs(ratio - 1) > 1e-9:
            changes.append((key, ratio))
    return changes


def comparison(old: list[Row], new: list[Row]) -> str:
    """What changed between two runs, plan by plan and group by group; nothing else."""
    before = {key_of(row, PLAN): row for row in old}
    lines = []
    for row in new:
        key = key_of(row, PLAN)
        if key not in before:
            continue
        was = before[key]
        if was["fits"] != row["fits"]:
            lines.append([" ".join(key), "fits now" if row["fits"] else "no longer fits"])
        elif row["fits"] and was["step_ns"] != row["step_ns"]:
            change = (row["step_ns"] / was["step_ns"] - 1) * 100
            lines.append([" ".join(key), f"{change:+.2f} %"])
    for key, ratio in changed_groups(old, new, GROUP):
        lines.append([f"mean of {' '.join(key)}", f"{(ratio - 1) * 100:+.2f} %"])
    only_old = len(before.keys() - {key_of(row, PLAN) for row in new})
    notes = [f"{only_old} plans of the old run are not in this one"] if only_old else []
    return "\n".join([*(f"{change:>16}  {what}" for what, change in lines), *notes]) or "no change"

"""A step written into the builder, and sentences about what is missing."""

from __future__ import annotations

from collections.abc import Mapping

import pardnn
from pardnn import escape_key
from pardnn.readers.reading import Options, started
from pardnn.readers.tensorflow.nodes import Nodes
from pardnn.readers.tensorflow.ops import Op
from pardnn.readers.tensorflow.optypes import OPTIMIZERS, READS
from pardnn.readers.tensorflow.profiles import Profile
from pardnn.readers.tensorflow.shapes import Shapes
from pardnn.readers.tensorflow.step import Step
from pardnn.tensorflow.kernels import ALIAS


def graph_of(
    step: Step,
    nodes: Nodes,
    shapes: Shapes,
    profile: Profile,
    options: Options,
    counts: Mapping[str, object],
) -> tuple[pardnn.Graph, list[str]]:
    """The graph, and notes about what is not known; `counts` are the file's."""
    graph = started("tensorflow", "measured" if profile.ns else "unknown", counts)
    group_of = _group_names(step)
    for name, size in step.variables.items():
        graph.var(escape_key(name), size, group=group_of.get(name))
    phases = phases_of(step)
    unknown: dict[str, list[str]] = {"times": [], "sizes": []}
    unknown["sizes"] += [name for name, size in step.variables.items() if size is None]
    for op in step.ops.values():
        cost = _cost(step, nodes, op, profile)
        if op.every:
            cost = 0
        if cost is None:
            unknown["times"].append(op.name)
        if any(str(text).startswith(("None", "?")) for text in op.outputs):
            unknown["sizes"].append(op.name)
        graph.op(
            escape_key(op.name),
            escape_key(op.type),
            cost,
            [*_inputs(step, op), *(f"^{escape_key(name)}" for name in op.controls)],
            op.outputs,
            group=None if op.every else group_of.get(op.name),
            workspace=op.workspace,
            phase=None if op.every else phases[op.name],
            flops=op.flops or None,
            moved=op.moved if op.moved and not op.every else None,
            every=op.every,
        )
    return graph, [*profile.notes, *_missing(step, nodes, shapes, profile, options, unknown)]


def _inputs(step: Step, op: Op) -> list[str]:
    texts = []
    for one in op.inputs:
        if isinstance(one, str):
            texts.append(("!" if one in op.updates else "") + escape_key(one))
        else:
            name, number = step.reference(one)
            texts.append(f"{escape_key(name)}:{number}" if number else escape_key(name))
    return texts


def _cost(step: Step, nodes: Nodes, op: Op, profile: Profile) -> int | None:
    """The measured time; ops that hand on what they get need none where others were measured."""
    found = step.times(profile.ns, op)
    if found is None and profile.ns and (op.type in ALIAS or op.type == READS):
        return 0
    return found


def _group_names(step: Step) -> dict[str, str]:
    """The group of every op and variable that is in one; named by its variable where it has one."""
    names: dict[str, str] = {}
    for members in step.groups.members().values():
        real = [
            m for m in members if m in step.variables or (m in step.ops and not step.ops[m].every)
        ]
        if len(real) < 2:
            continue
        owned = [name for name in real if name in step.variables]
        name = min(owned, key=lambda one: (len(one), one)) if owned else f"g_{min(real)}"
        names.update(dict.fromkeys(real, escape_key(name)))
    return names


def phases_of(step: Step) -> dict[str, str]:
    """`f`, `b` or `u` of every op: gradients have scopes of their own.

    What comes after the backward pass and leads back into it no more is the update, and so is what
    an optimizer does.
    """
    ops = step.ops
    backward = {name for name, op in ops.items() if _is_gradient(op)}
    before = {name: step.before(op) for name, op in ops.items()}
    above: set[str] = set()
    for name, firsts in before.items():
        if any(first in backward or first in above for first in firsts):
            above.add(name)
    below: set[str] = set()
    for name in reversed(before):
        if name in backward or name in below:
            below.update(before[name])
    found = {}
    for name, op in ops.items():
        if op.type in OPTIMIZERS:
            found[name] = "u"
        elif name in backward or (name in above and name in below):
            found[name] = "b"
        else:
            found[name] = "u" if name in above else "f"
    return found


def _is_gradient(op: Op) -> bool:
    scopes = op.name.split("/")[:-1]
    return any(s.startswith("gradients") or s == "gradient_tape" for s in scopes)


def _missing(
    step: Step,
    nodes: Nodes,
    shapes: Shapes,
    profile: Profile,
    options: Options,
    unknown: Mapping[str, list[str]],
) -> list[str]:
    """One sentence for each sort of thing that is not known, with the option that supplies it."""
    notes = []
    if shapes.unbound:
        notes.append(
            f"{_some(shapes.unbound)} of unknown shape; --dim batch=N binds the first dimension of "
            f"every input, --shape {shapes.unbound[0]}=N,… one input"
        )
    if unknown["sizes"]:
        notes.append(f"{_some(unknown['sizes'])} give tensors of unknown size")
    if unknown["times"]:
        lack = "the costs file has no time" if profile.ns else "no times are in the file"
        how = "" if options.costs else "; --costs FILE takes a RunMetadata or timeline of a step"
        notes.append(f"{lack} for {_some(unknown['times'])}{how}")
    if profile.ns:
        strange = [name for name in profile.ns if name not in nodes]
        if strange:
            notes.append(
                f"{len(strange)} of {len(profile.ns)} names in the costs file are not nodes of the "
                f"step, such as {strange[0]}"
            )
    return notes


def _some(names: list[str]) -> str:
    if len(names) == 1:
        return names[0]
    return f"{len(names)} ops ({names[0]} first)"

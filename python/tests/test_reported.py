"""What users of other tools ran into, as tiny graphs whose right plan is worked out by hand.

Each test names where it was reported. Links carry a byte in a nanosecond and start at once.
"""

from __future__ import annotations

import pytest

import pardnn

BYTE_A_NS = 1_000_000_000


def machine(*memory: int) -> pardnn.Machine:
    """Devices d0, d1, ... of so many bytes."""
    return pardnn.Machine.uniform(devices=len(memory), memory=memory, bandwidth=BYTE_A_NS)


def with_host(gpus: int, gpu_memory: int, host_memory: int) -> pardnn.Machine:
    """Devices g0, g1, ... of kind gpu and one, host, of kind cpu."""
    devices = [f'{{"name": "g{n}", "kind": "gpu", "memory": {gpu_memory}}}' for n in range(gpus)]
    devices.append(f'{{"name": "host", "kind": "cpu", "memory": {host_memory}}}')
    links = '[{"from": "*", "to": "*", "bandwidth": "1GB/s"}]'
    return pardnn.Machine.parse(
        f'{{"pardnn_machine": 1, "name": "m", "devices": [{", ".join(devices)}], "links": {links}}}'
    )


def planned(text: str, devices: pardnn.Machine, **options: object) -> pardnn.Plan:
    """The plan of a graph, which fits and of which every number is right."""
    graph = pardnn.Graph.parse("pdg 1\n" + text)
    plan = pardnn.plan(graph, devices, steps=20, **options)  # type: ignore[arg-type]
    assert plan.fits, plan.why
    assert pardnn.check(graph, plan) == []
    return plan


def sent(plan: pardnn.Plan) -> list[tuple[str, str]]:
    """(producer, destination) of every tensor that crosses, sorted; control edges are left out."""
    return sorted((key, to) for key, number, to, *_ in plan.transfers if number is not None)


SPARSE = """\
kind gpu cpu
var v 64 @v
op read Read 1,2 < v > =0 @v
op gather Gather 10,20 < read > 16 @v{pin}
op use Mul 5,50 < gather > 16*
op apply SparseApply -,30 < use !v ^gather @v
"""


def test_a_group_is_where_all_its_members_can_be() -> None:
    """tensorflow/tensorflow#1310: a variable on a GPU, its sparse update for CPUs only."""
    plan = planned(SPARSE.format(pin=""), with_host(1, 1000, 1000))

    assert {plan.device_of[key] for key in ("v", "read", "gather", "apply")} == {"host"}
    # 2 + 20 on the host, 16 bytes to g0, 5 there, 16 bytes back, 30; all on the host: 102.
    assert plan.device_of["use"] == "g0"
    assert plan.step_ns == 2 + 20 + 16 + 5 + 16 + 30


def test_a_pin_that_contradicts_a_group_is_named_with_what_it_contradicts() -> None:
    """tensorflow/tensorflow#30537: the same with the lookup pinned to a GPU."""
    graph = pardnn.Graph.parse("pdg 1\n" + SPARSE.format(pin=" on=g0"))

    with pytest.raises(pardnn.Error) as refused:
        pardnn.plan(graph, with_host(1, 1000, 1000))

    for word in ('group "v"', '"gather"', "g0", '"apply"', "gpu"):
        assert word in str(refused.value)
    assert '"read"' not in str(refused.value)  # it contradicts nothing


def test_a_sum_over_two_groups_copies_each_tensor_once() -> None:
    """apache/mxnet#7080: an addition over two context groups, its gradient shared by both."""
    plan = planned(
        """\
op x Mul 10 > 8 on=d0
op y Mul 10 > 8 on=d1
op add Add 5 < x y > 8
op loss Loss 5 < add > 8
op gx Grad 10 < loss > 8* on=d0
op hx Grad 10 < loss > 8* on=d0
op gy Grad 10 < loss > 8* on=d1
""",
        machine(1000, 1000),
    )

    here = plan.device_of["add"]
    assert plan.device_of["loss"] == here
    there = "d1" if here == "d0" else "d0"
    assert sent(plan) == sorted([("y" if here == "d0" else "x", here), ("loss", there)])
    # The device of `add` also has the longer rest: two gradients.
    assert plan.step_ns == 10 + 8 + 5 + 5 + 20
    assert here == "d0"


def test_what_does_not_fit_a_device_goes_to_the_host() -> None:
    """apache/mxnet#1716: an embedding of four devices' size, the rest of half a device."""
    plan = planned(
        """\
kind gpu cpu
var table 4000 @e
op read Read 0 < table > =0 @e
op look Gather 10,20 < read > 40
op dense MatMul 20,900 < look w > 40 @w
var w 400 @w
op grad Grad 20,900 < dense look > 40
op step Apply 5,90 < grad !w @w
op sparse SparseApply 10,20 < grad !table ^look @e
""",
        with_host(1, 1000, 10_000),
    )

    assert {plan.device_of[key] for key in ("table", "look", "sparse")} == {"host"}
    assert {plan.device_of[key] for key in ("w", "dense", "grad", "step")} == {"g0"}


def test_gradients_are_where_their_forward_ops_are() -> None:
    """keras-team/keras#3620 and tensorflow/tensorflow#2441: all gradients on the first device."""
    layers = range(4)
    text = "op x Input 0 > 10 every=1\n"
    for n in layers:
        below = f"f{n - 1}" if n else "x"
        above = f"g{n + 1}" if n < 3 else "f3"
        text += f"var w{n} 100 @l{n}\n"
        text += f"op f{n} MatMul 10 < {below} w{n} > 10 @l{n} on=d{n // 2}\n"
        text += f"op g{n} Grad 20 < {above} {below} > 10\n"
        text += f"op dw{n} Grad 20 < {above} {below} > 100\n"
        text += f"op u{n} Apply 5 < dw{n} !w{n} @l{n}\n"
    # Two weights and a gradient of one, the gradient that goes down and the activations kept.
    plan = planned(text, machine(*[2 * 100 + 100 + 10 + 3 * 10] * 2))

    for n in layers:
        assert plan.device_of[f"dw{n}"] == plan.device_of[f"f{n}"] == f"d{n // 2}"
    assert min(plan.peaks.values()) >= 2 * 100 + 100 + 10


def test_two_reads_with_an_update_between_are_two_transfers() -> None:
    """tensorflow/tensorflow#16277: both readers on another device got the old value."""
    plan = planned(
        """\
var v 8 @v on=d0
op old Read 1 < v > =0 @v
op here Use 1 < old > 4* on=d1
op update Assign 5 < !v ^here @v
op new Read 1 < v ^update > =0 @v
op there Use 1 < new > 4* on=d1
""",
        machine(1000, 1000),
    )

    assert sent(plan) == [("new", "d1"), ("old", "d1")]
    # The update waits for the old value's reader, of which it hears within the least time, 1 ns.
    assert plan.step_ns == (1 + 8 + 1) + 1 + (5 + 1 + 8 + 1)


@pytest.mark.parametrize("algorithm", pardnn.algorithms())
def test_a_group_around_an_op_elsewhere_makes_no_cycle(algorithm: str) -> None:
    """PaddlePaddle/Paddle#13120 and apache/mxnet#18231: A to C directly and by way of D."""
    plan = planned(
        """\
op a A 10 > 8 @g
op b B 10 < a > 8 @g
op d D 10 < a > 8 on=d1
op c C 10 < b d > 8* @g
""",
        machine(1000, 1000),
        algorithm=algorithm,
    )

    where = plan.device_of["a"]
    ours = [key for key in plan.sequences[where] if key != "d"]
    assert (where, ours) in [("d0", ["a", "b", "c"]), ("d1", ["a", "b", "c"])]


CROSSED = """\
op a1 Make 10 > 8 on=d0
op b1 Make 10 > 8 on=d1
op a2 Use 10 < b1 > 8* on=d0
op b2 Use 10 < a1 > 8* on=d1
"""


def test_devices_that_wait_for_each_other_both_send_first() -> None:
    """ray-project/ray#45594: two actors consume each other's result, and hang."""
    plan = planned(CROSSED, machine(1000, 1000))

    assert plan.sequences == {"d0": ["a1", "a2"], "d1": ["b1", "b2"]}
    assert plan.step_ns == 10 + 8 + 10


def test_an_order_that_waits_for_itself_is_refused() -> None:
    """ray-project/ray#45594 again: both devices consume before they make."""
    graph = pardnn.Graph.parse("pdg 1\n" + CROSSED)
    places = {"a1": "d0", "a2": "d0", "b1": "d1", "b2": "d1"}
    order = {"d0": ["a2", "a1"], "d1": ["b2", "b1"]}

    with pytest.raises(pardnn.Error, match="cycle"):
        pardnn.simulate(graph, machine(1000, 1000), places, order)


def test_what_an_op_needs_while_it_runs_decides_where_layers_go() -> None:
    """deepspeedai/DeepSpeed#2974: the device with the output head ran out of memory."""
    text = "op f0 Input 0 > 0 every=1\n"
    for n in range(1, 9):
        text += f"var w{n} 1 @l{n}\nop f{n} MatMul 10 < f{n - 1} w{n} > 0 @l{n}\n"
    text += "var wh 1 @h\nop head MatMul 10 < f8 wh > 0* ws=3 @h\n"
    plan = planned(text, machine(7, 7))

    # Of 7 bytes the head takes 1 and, for a moment, 3: room for three layers of 1.
    beside = [n for n in range(1, 9) if plan.device_of[f"f{n}"] == plan.device_of["head"]]
    assert len(beside) <= 3
    assert plan.peaks[plan.device_of["head"]] == len(beside) + 1 + 3


def test_wide_chains_are_taken_one_after_another() -> None:
    """openxla/xla#35719: a hundred chains from 100 bytes to 1, all wide ends first."""
    text = "".join(f"op w{n} Wide 10 > 100\nop s{n} Small 1 < w{n} > 1\n" for n in range(100))
    text += "op sum Sum 1 < " + " ".join(f"s{n}" for n in range(100)) + " > 1*\n"
    plan = planned(text, machine(250))

    # The order that is written down has the peak that is promised.
    held, peak = 0, 0
    for key in plan.sequences["d0"]:
        held += 100 if key.startswith("w") else 1
        peak = max(peak, held)
        held -= {"w": 0, "s": 100}.get(key[0], 0) if key != "sum" else 100
    assert plan.peaks["d0"] == peak <= 250


def test_workspace_counts_while_its_op_runs_and_a_margin_stays_free() -> None:
    """pytorch/pytorch#49207: what a convolution needs while it runs makes a fitting model fail."""
    text = "op a Conv 5 > 10 ws=50\nop b Relu 5 < a > 20*\n"
    plan = planned(text, machine(100))
    assert (plan.peaks["d0"], plan.peak_at_ns["d0"]) == (60, 0)

    graph = pardnn.Graph.parse("pdg 1\n" + text)
    assert pardnn.plan(graph, machine(60)).fits
    assert not pardnn.plan(graph, machine(59)).fits
    assert pardnn.plan(graph, machine(66), margin=100).fits  # all but 6 may be used
    assert not pardnn.plan(graph, machine(65), margin=100).fits


@pytest.mark.parametrize(("ops", "devices"), [(5, 4), (42, 16)])
def test_contiguous_parts_leave_no_device_empty(ops: int, devices: int) -> None:
    """deepspeedai/DeepSpeed#4312 and #5078: five layers on four devices as 2, 2, 1 and 0."""
    text = "op f0 Layer 10 > 1\n"
    text += "".join(f"op f{n} Layer 10 < f{n - 1} > 1\n" for n in range(1, ops))
    plan = planned(text, machine(*[1000] * devices), algorithm="chunks")

    loads = [len(sequence) for sequence in plan.sequences.values()]
    assert min(loads) >= 1
    assert max(loads) == -(-ops // devices)


def test_contiguous_parts_are_balanced_by_each_layers_own_size() -> None:
    """kakaobrain/torchgpipe#3: sizes added up over the layers made later ones look larger."""
    text = "".join(
        f"op f{n} Layer {6 - n} {f'< f{n - 1}' if n else ''} > 1 @l{n}\nvar w{n} {6 - n} @l{n}\n"
        for n in range(6)
    )
    plan = planned(text, machine(1000, 1000), algorithm="chunks")

    assert [len(sequence) for sequence in plan.sequences.values()] == [2, 4]  # 6 + 5, 4 + 3 + 2 + 1


def test_a_skip_connection_across_devices_is_sent_once() -> None:
    """huggingface/accelerate#1851: a residual block is cut, its addition sees two devices."""
    plan = planned(
        """\
op x X 5 > 8 on=d0
op f F 10 < x > 6 on=d0
op add Add 5 < x f > 8 on=d1
op also Mul 5 < x add > 8* on=d1
""",
        machine(1000, 1000),
    )

    assert sent(plan) == [("f", "d1"), ("x", "d1")]
    assert plan.bytes_sent == 8 + 6
    assert plan.step_ns == 5 + 10 + 6 + 5 + 5  # x travels while f is computed


def test_what_cannot_be_faster_on_more_devices_stays_on_one() -> None:
    """huggingface/transformers#12524: a chain cut over four devices leaves three of them idle."""
    text = "op f0 Layer 10 > 9\n" + "".join(
        f"op f{n} Layer 10 < f{n - 1} > 9\n" for n in range(1, 8)
    )
    plan = planned(text, machine(1000, 1000, 1000, 1000))

    assert plan.step_ns == plan.bound_ns == 80
    assert len([sequence for sequence in plan.sequences.values() if sequence]) == 1

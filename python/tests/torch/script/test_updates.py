"""Which optimizers step on each rank over its own parameters: all ranks find the same."""

from __future__ import annotations

import pytest
import torch
from torch import optim

from pardnn.torch.script import limits
from pardnn.torch.script.hollow import Home, home_of, settle
from pardnn.torch.script.updates import parts_of


def placed(*owners: int) -> list[torch.nn.Parameter]:
    """Parameters at home on these ranks, each with a gradient on the same one."""
    parameters = []
    for number, owner in enumerate(owners):
        parameter = torch.nn.Parameter(torch.ones(3))
        settle(parameter, Home(owner, number))
        parameter.grad = torch.ones(3)
        settle(parameter.grad, Home(owner))
        parameters.append(parameter)
    return parameters


def stepped(optimizer: optim.Optimizer) -> optim.Optimizer:
    """The optimizer with the state of its first step, each at home with its parameter."""
    optimizer.step()
    for parameter, state in optimizer.state.items():
        for value in state.values():
            if isinstance(value, torch.Tensor) and value.dim():
                settle(value, Home(home_of(parameter).owner))
    return optimizer


def test_a_step_has_a_part_for_each_parameter_with_a_gradient() -> None:
    first, second, third = placed(0, 1, 1)
    optimizer = stepped(optim.Adam([first, second, third]))
    second.grad = None
    parts = parts_of(optimizer)
    assert [part.parameter for part in parts] == [first, third]
    assert [part.home.owner for part in parts] == [0, 1]
    assert [len(part.state) for part in parts] == [2, 2]  # the two moments
    assert [len(part.counts) for part in parts] == [1, 1]  # the number of steps


def test_the_first_step_makes_state_and_goes_op_by_op() -> None:
    assert parts_of(optim.Adam(placed(0, 1))) is None
    assert len(parts_of(optim.SGD(placed(0, 1)))) == 2  # without momentum it has none


def test_what_is_not_one_parameter_by_the_other_goes_op_by_op() -> None:
    class Own(optim.SGD):
        pass

    assert parts_of(Own(placed(0, 1))) is None
    assert parts_of(optim.LBFGS(placed(0, 1))) is None
    assert parts_of(stepped(optim.NAdam(placed(0, 1)))) is None  # a product that is no count
    assert parts_of(stepped(optim.Adam(placed(0, 1), fused=True))) is None


def test_state_that_is_elsewhere_goes_op_by_op() -> None:
    optimizer = stepped(optim.SGD(placed(0, 1), momentum=0.9))
    assert len(parts_of(optimizer)) == 2
    settle(next(iter(optimizer.state.values()))["momentum_buffer"], Home(1))
    assert parts_of(optimizer) is None


def test_many_gradients_that_are_elsewhere_go_op_by_op() -> None:
    parameters = placed(*[0] * 17)
    optimizer = optim.SGD(parameters)
    for parameter in parameters[1:]:
        settle(parameter.grad, Home(1))
    assert len(parts_of(optimizer)) == 17
    settle(parameters[0].grad, Home(1))
    assert parts_of(optimizer) is None


def test_a_step_has_room_before_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused half-way it could not be done again: what the allocator keeps goes back before."""
    given_back: list[bool] = []
    monkeypatch.setattr(limits, "give_back", lambda: given_back.append(True))
    monkeypatch.setattr(limits, "allow", lambda nbytes: None)
    monkeypatch.setattr(limits, "keep_little", lambda limit: None)
    memory = limits.Memory(1 << 30)
    memory.begin()
    given_back.clear()
    memory.make_room(1 << 20)
    assert not given_back
    memory.make_room(1 << 60)  # which no system has
    assert given_back

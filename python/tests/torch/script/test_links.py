"""Streams between ranks: exact strides, no deadlock, and no message that was not expected."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator

import pytest
import torch

from pardnn.torch.script.links import Desync, Links, LostRankError

MIB = 1 << 20


@contextlib.contextmanager
def two_ranks() -> Iterator[tuple[Links, Links]]:
    """Both ends in this process: what one sends waits in the system for the other."""
    first, second = socket.socketpair()
    with first, second:
        yield Links(0, {1: first}), Links(1, {0: second})


def both_note(*ranks: Links) -> None:
    for links in ranks:
        links.note(5, (2, 3))


@pytest.mark.parametrize(
    "tensor",
    [
        torch.arange(24.0).view(4, 6),
        torch.arange(24.0).view(4, 6).t(),
        torch.arange(24.0).view(4, 6)[:, 1:4],  # rows with gaps
        torch.arange(4.0).view(4, 1).expand(4, 5),
        torch.tensor([True, False, True]),
        torch.arange(6.0).to(torch.bfloat16),
        torch.zeros(0, 3),
        torch.tensor(2.5),
    ],
    ids=["rows", "columns", "gaps", "expanded", "bool", "bfloat16", "empty", "scalar"],
)
def test_a_tensor_arrives_with_its_values_and_its_strides(tensor: torch.Tensor) -> None:
    with two_ranks() as (sender, receiver):
        both_note(sender, receiver)
        sender.send(tensor, 1)
        received = receiver.expect(tensor, 0).wait()
    assert torch.equal(received, tensor)
    assert received.stride() == tensor.stride()
    assert received.dtype == tensor.dtype


def test_what_was_sent_may_be_changed_at_once() -> None:
    tensor = torch.ones(3)
    with two_ranks() as (sender, receiver):
        both_note(sender, receiver)
        sender.send(tensor, 1)
        tensor.zero_()
        assert receiver.expect(tensor, 0).wait().tolist() == [1, 1, 1]


def test_messages_that_nobody_waits_for_do_not_shift_the_next() -> None:
    with two_ranks() as (sender, receiver):
        both_note(sender, receiver)
        sender.send(torch.zeros(5), 1)
        receiver.expect(torch.zeros(5), 0)  # dropped: nobody holds it
        both_note(sender, receiver)
        sender.send(torch.ones(2), 1)
        assert receiver.expect(torch.ones(2), 0).wait().tolist() == [1, 1]


def test_two_ranks_that_send_much_to_each_other_at_once_both_go_on() -> None:
    first, second = socket.socketpair()
    large = torch.arange(4 * MIB, dtype=torch.float32)  # 16 MiB, more than any buffer
    process = os.fork()
    links = Links(int(process == 0), {int(process != 0): second if process == 0 else first})
    other = int(process != 0)
    links.note(1, None)
    incoming = links.expect(large, other)
    links.send(large, other)
    same = torch.equal(incoming.wait(), large)
    if process == 0:
        links.close()
        os._exit(0 if same else 1)
    links.close()
    assert same
    _, status = os.waitpid(process, 0)
    assert status == 0


def test_a_rank_that_did_another_op_is_found_out() -> None:
    with two_ranks() as (sender, receiver):
        sender.note(5, (2, 3))
        receiver.note(5, (2, 4))
        sender.send(torch.zeros(2), 1)
        with pytest.raises(Desync, match="ranks 0 and 1 went different ways.*at op 1"):
            receiver.expect(torch.zeros(2), 0).wait()


def test_a_message_of_another_length_is_found_out() -> None:
    with two_ranks() as (sender, receiver):
        both_note(sender, receiver)
        sender.send(torch.zeros(250), 1)
        with pytest.raises(Desync, match="expected 400 bytes .* sent 1000 bytes"):
            receiver.expect(torch.zeros(100), 0).wait()


def test_a_rank_that_is_ahead_is_found_out() -> None:
    with two_ranks() as (sender, receiver):
        both_note(sender, receiver)
        sender.note(5, (2, 3))
        sender.send(torch.zeros(2), 1)
        with pytest.raises(Desync, match="at its op 2"):
            receiver.expect(torch.zeros(2), 0).wait()


def test_the_end_of_a_rank_is_an_error_of_the_one_that_waits() -> None:
    with two_ranks() as (sender, receiver):
        both_note(sender, receiver)
        sender.abandon()
        with pytest.raises(LostRankError, match="rank 0 has ended"):
            receiver.expect(torch.zeros(2), 0).wait()


def test_all_get_the_value_that_one_has() -> None:
    with two_ranks() as (sender, receiver):
        both_note(sender, receiver)
        assert sender.broadcast({"loss": 0.25}, 0) == {"loss": 0.25}
        assert receiver.broadcast(None, 0) == {"loss": 0.25}

"""Streams between ranks, one per pair, in the order in which both ends' programs meet the messages.

Every message says at which op of the program it was sent, a digest of all ops before, and its
length. The receiver, which runs the same program, knows all three in advance; a message that says
anything else is the end of the run, not a wrong number.

Sending never waits for the receiver's program, only for room: what the system does not take at
once is kept, up to ``KEPT_BYTES`` in all. While a rank waits it moves bytes in both directions, and
what comes was announced by its own program, so some rank can always go on: the one that is furthest
behind.
"""

from __future__ import annotations

import collections
import ctypes
import itertools
import pickle
import select
import socket
import struct
import time
import weakref
from collections.abc import Mapping
from typing import Any

import torch

from pardnn.errors import Refusal

KEPT_BYTES = 4 << 20
_PIECE_BYTES = 1 << 17  # of what is kept: a piece that was sent is let go
_HEADER = struct.Struct("<QqQ")
_view_of = ctypes.pythonapi.PyMemoryView_FromMemory
_view_of.restype = ctypes.py_object
_view_of.argtypes = [ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int]
_WRITABLE = 0x200


class Desync(Refusal):
    """Two ranks ran different programs."""


class LostRankError(RuntimeError):
    """Another rank has closed its stream."""


class Incoming:
    """A message that the program has come past: ``wait()`` gives what it holds."""

    __slots__ = ("__weakref__", "_like", "_links", "done", "source", "value")

    def __init__(self, links: Links, source: int, like: torch.Tensor | None) -> None:
        self._links = links
        self._like = None if like is None else (like.shape, like.stride(), like.dtype)
        self.source = source
        self.value: Any = None
        self.done = False

    def wait(self) -> Any:
        """The tensor, or for messages without a known length the bytes."""
        if not self.done:
            self._links.move(until=self)
        return self.value

    def target(self, nbytes: int) -> memoryview:
        """Where the bytes go."""
        if self._like is None:
            self.value = bytearray(nbytes)
            return memoryview(self.value)
        shape, stride, dtype = self._like
        self.value = torch.empty_strided(*_as_sent(shape, stride), dtype=dtype)
        return bytes_of(self.value, nbytes)

    def finish(self) -> None:
        """All bytes are there."""
        if self._like is not None:
            shape, stride, _ = self._like
            if self.value.shape != shape or self.value.stride() != stride:
                self.value = _as_original(self.value, shape, stride)
        self.done = True


class _Peer:
    """One end of a stream."""

    def __init__(self, stream: socket.socket) -> None:
        stream.setblocking(False)
        self.stream = stream
        self.outgoing: collections.deque[memoryview] = collections.deque()
        self.expected: collections.deque[tuple[int, int, int | None, Any]] = collections.deque()
        self.header = bytearray(_HEADER.size)
        self.rest = memoryview(self.header)
        self.incoming: Any = None
        self.in_header = True


class Links:
    """The streams of one rank. ``streams``: a connected stream socket by the other's rank."""

    def __init__(self, rank: int, streams: Mapping[int, socket.socket]) -> None:
        self.rank = rank
        self.count = 0
        self.digest = 0
        self.messages = 0
        self.bytes_sent = 0
        self.waited_s = 0.0
        self._kept = 0
        self._waiting: list[_Peer] = []
        self._peers = {other: _Peer(stream) for other, stream in streams.items()}

    def note(self, what: int, shape: Any = None) -> None:
        """One more op: from now on messages say that it was done."""
        self.count += 1
        self.digest = hash((self.digest, what, shape))
        for peer in self._waiting:
            self._write(peer)  # the system may have room by now
        if self._waiting:
            self._waiting = [peer for peer in self._waiting if peer.outgoing]

    def close(self) -> None:
        """Sends what was kept, and closes the streams."""
        self._move_while(lambda: any(peer.outgoing for peer in self._peers.values()))
        self.abandon()

    def abandon(self) -> None:
        """Closes the streams; a child process must not keep them open."""
        for peer in self._peers.values():
            peer.stream.close()

    def send(self, tensor: torch.Tensor, to: int) -> None:
        """Sends a tensor's values; it may be changed or freed as soon as this returns."""
        shape, stride = _as_sent(tensor.shape, tensor.stride())
        if tensor.is_conj() or tensor.is_neg():
            tensor = tensor.resolve_conj().resolve_neg()
        image = tensor
        if tensor.shape != shape or tensor.stride() != stride:
            image = torch.empty_strided(shape, stride, dtype=tensor.dtype)
            image.copy_(_distinct(tensor))
        nbytes = image.numel() * image.dtype.itemsize
        if nbytes:
            self._send(to, bytes_of(image, nbytes))

    def expect(self, like: torch.Tensor, source: int) -> Incoming:
        """What ``source`` sends now of a tensor of this shape and stride."""
        incoming = Incoming(self, source, like)
        shape, _ = _as_sent(like.shape, like.stride())
        nbytes = shape.numel() * like.dtype.itemsize
        if nbytes == 0:
            incoming.value = torch.empty_strided(like.shape, like.stride(), dtype=like.dtype)
            incoming.done = True
            return incoming
        self._expect(incoming, nbytes)
        return incoming

    def broadcast(self, value: Any, source: int) -> Any:
        """The value that ``source`` has, which any two ranks agree on or end."""
        if source == self.rank:
            data = memoryview(pickle.dumps(value))
            for other in self._peers:
                self._send(other, data)
            return value
        incoming = Incoming(self, source, None)
        self._expect(incoming, None)
        return pickle.loads(incoming.wait())

    def move(self, until: Incoming) -> None:
        """Moves bytes until a message is there."""
        begin = time.perf_counter()
        self._read(self._peers[until.source])
        self._move_while(lambda: not until.done)
        self.waited_s += time.perf_counter() - begin

    def _expect(self, incoming: Incoming, nbytes: int | None) -> None:
        entry = (self.count, self.digest, nbytes, weakref.ref(incoming))
        self._peers[incoming.source].expected.append(entry)

    def _send(self, to: int, data: memoryview) -> None:
        peer = self._peers[to]
        self.messages += 1
        self.bytes_sent += data.nbytes
        header = memoryview(_HEADER.pack(self.count, self.digest, data.nbytes))
        peer.outgoing.append(header)
        peer.outgoing.append(data)
        self._kept += header.nbytes + data.nbytes
        self._write(peer)
        self._move_while(lambda: self._kept > KEPT_BYTES)
        if peer.outgoing:  # the memory is the sender's again when this returns
            self._waiting.append(peer)
            rest = peer.outgoing.pop()
            for begin in range(0, rest.nbytes, _PIECE_BYTES):
                peer.outgoing.append(memoryview(bytes(rest[begin : begin + _PIECE_BYTES])))

    def _move_while(self, needed: Any) -> None:
        while needed():
            waiting = select.poll()
            by_number = {}
            for peer in self._peers.values():
                mask = (select.POLLIN if peer.expected or peer.incoming else 0) | (
                    select.POLLOUT if peer.outgoing else 0
                )
                if mask:
                    waiting.register(peer.stream, mask)
                    by_number[peer.stream.fileno()] = peer
            for number, events in waiting.poll():
                peer = by_number[number]
                if events & select.POLLOUT:
                    self._write(peer)
                if events & (select.POLLIN | select.POLLHUP | select.POLLERR):
                    self._read(peer)

    def _write(self, peer: _Peer) -> None:
        while peer.outgoing:
            try:
                sent = peer.stream.sendmsg(list(itertools.islice(peer.outgoing, 32)))
            except BlockingIOError:
                return
            except OSError:
                raise self._lost(peer) from None
            self._kept -= sent
            while sent:
                first = peer.outgoing[0]
                if sent >= first.nbytes:
                    sent -= first.nbytes
                    peer.outgoing.popleft()
                else:
                    peer.outgoing[0] = first[sent:]
                    sent = 0

    def _read(self, peer: _Peer) -> None:
        """Takes what has come, as far as the own program has announced it."""
        while peer.expected or peer.incoming is not None:
            try:
                got = peer.stream.recv_into(peer.rest)
            except BlockingIOError:
                return
            except OSError:
                got = 0
            if got == 0:
                raise self._lost(peer)
            peer.rest = peer.rest[got:]
            if peer.rest.nbytes == 0:
                self._next_part(peer)

    def _next_part(self, peer: _Peer) -> None:
        if peer.in_header:
            count, digest, nbytes = _HEADER.unpack(peer.header)
            own_count, own_digest, own_nbytes, reference = peer.expected.popleft()
            other = self._number_of(peer)
            if (count, digest) != (own_count, own_digest) or own_nbytes not in (None, nbytes):
                raise Desync(
                    f"ranks {other} and {self.rank} went different ways in the script: at op "
                    f"{own_count} rank {self.rank} expected {_said(own_nbytes, own_digest)} and "
                    f"rank {other} sent {_said(nbytes, digest)} at its op {count}; look for what "
                    "differs between processes, such as time, process ids or unseeded numbers"
                )
            incoming = reference()
            peer.incoming = incoming if incoming is not None else _Nobody()
            peer.rest = peer.incoming.target(nbytes)
            peer.in_header = False
        if peer.rest.nbytes == 0:
            peer.incoming.finish()
            peer.incoming = None
            peer.rest = memoryview(peer.header)
            peer.in_header = True

    def _number_of(self, peer: _Peer) -> int:
        return next(other for other, known in self._peers.items() if known is peer)

    def _lost(self, peer: _Peer) -> LostRankError:
        return LostRankError(f"rank {self._number_of(peer)} has ended")


class _Nobody:
    """Takes a message that nobody wants any more."""

    def target(self, nbytes: int) -> memoryview:
        return memoryview(bytearray(nbytes))

    def finish(self) -> None:
        pass


def _said(nbytes: int | None, digest: int) -> str:
    size = "values" if nbytes is None else f"{nbytes} bytes"
    return f"{size} (digest {digest & 0xFFFFFF:06x})"


def bytes_of(tensor: torch.Tensor, nbytes: int) -> memoryview:
    """The memory of a dense tensor; it does not keep the tensor alive."""
    if nbytes == 0:
        return memoryview(b"")
    view: memoryview = _view_of(tensor.data_ptr(), nbytes, _WRITABLE)
    return view


def _is_dense(shape: torch.Size, stride: tuple[int, ...]) -> bool:
    """Whether the elements fill a piece of memory without gap, in whatever order."""
    expected = 1
    for step, size in sorted((k, s) for s, k in zip(shape, stride, strict=True) if s != 1):
        if step != expected:
            return False
        expected *= size
    return True


def _as_sent(shape: torch.Size, stride: tuple[int, ...]) -> tuple[torch.Size, tuple[int, ...]]:
    """Shape and stride of what travels: expanded dimensions once, gaps closed."""
    if 0 in stride:
        shape = torch.Size(min(s, 1) if k == 0 else s for s, k in zip(shape, stride, strict=True))
    if shape.numel() == 0 or _is_dense(shape, stride):
        return shape, stride
    rows: list[int] = []
    step = 1
    for size in reversed(shape):
        rows.append(step)
        step *= size
    return shape, tuple(reversed(rows))


def _distinct(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor with each expanded dimension taken once."""
    return tensor[tuple(slice(0, 1) if k == 0 else slice(None) for k in tensor.stride())]


def _as_original(
    received: torch.Tensor, shape: torch.Size, stride: tuple[int, ...]
) -> torch.Tensor:
    """Received values under exactly the original's strides, which kernels look at."""
    once = torch.Size(min(s, 1) if k == 0 else s for s, k in zip(shape, stride, strict=True))
    if received.stride() != stride:
        wide = torch.empty_strided(once, stride, dtype=received.dtype)
        received = wide.copy_(received)
    return received.as_strided(shape, stride)

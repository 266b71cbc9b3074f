from __future__ import annotations

import random
import select
import socket
import threading
import time
from queue import Queue

import msgspec
import pytest

from gradscope.inspect import Debugger
from gradscope.inspect.wire import messages as m
from gradscope.inspect.wire.addresses import Address
from gradscope.inspect.wire.channel import Channel, ChannelError, encode
from gradscope.inspect.wire.client import introduced
from gradscope.inspect.wire.handshake import shake_hands
from gradscope.inspect.wire.server import DebugServer

from .programs import front_of, served, train


@pytest.fixture
def debugger():
    debugger = Debugger.for_call(train)
    debugger.start()
    debugger.wait(10)
    yield debugger
    debugger.abort()
    debugger.wait(10)


def answers(channel, count):
    return [channel.receive(10) for _ in range(count)]


def test_requests_are_answered_in_their_order_but_a_pause_at_once(debugger):
    with front_of(debugger) as channel:
        introduced(channel)
        channel.send(m.Request(1, m.Evaluate("__import__('time').sleep(0.5) or 'slow'")))
        channel.send(m.Request(2, m.Evaluate("'next'")))
        channel.send(m.Request(3, m.Pause()))
        first, second, third = answers(channel, 3)
    assert (first.id, first.error) == (3, "SessionError")
    assert [msgspec.msgpack.decode(found.result) for found in (second, third)] == ["'slow'", "'next'"]


def test_a_request_that_is_cancelled_is_not_answered(debugger):
    with front_of(debugger) as channel:
        introduced(channel)
        channel.send(m.Request(1, m.Evaluate("__import__('time').sleep(0.3)")))
        channel.send(m.Request(2, m.Execute("changed = 1")))
        channel.send(m.Cancel(2))
        channel.send(m.Cancel(1))
        channel.send(m.Request(3, m.Evaluate("'changed' in dir()")))
        assert channel.receive(10).id == 3


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(select, "poll"), reason="the system does not tell that a front has gone")
def test_a_front_that_dies_in_the_middle_of_many_verbs_is_missed(debugger):
    here, there = socket.socketpair()
    server = DebugServer(debugger, None, Address(path=""))
    left: Queue[bool] = Queue()
    server.on_leaving = left.put
    server.adopt(there)
    channel: Channel = Channel(here, m.FromProgram)
    introduced(channel)
    channel.send(m.Request(1, m.Evaluate("[0 for _ in iter(int, 1)]")))  # it has no end
    for number in range(2, 200):
        channel.send(m.Request(number, m.Execute(f"last = {number}")))
    channel.close()
    assert left.get(timeout=30) is False
    debugger.abort()  # which ends the expression
    assert debugger.wait(10).ended
    server.close()


def test_a_second_front_is_refused_and_may_come_later(debugger):
    with served(debugger) as remote:
        here, there = socket.socketpair()
        server = DebugServer(debugger, None, Address(path=""))
        server.front = object.__new__(type("Other", (), {"pid": 17, "close": lambda self: None}))
        server.adopt(there)
        with pytest.raises(ChannelError, match="another front is attached \\(process 17\\)"):
            introduced(Channel(here, m.FromProgram))
        server.close()
        remote.step()
        assert remote.wait(10).paused


def test_a_slow_front_does_not_hold_the_program_up():
    debugger = Debugger.for_call(lambda: [train() for _ in range(100)])
    with front_of(debugger) as channel:
        introduced(channel)
        channel.send(m.Request(1, m.AddBreakpoint("*", log="'x' * 20_000")))
        channel.send(m.Request(2, m.Continue()))
        while not debugger.ended:  # were it held up, the suite's time limit would say where every thread stands
            time.sleep(0.01)
        assert len(debugger.log) == 1800


def test_lines_that_nobody_takes_are_counted(debugger):
    with front_of(debugger) as channel:
        introduced(channel)
        for _ in range(40_000):
            debugger._logged("x" * 200)
        lost = lines = 0
        while lines + lost < 40_000:
            message = channel.receive(10)
            if isinstance(message, m.Logged):
                lines, lost = lines + len(message.lines), lost + message.lost
    assert lost > 0
    assert lines + lost == 40_000


def malformed(rng):
    """Return bytes that may or may not be a message."""
    kind = rng.randrange(5)
    if kind == 0:
        return rng.randbytes(rng.randrange(200))
    if kind == 1:
        return rng.randrange(2**32).to_bytes(4, "big") + rng.randbytes(rng.randrange(50))
    step = {"verb": "step", "n": rng.choice([0, -1, "x", 2**63])}
    value = {
        "type": rng.choice(["request", "cancel", "hello", "proof", "reply", 5]),
        "id": rng.choice([1, "a", None, -9]),
        "verb": rng.choice([step, {"verb": "nodes"}, {}, [], None]),
    }
    data = bytearray(encode(value))
    if kind == 3:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return len(data).to_bytes(4, "big") + bytes(data[: None if kind != 4 else rng.randrange(len(data))])


@pytest.mark.parametrize(
    ("seed", "count"), [*((seed, 150) for seed in range(4)), pytest.param(4, 10_000, marks=pytest.mark.slow)]
)
def test_malformed_messages_do_no_harm(debugger, seed, count):
    rng = random.Random(seed)
    sent = 0
    while sent < count:
        here, there = socket.socketpair()
        server = DebugServer(debugger, None, Address(path=""))
        server.adopt(there)
        channel = Channel(here, m.FromProgram)
        with here:
            if rng.random() < 0.7:
                shake_hands(channel, "front", b"")
            try:
                for _ in range(rng.randrange(1, 5)):
                    sent += 1
                    here.sendall(malformed(rng))
                here.shutdown(socket.SHUT_WR)
                here.settimeout(10)
                while here.recv(65536):
                    pass
            except OSError:
                pass
        server.close()
    with served(debugger) as remote:
        assert remote.records(0, 1)
    assert threading.active_count() < 40

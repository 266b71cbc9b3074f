from __future__ import annotations

import os
import socket
import struct
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradscope.inspect.wire.channel import Channel, ChannelError, ClosedHereError, encode

anything = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture
def channels(ends):
    return [Channel(end, object) for end in ends()]


@given(anything)
def test_what_is_sent_is_received(value):
    here, there = (Channel(end, object) for end in socket.socketpair())
    here.send(value)
    assert there.receive() == value
    here.close()
    assert there.receive() is None
    there.close()


def test_a_large_message_comes_in_parts(channels):
    here, there = channels
    value = "x" * 5_000_000
    sender = threading.Thread(target=here.send, args=(value,))
    sender.start()
    assert there.receive(10) == value
    sender.join()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\0\0", "cut in the middle"),
        (b"\0\0\0\x05abc", "cut in the middle"),
        (struct.pack(">I", 1 << 30), "1,073,741,824 bytes is announced"),
        (b"\0\0\0\x01\xc1", "no message of the protocol"),
        (b"\0\0\0\x01\x01", "no message of the protocol: Expected `str`, got `int`"),
        (b"\0\0\0\0", "no message of the protocol"),
        (b"\0\0\xff\xff" + b"\x91" * 65535, "no message of the protocol"),
    ],
)
def test_what_is_no_message_is_said(data, said, ends):
    raw, end = ends()
    raw.sendall(data)
    raw.close()
    with pytest.raises(ChannelError, match=said):
        Channel(end, str).receive(5)


def test_silence_is_not_waited_for(channels):
    _, there = channels
    with pytest.raises(ChannelError, match="does not answer"):
        there.receive(0.05)


def test_what_is_no_unicode_is_replaced(channels):
    here, there = channels
    here.send({"a\udc80": ["\ud800", b"\xff"]})
    assert there.receive() == {"a\ufffd": ["\ufffd", b"\xff"]}
    assert encode("fine") == b"\xa4fine"


def test_the_other_side_is_gone(channels):
    here, there = channels
    there.close()
    with pytest.raises(ChannelError, match="gone"):
        here.send("x" * 10_000_000)


@pytest.mark.skipif(not hasattr(socket, "SO_PEERCRED"), reason="the system does not tell who is at the other end")
def test_who_is_at_the_other_end(channels):
    here, _ = channels
    assert here.peer == os.getpid()


def test_who_is_at_the_other_end_of_a_network_is_not_known():
    listener = socket.create_server(("127.0.0.1", 0))
    with listener, socket.create_connection(listener.getsockname()) as connection:
        assert Channel(connection, str).peer == 0


@pytest.mark.skipif(os.name != "posix", reason="sockets have no descriptors")
def test_a_descriptor_that_the_program_has_closed_is_left_to_what_has_its_number_now(tmp_path):
    here, there = (Channel(end, int | str) for end in socket.socketpair())
    said = []

    def receive():
        try:
            here.receive()
        except ClosedHereError as error:
            said.append(str(error))

    waiting = threading.Thread(target=receive)
    waiting.start()
    number = here.fileno()
    os.close(number)
    with open(tmp_path / "own", "wb") as own:
        assert own.fileno() == number, "the program's file has the number"
        waiting.join(30)
        assert said == ["the program has closed its connection to the debugger"]
        with pytest.raises(ClosedHereError):
            here.send("lost")
        here.close()
        assert there.receive(30) is None
        own.write(b"kept")
    assert (tmp_path / "own").read_bytes() == b"kept"
    there.close()

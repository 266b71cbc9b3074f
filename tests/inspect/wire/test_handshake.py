from __future__ import annotations

import threading

import pytest

from gradscope.inspect.wire import messages as m
from gradscope.inspect.wire.channel import Channel, ChannelError
from gradscope.inspect.wire.handshake import HandshakeError, shake_hands


def meet(ends, front_token=b"", program_token=b""):
    """Return what each side learns, or the error that it gets."""
    here, there = ends()
    found = {}

    def side(role, connection, kind, token):
        try:
            found[role] = shake_hands(Channel(connection, kind), role, token)
        except ChannelError as error:
            found[role] = error

    program = threading.Thread(target=side, args=("program", there, m.FromFront, program_token))
    program.start()
    side("front", here, m.FromProgram, front_token)
    program.join(10)
    return found["front"], found["program"]


def test_both_sides_learn_of_each_other(ends):
    front, program = meet(ends, b"secret", b"secret")
    assert front.protocol == program.protocol == m.PROTOCOL


def test_a_wrong_token_is_refused_by_the_program_before_anything_else(ends):
    front, program = meet(ends, b"guess", b"secret")
    assert isinstance(front, HandshakeError)
    assert str(front) == str(program)
    what, what_to_do = str(front).splitlines()
    assert what == "the token is not the one that the program was started with"
    assert "GRADSCOPE_TOKEN" in what_to_do


def test_who_gives_no_token_hears_how_to_give_it(ends):
    front, program = meet(ends, b"", b"secret")
    assert str(front) == str(program)
    assert str(front).startswith("the program wants its token, and none was given\n")
    assert "GRADSCOPE_TOKEN" in str(front)


def test_another_version_is_named(ends):
    here, there = ends()
    Channel(there, m.FromFront).send(m.Hello(99, "9.9", 1, b"x" * 32))
    with pytest.raises(HandshakeError, match=r"the program has gradscope 9\.9 \(protocol 99\) and the front gradscope"):
        shake_hands(Channel(here, m.FromProgram), "front", b"")


def test_a_program_that_does_not_know_the_verb_norms_is_not_attached_to(ends):
    here, there = ends()
    Channel(there, m.FromFront).send(m.Hello(1, "0.7.0", 1, b"x" * 32))
    with pytest.raises(HandshakeError, match=r"gradscope 0\.7\.0 \(protocol 1\)"):
        shake_hands(Channel(here, m.FromProgram), "front", b"")


def test_a_proof_cannot_be_sent_back(ends):
    """A program that only returns what it gets does not pass for one that knows the token."""
    here, there = ends()

    def mirror():
        channel = Channel(there, m.Hello | m.Proof | m.Refused)
        for _ in range(2):
            channel.send(channel.receive(5))

    thread = threading.Thread(target=mirror)
    thread.start()
    with pytest.raises(HandshakeError, match="token"):
        shake_hands(Channel(here, m.FromProgram), "front", b"secret")
    thread.join(60)


def test_large_messages_are_not_read_before_the_proof(ends):
    here, there = ends()
    Channel(there, m.FromFront).send("x" * 100_000)
    with pytest.raises(ChannelError, match="at most 4,096 are taken"):
        shake_hands(Channel(here, m.FromProgram), "front", b"")

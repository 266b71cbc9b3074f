"""The first four messages of a connection: versions, and the proof that both sides know the token.

Nothing else is read before. The proof is HMAC-SHA256 by the token of the role and both nonces, so that neither side can
send the other's proof back to it (RFC 2104; FIPS 198-1).
"""

from __future__ import annotations

import hmac
import os
import secrets
from typing import Any

from ...version import __version__
from ..records.own_rank import OwnRank, own_rank
from .channel import LARGEST, Channel, ChannelError
from .messages import PROTOCOL, Hello, Proof, Refused

__all__ = ["PATIENCE", "HandshakeError", "shake_hands"]

PATIENCE = 5.0
"""Seconds in which each message of the handshake must have come."""

_LARGEST = 4096
_NONCE = 32


_OTHER_TOKEN = (
    "the token is not the one that the program was started with\n"
    "Set the environment variable GRADSCOPE_TOKEN to what it is there."
)
_NO_TOKEN = (
    "the program wants its token, and none was given\n"
    "The environment variable GRADSCOPE_TOKEN gives it to `gradscope attach` and `gradscope dap`."
)


class HandshakeError(ChannelError):
    """The other side speaks another version, does not know the token, or has refused."""


def shake_hands(channel: Channel[Any], role: str, token: bytes, patience: float | None = PATIENCE) -> Hello:
    """Agree on the version, and let each side prove that it knows the token.

    Parameters
    ----------
    role : str
        This side's: ``'front'`` or ``'program'``.
    token : bytes
        The secret; empty where the socket is its owner's alone.
    patience : float or None
        Seconds in which the first message must have come: a program that has just been started takes a while.

    Returns
    -------
    Hello
        What the other side says of itself.

    Raises
    ------
    HandshakeError
        If that is not so; the other side is told.
    ChannelError
        If the connection breaks, or nothing comes in time.
    """
    channel.largest = _LARGEST
    place = own_rank() if role == "program" else OwnRank()
    mine = Hello(PROTOCOL, __version__, os.getpid(), secrets.token_bytes(_NONCE), place.rank, place.world, place.job)
    channel.send(mine)
    theirs: Hello = _expect(channel, Hello, patience)
    if theirs.protocol != PROTOCOL:
        _refuse(channel, _other_version(theirs, role))
    if len(theirs.nonce) != _NONCE:
        _refuse(channel, f"a nonce has {_NONCE} bytes, got {len(theirs.nonce)}")
    other = "program" if role == "front" else "front"
    if role == "front":  # the program, which the token protects, proves last
        channel.send(Proof(_digest(token, role, theirs.nonce, mine.nonce)))
    proof = _expect(channel, Proof, patience)
    if not hmac.compare_digest(proof.digest, _digest(token, other, mine.nonce, theirs.nonce)):
        none = hmac.compare_digest(proof.digest, _digest(b"", other, mine.nonce, theirs.nonce))
        _refuse(channel, _NO_TOKEN if none and role == "program" else _OTHER_TOKEN)
    if role == "program":
        channel.send(Proof(_digest(token, role, theirs.nonce, mine.nonce)))
    channel.largest = LARGEST
    return theirs


def _digest(token: bytes, role: str, theirs: bytes, own: bytes) -> bytes:
    return hmac.digest(token, role.encode() + theirs + own, "sha256")


def _expect(channel: Channel[Any], kind: type[Any], patience: float | None) -> Any:
    message = channel.receive(patience)
    if isinstance(message, kind):
        return message
    if isinstance(message, Refused):
        raise HandshakeError(message.text)
    if message is None:
        raise ChannelError("the other side has closed the connection")
    _refuse(channel, f"a {kind.__name__} was expected, got a {type(message).__name__}")


def _refuse(channel: Channel[Any], text: str) -> Any:
    channel.send(Refused(text))
    raise HandshakeError(text)


def _other_version(theirs: Hello, role: str) -> str:
    program, front = (theirs, None) if role == "front" else (None, theirs)

    def told(side: Hello | None) -> str:
        return f"{__version__} (protocol {PROTOCOL})" if side is None else f"{side.version} (protocol {side.protocol})"

    return (
        f"the program has gradscope {told(program)} and the front gradscope {told(front)}\n"
        "Start both with the same version."
    )

"""Frames on a socket: four bytes of length, most significant first, then a message in MessagePack."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import struct
import threading
import time
from typing import Any, Generic, Protocol, TypeVar

import msgspec

__all__ = ["LARGEST", "Channel", "ChannelError", "ClosedHereError", "MessageChannel", "encode"]

T = TypeVar("T")

LARGEST = 64 << 20
"""The size in bytes of the largest message that is accepted."""

_LENGTH = struct.Struct(">I")
_CREDENTIALS = struct.Struct("iII")
"""A process, its user and its group, as Linux tells them."""

_LOOK = 0.5
"""Seconds after which it is looked whether a socket on which nothing comes is still there."""

_ENCODER = msgspec.msgpack.Encoder()


class ChannelError(ConnectionError):
    """The other side has closed the connection, or does not speak the protocol."""


class ClosedHereError(ChannelError):
    """The socket's descriptor has been closed in this process, which may have another file under its number."""


def encode(message: Any) -> bytes:
    r"""Return a message as bytes.

    Text of a program may be no Unicode (a file's name, bytes that it has printed): what cannot be sent is replaced.

    Examples
    --------
    >>> encode("\udcff") == encode("\ufffd")
    True
    """
    try:
        return _ENCODER.encode(message)
    except UnicodeEncodeError:
        return _ENCODER.encode(_unicode(msgspec.to_builtins(message, builtin_types=(bytes, msgspec.Raw))))


def _unicode(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_unicode(key): _unicode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_unicode(item) for item in value]
    return value


class MessageChannel(Protocol):
    """What a front is talked to through: a :class:`Channel`, or another way of its messages."""

    def send(self, message: Any) -> None:
        """Send a message; may be called on any thread.

        Raises
        ------
        ChannelError
            If the other side has gone.
        """

    def receive(self) -> Any:
        """Return the next message, None at the end of the connection.

        Raises
        ------
        ChannelError
            If the other side does not speak the protocol.
        """

    def is_cut(self) -> bool:
        """Whether the other side has ended the connection, though what it has sent before may wait to be received."""

    def close(self) -> None:
        """End the connection; a thread that waits for a message gets None."""


class Channel(Generic[T]):
    """One end of a connection.

    Parameters
    ----------
    connection : socket.socket
        Connected; closed with the channel.
    incoming : type
        The messages that are taken.
    largest : int
        Bytes of the largest of them.

    Examples
    --------
    >>> import socket
    >>> here, there = (Channel(end, int | str) for end in socket.socketpair())
    >>> here.send("one"), there.receive()
    (None, 'one')
    >>> here.close()
    >>> there.receive() is None
    True
    >>> there.close()
    """

    def __init__(self, connection: socket.socket, incoming: Any, *, largest: int = LARGEST) -> None:
        self.largest = largest
        self._socket = connection
        self._decoder: msgspec.msgpack.Decoder[T] = msgspec.msgpack.Decoder(incoming)
        self._sending = threading.Lock()
        connection.setblocking(True)
        self._closed = False
        self._identity = self._look()

    def _look(self) -> tuple[int, int] | None:
        """Return what tells the socket from another file under its number; None where that cannot be told."""
        if os.name != "posix":
            return None
        with contextlib.suppress(OSError):
            found = os.fstat(self._socket.fileno())
            return found.st_dev, found.st_ino
        return -1, -1

    def _check(self) -> None:
        if self._look() != self._identity and not self._closed:  # in this order: close() says it first
            raise ClosedHereError("the program has closed its connection to the debugger")

    def fileno(self) -> int:
        """Return the socket's descriptor."""
        return self._socket.fileno()

    @property
    def peer(self) -> int:
        """The process at the other end of a Unix socket, as the system knows it; 0 where it does not."""
        if self._socket.family != getattr(socket, "AF_UNIX", None) or not hasattr(socket, "SO_PEERCRED"):
            return 0
        with contextlib.suppress(OSError):
            credentials = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
            return int(_CREDENTIALS.unpack(credentials)[0])
        return 0

    def send(self, message: Any) -> None:
        """Send a message; may be called on any thread.

        Raises
        ------
        ChannelError
            If the other side has gone.
        """
        data = encode(message)
        if len(data) > LARGEST:
            raise ChannelError(f"a message of {len(data):,} bytes is too large to send: at most {LARGEST:,} bytes are")
        try:
            with self._sending:
                self._check()
                self._socket.sendall(_LENGTH.pack(len(data)) + data)
        except ChannelError:
            raise
        except OSError as error:
            raise ChannelError(f"the other side is gone ({error.strerror or error})") from None

    def receive(self, timeout: float | None = None) -> T | None:
        """Return the next message, None at the end of the connection.

        Parameters
        ----------
        timeout : float, optional
            Seconds in which it must have come; without end by default.

        Raises
        ------
        ChannelError
            If what comes is no message of the protocol, is cut off, or does not come in time.
        """
        try:
            deadline = None if timeout is None else time.monotonic() + timeout
            head = self._read(_LENGTH.size, deadline)
            if not head:
                return None
            (size,) = _LENGTH.unpack(head)
            if size > self.largest:
                raise ChannelError(f"a message of {size:,} bytes is announced: at most {self.largest:,} are taken")
            body = self._read(size, deadline)
            if len(body) < size:
                raise ChannelError("the connection was cut in the middle of a message")
        except TimeoutError:
            raise ChannelError("the other side does not answer") from None
        except ChannelError:
            raise
        except (OSError, ValueError) as error:  # a socket that is closed meanwhile has no descriptor
            if self._closed:
                return None
            self._check()
            raise ChannelError(f"the other side is gone ({getattr(error, 'strerror', None) or error})") from None
        return self.decode(body)

    def decode(self, body: bytes | bytearray) -> T:
        """Return the message that bytes encode.

        Raises
        ------
        ChannelError
            If they are none.
        """
        try:
            return self._decoder.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError, OverflowError) as error:
            raise ChannelError(f"what came is no message of the protocol: {error}") from None

    def _await(self, deadline: float | None) -> bool:
        """Wait until something comes; return False where this side has ended the connection.

        A wait for a descriptor that is closed meanwhile would have no end.
        """
        while not self._closed:
            self._check()
            seconds = _LOOK if deadline is None else min(_LOOK, deadline - time.monotonic())
            if seconds < 0:
                raise TimeoutError
            if _has_come(self._socket, seconds):
                self._check()
                return not self._closed
        return False

    def _read(self, size: int, deadline: float | None) -> bytearray:
        """Read `size` bytes, or fewer at the end of the stream; none where it has ended already."""
        # Memory is allocated as bytes arrive: a length that is announced may be a lie.
        data = bytearray()
        while len(data) < size:
            part = self._socket.recv(min(size - len(data), 1 << 20)) if self._await(deadline) else b""
            if not part:
                if data and size == _LENGTH.size:
                    raise ChannelError("the connection was cut in the middle of a message")
                break
            data += part
        return data

    def is_cut(self) -> bool:
        """Whether the other side has ended the connection, though what it has sent before may wait to be received.

        Where the system does not tell, it has not.
        """
        if not hasattr(select, "poll"):
            return False
        look = select.poll()
        look.register(self._socket, getattr(select, "POLLRDHUP", 0))  # POLLHUP and POLLERR are told unasked
        return bool(look.poll(0))

    def close(self) -> None:
        """End the connection; a thread that waits for a message gets None."""
        ours, self._closed = not self._closed and self._look() == self._identity, True
        if ours:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
        self._leave(ours)

    def abandon(self) -> None:
        """Close this process's copy of the socket, which another one still uses."""
        ours, self._closed = not self._closed and self._look() == self._identity, True
        self._leave(ours)

    def _leave(self, ours: bool) -> None:
        if ours:
            self._socket.close()
        else:  # what is under its number by now is another's
            self._socket.detach()


def _has_come(connection: socket.socket, seconds: float) -> bool:
    """Whether something comes, or the connection ends, within so many seconds."""
    if not hasattr(select, "poll"):
        return bool(select.select([connection], [], [], seconds)[0])
    look = select.poll()
    look.register(connection, select.POLLIN)
    return bool(look.poll(seconds * 1000))

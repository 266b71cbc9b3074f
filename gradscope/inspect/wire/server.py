"""A debugger that fronts talk to: one at a time, one after the other.

A connection has three threads: one that takes messages, and carries out at once what cannot wait; one that carries out
the other verbs, in their order; one that sends. The program's own threads only leave a note that something has changed,
so that a front that is slow, stopped or hostile does not hold the program up.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections import deque
from collections.abc import Callable
from queue import Empty, Full, Queue
from typing import Any
from weakref import WeakSet

from msgspec import Raw

from ..debugging.session.debugger import Debugger
from ..records.records import DebuggerEvent
from .addresses import Address
from .channel import Channel, ChannelError, ClosedHereError, MessageChannel, encode
from .handshake import PATIENCE, shake_hands
from .messages import Cancel, Changed, Failure, FromFront, Leave, Logged, Refused, Reply, Request, Welcome
from .standing import StandingSource
from .verb_table import AT_ONCE, OF_AN_ORDER, VERBS

__all__ = ["DebugServer", "Front"]

_MOST_WAITING = 64
_MOST_LINES = 10_000
_AT_ONCE = 500
_FAREWELL = 1.0
_LOOK = 0.2
"""Seconds after which it is seen whether the front is still there, while it has to wait."""

_SERVERS: WeakSet[DebugServer] = WeakSet()


def _in_child() -> None:
    for server in _SERVERS:
        server.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


class DebugServer:
    """Takes fronts that want to look at a program.

    Parameters
    ----------
    debugger : Debugger
        The program.
    listener : socket.socket or None
        Listens; closed with the server. None where the only front is the one that :meth:`adopt` is given.
    address : Address
        Where.
    token : bytes
        What a front must know; empty where the address is the user's alone.
    on_coming : callable
        Called when a front has come.

    Attributes
    ----------
    on_leaving : callable
        Called when a front has gone, with whether it said so; the only one also where it has not introduced itself.
    front : Front or None
        The one that is attached.
    """

    def __init__(
        self,
        debugger: Debugger,
        listener: socket.socket | None,
        address: Address,
        token: bytes = b"",
        *,
        on_coming: Callable[[], None] = lambda: None,
    ) -> None:
        self.debugger = debugger
        self.address = address
        self.front: Front | None = None
        self._channel: Channel[Any] | None = None
        self._listener = listener
        self._token = token
        self.on_leaving: Callable[[bool], None] = lambda said: None
        self._on_coming = on_coming
        self._changed = threading.Condition()
        self._closed = False
        self._threads: list[threading.Thread] = []
        _SERVERS.add(self)

    def start(self) -> None:
        """Accept fronts from now on, on threads of its own."""
        self._begin(self._accept, "gradscope-listener")

    def adopt(self, connection: socket.socket, patience: float | None = PATIENCE) -> None:
        """Take the front at the other end of a socket.

        Parameters
        ----------
        patience : float or None
            Seconds in which each message of its handshake must have come; None waits as long as it lives.
        """
        self._begin(lambda: self._serve(connection, patience), "gradscope-front")

    def _begin(self, work: Callable[[], None], name: str) -> None:
        thread = threading.Thread(target=work, name=name, daemon=True)
        self._threads = [*(other for other in self._threads if other.is_alive()), thread]
        thread.start()

    def _accept(self) -> None:
        assert self._listener is not None
        while not self._closed:
            try:
                connection, _ = self._listener.accept()
            except OSError:  # the socket was closed, by us or by a program that closes all descriptors
                return
            self.adopt(connection)

    def _serve(self, connection: socket.socket, patience: float | None) -> None:
        channel: Channel[Any] = Channel(connection, FromFront)
        front: Front | None = None
        try:
            hello = shake_hands(channel, "program", self._token, patience)
            front = Front(self.debugger, channel, hello.pid)
            with self._changed:
                self._changed.wait_for(lambda: self.front is None, _FAREWELL)  # the last front may be about to leave
                other = self.front
                if other is None:
                    self.front, self._channel = front, channel
            if other is not None:
                channel.send(Refused(f"another front is attached (process {other.pid})\nDetach it first: `q` there."))
                return
            try:
                front.serve(self._on_coming)
            finally:
                self.on_leaving(front.said_goodbye)
                with self._changed:
                    self.front = self._channel = None
                    self._changed.notify_all()
        except ChannelError as error:
            with contextlib.suppress(ChannelError):
                channel.send(Refused(str(error)))
            if front is None and self._listener is None:  # nobody else can come
                self.on_leaving(False)
        finally:
            channel.close()

    def close(self) -> None:
        """Accept no more fronts, and close the connection of the one that is attached.

        An interpreter that comes to its end while threads of the connection are at work may wait for them for ever.
        """
        self._closed = True
        if self._listener is not None:
            with contextlib.suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
        front = self.front
        if front is not None:
            front.close()
        if self.address.path:
            with contextlib.suppress(OSError):
                os.unlink(self.address.path)
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(_FAREWELL)

    def forked(self) -> None:
        """Close this child process's copies of the connections, which are the parent's."""
        self._closed = True
        if self._listener is not None:
            self._listener.close()
        if self._channel is not None:
            self._channel.abandon()


class Front:
    """A front that is attached.

    Attributes
    ----------
    pid : int
        Its process, as it says.
    said_goodbye : bool
        Whether it has left in due form.
    """

    def __init__(self, debugger: Debugger, channel: MessageChannel, pid: int) -> None:
        self.pid = pid
        self.channel = channel
        self.said_goodbye = False
        self._debugger = debugger
        self._source = StandingSource(debugger)
        self._requests: Queue[Request | None] = Queue(_MOST_WAITING)
        self._cancelled: set[int] = set()
        self._answers: deque[Any] = deque()
        self._kinds: set[str] = set()
        self._lines: deque[str] = deque()
        self._lost = 0
        self._wake = threading.Condition()
        self._done = False
        self._answerer = threading.Thread(target=self._answer_all, name="gradscope-verbs", daemon=True)
        self._sender = threading.Thread(target=self._send_all, name="gradscope-sender", daemon=True)

    def serve(self, attached: Callable[[], None]) -> None:
        """Answer the front until it leaves or its connection ends.

        Raises
        ------
        ChannelError
            If it does not speak the protocol.
        """
        remove = self._debugger.add_listener(self._heard)
        try:
            attached()
            self._put(Welcome(self._debugger.title, self._source.read()))
            self._sender.start()
            self._answerer.start()
            self._take_all()
        finally:
            remove()
            if not self.said_goodbye:
                self._forget_requests()
            self._requests.put(None)
            self.close()
            self._answerer.join(_FAREWELL)

    def close(self) -> None:
        """Close the connection, once all messages have been sent."""
        with self._wake:
            self._done = True
            self._wake.notify_all()
        self._sender.join(_FAREWELL)

    # --- taking ---

    def _take_all(self) -> None:
        while True:
            try:
                message = self.channel.receive()
            except ClosedHereError:  # the program has closed all descriptors, and is left alone
                self.said_goodbye = True
                return
            if message is None:
                return
            if isinstance(message, Cancel):
                self._cancelled.add(message.id)
            elif not isinstance(message, Request):
                raise ChannelError(f"a {type(message).__name__} was not expected here")
            elif isinstance(message.verb, Leave):
                self.said_goodbye = True
                return
            elif isinstance(message.verb, AT_ONCE):
                self._answer(message)
            else:
                if not self._put_in_line(message):
                    return

    def _put_in_line(self, request: Request) -> bool:
        """Wait while there are too many requests, and so does the front; return False where it has gone meanwhile."""
        while True:
            with contextlib.suppress(Full):
                self._requests.put(request, timeout=_LOOK)
                return True
            if self.channel.is_cut():
                return False

    def _forget_requests(self) -> None:
        """Let the request in work be the last: nobody waits for answers any more."""
        with contextlib.suppress(Empty):
            while True:
                self._requests.get_nowait()

    def _answer_all(self) -> None:
        while (request := self._requests.get()) is not None:
            self._answer(request)

    def _answer(self, request: Request) -> None:
        if request.id in self._cancelled:
            self._cancelled.discard(request.id)
            return
        answer: Reply | Failure
        try:
            result = Raw(encode(self._carry_out(request.verb)))
            answer = Reply(request.id, result, self._source.read())
        except BaseException as error:  # a program's expression may raise anything
            answer = Failure(request.id, type(error).__name__, str(error), self._source.read())
        if request.id in self._cancelled:
            self._cancelled.discard(request.id)
        else:
            self._put(answer)

    def _carry_out(self, verb: Any) -> Any:
        named = OF_AN_ORDER.get(type(verb))
        return VERBS[type(verb)].answer(self._debugger, verb) if named is None else named.answer(self._source, verb)

    # --- sending ---

    def _heard(self, event: DebuggerEvent) -> None:
        """Note a change, on the thread on which it happens."""
        with self._wake:
            if event.kind == "log":
                self._lines.append(event.text)
                if len(self._lines) > _MOST_LINES:
                    self._lines.popleft()
                    self._lost += 1
            elif event.kind != "output":  # output goes to the program's own streams
                self._kinds.add(event.kind)
            self._wake.notify_all()

    def _put(self, message: Any) -> None:
        with self._wake:
            self._answers.append(message)
            self._wake.notify_all()

    def _send_all(self) -> None:
        try:
            while (message := self._next()) is not None:
                self.channel.send(message)
        except ClosedHereError:
            self.said_goodbye = True
        except ChannelError:
            pass
        finally:
            self.channel.close()  # the thread that receives messages notices

    def _next(self) -> Any:
        """Return the next message to send, None at the end."""
        with self._wake:
            self._wake.wait_for(lambda: self._answers or self._kinds or self._lines or self._done)
            if self._answers:
                return self._answers.popleft()
            if self._lines:
                lines = tuple(self._lines.popleft() for _ in range(min(_AT_ONCE, len(self._lines))))
                lost, self._lost = self._lost, 0
                return Logged(lines, lost)
            kind = self._kinds.pop() if self._kinds else ""
        return Changed(kind, self._source.read()) if kind else None

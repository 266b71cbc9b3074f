"""The debugger's protocol over the messages of a widget, which are JSON."""

from __future__ import annotations

import math
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import msgspec

from ..inspect.wire.channel import ChannelError, encode
from ..inspect.wire.messages import FromFront

__all__ = ["WidgetChannel", "plain_message"]


class WidgetChannel:
    """One end of a connection whose other end is the page that shows a notebook.

    There is no handshake: Jupyter lets only those in who know its own token.

    Parameters
    ----------
    send : callable
        Sends a message of numbers, text, lists and dictionaries to the page; called on any thread.

    Examples
    --------
    >>> sent = []
    >>> channel = WidgetChannel(sent.append)
    >>> channel.take({"type": "request", "id": 1, "verb": {"verb": "step"}})
    >>> channel.receive()
    Request(id=1, verb=Step(n=1))
    """

    def __init__(self, send: Callable[[Any], None]) -> None:
        self._send = send
        self._came: SimpleQueue[FromFront | None] = SimpleQueue()
        self._closed = False

    def take(self, content: Any) -> None:
        """Take what the page has sent.

        Raises
        ------
        ChannelError
            If it is no message of the protocol.
        """
        try:
            self._came.put(msgspec.convert(content, FromFront))
        except msgspec.ValidationError as error:
            raise ChannelError(f"what came is no message of the protocol: {error}") from None

    def receive(self) -> FromFront | None:
        """Return the next message, None when the channel is closed; wait for it."""
        return self._came.get()

    def send(self, message: Any) -> None:
        """Send a message; may be called on any thread."""
        self._send(plain_message(message))

    def is_cut(self) -> bool:
        """Whether the connection has ended."""
        return self._closed

    def close(self) -> None:
        """End the connection: a thread that waits for a message gets None."""
        self._closed = True
        self._came.put(None)


def plain_message(message: Any) -> Any:
    """Return a message of the protocol as JSON has it: NaN and infinities are text.

    Examples
    --------
    >>> from gradscope.inspect.wire.messages import Logged
    >>> plain_message(Logged(("norm 3.0",)))
    {'type': 'logged', 'lines': ['norm 3.0'], 'lost': 0}
    >>> plain_message([float("nan"), float("-inf")])
    ['nan', '-inf']
    """
    return _with_text_for_what_is_not_finite(msgspec.msgpack.decode(encode(message)))


def _with_text_for_what_is_not_finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: _with_text_for_what_is_not_finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_text_for_what_is_not_finite(item) for item in value]
    return value

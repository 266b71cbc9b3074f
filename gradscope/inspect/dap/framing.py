"""Messages of the Debug Adapter Protocol on a stream: a header with their length, and JSON."""

from __future__ import annotations

import threading
from typing import Any, BinaryIO

import msgspec

__all__ = ["FramingError", "Stream"]

_LARGEST = 1 << 26
_LONGEST_LINE = 4096


class FramingError(OSError):
    """What came is no message of the protocol."""


class Stream:
    """Both directions of a connection with an editor.

    Parameters
    ----------
    source, sink : binary file
        What the editor writes, and what it reads.
    """

    def __init__(self, source: BinaryIO, sink: BinaryIO) -> None:
        self._source = source
        self._sink = sink
        self._busy = threading.Lock()
        self._sent = 0

    def receive(self) -> dict[str, Any] | None:
        """Return the next message; None at the end.

        Raises
        ------
        FramingError
            If what came is no message.
        """
        length = self._length()
        if length is None:
            return None
        body = self._source.read(length)
        if len(body) < length:
            raise FramingError(f"the connection ended after {len(body)} of a message's {length} bytes")
        try:
            return msgspec.json.decode(body, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise FramingError(f"a message is no JSON object: {error}") from None

    def _length(self) -> int | None:
        length = None
        while line := self._source.readline(_LONGEST_LINE):
            if line in (b"\r\n", b"\n"):
                if length is None:
                    raise FramingError("a message has no Content-Length")
                return length
            name, colon, value = line.partition(b":")
            if not colon:
                raise FramingError(f"a line of a header is `Name: value`, got {line[:80]!r}")
            if name.strip().lower() == b"content-length":
                length = _checked(value.strip())
        if length is not None:
            raise FramingError("the connection ended inside a header")
        return None

    def send(self, message: dict[str, Any]) -> int:
        """Send a message; return the number that it is given."""
        with self._busy:
            self._sent += 1
            number = self._sent
            body = msgspec.json.encode({"seq": self._sent, **message})
            self._sink.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            self._sink.flush()
        return number


def _checked(value: bytes) -> int:
    if not value.isdigit() or len(value) > 9 or int(value) > _LARGEST:
        raise FramingError(f"Content-Length is a number of at most {_LARGEST:,}, got {value[:80]!r}")
    return int(value)

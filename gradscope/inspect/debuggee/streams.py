"""The standard streams of a program on a thread of the debugger's process: output is passed on, input is empty."""

from __future__ import annotations

import builtins
import codecs
import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .broadcast import OutputWriter
from .program_thread import replaced

__all__ = ["captured", "captured_stream", "echo", "flush"]

_NO_INPUT = (
    "the script cannot read stdin here: it belongs to the debugger\n"
    "Run it with `gradscope debug -c COMMANDS` or `--commands FILE`: then stdin is the script's."
)


class _RawWriter(io.RawIOBase):
    """The lowest layer of a captured stream: it decodes bytes and passes the text to `write`.

    Where the program has put another file in the place of the file descriptor, they go there; in a child process that
    the program has forked, to the descriptor as it is.
    """

    def __init__(self, write: Callable[[str], None], stands_for: Any, encoding: str) -> None:
        super().__init__()
        self._write = write
        self._decode = codecs.getincrementaldecoder(encoding)("surrogateescape").decode
        self._stands_for = stands_for
        self._pid = os.getpid()
        self._descriptor = _descriptor(stands_for)
        self._file = _file_of(self._descriptor)
        self.name = getattr(stands_for, "name", "<program>")

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        data = bytes(data)
        if self._descriptor is not None and (os.getpid() != self._pid or _file_of(self._descriptor) != self._file):
            return os.write(self._descriptor, data)
        text = self._decode(data)
        if text:
            self._write(text)
        return len(data)

    def fileno(self) -> int:
        descriptor: int = self._stands_for.fileno()
        return descriptor


def _descriptor(stream: Any) -> int | None:
    try:
        descriptor: int = stream.fileno()
        return descriptor
    except (AttributeError, OSError, ValueError):
        return None


def _file_of(descriptor: int | None) -> tuple[int, int] | None:
    """Return which file stands behind a descriptor."""
    try:
        status = os.fstat(-1 if descriptor is None else descriptor)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def captured_stream(write: Callable[[str], None], stands_for: Any) -> io.TextIOWrapper:
    r"""Return a text stream, with a ``buffer``, that hands what is written to `write`, line by line or when flushed.

    Parameters
    ----------
    write : callable
        Takes text; bytes that are none come as lone surrogates.
    stands_for : file
        Whose ``fileno()``, encoding and error handling it has.

    Examples
    --------
    >>> import sys
    >>> seen = []
    >>> stream = captured_stream(seen.append, sys.__stdout__)
    >>> print("one", file=stream)
    >>> "".join(seen)
    'one\n'
    """
    encoding = getattr(stands_for, "encoding", None) or "utf-8"
    raw = _RawWriter(write, stands_for, encoding)
    errors = getattr(stands_for, "errors", None) or "strict"
    return io.TextIOWrapper(raw, encoding, errors, newline="\n", line_buffering=True)


@contextmanager
def captured(write: OutputWriter) -> Iterator[None]:
    """Send stdout and stderr to `write`, for the length of the block.

    Standard input is at its end from the start, and ``input()`` raises EOFError saying why.
    """
    kept = sys.stdin, sys.stdout, sys.stderr
    errors = captured_stream(lambda text: write(text, "stderr"), sys.__stderr__)
    output = captured_stream(write, sys.__stdout__)
    with open(os.devnull, encoding="utf-8") as nothing:
        ours = nothing, output, errors
        with replaced(builtins, "input", _refusing(nothing)):
            sys.stdin, sys.stdout, sys.stderr = ours
            try:
                yield
            finally:
                flush()
                # A stream by which the program has replaced it meanwhile stays.
                if sys.stdin is ours[0]:
                    sys.stdin = kept[0]
                if sys.stdout is ours[1]:
                    sys.stdout = kept[1]
                if sys.stderr is ours[2]:
                    sys.stderr = kept[2]


def _refusing(nothing: Any) -> Callable[..., str]:
    """Return an ``input()`` that raises EOFError and says why there is no input."""
    real = builtins.input

    def input(prompt: object = "", /) -> str:
        if sys.stdin is not nothing:
            return real(prompt)
        print(prompt, end="", flush=True)
        raise EOFError(_NO_INPUT)

    return input


def echo(text: str, file: Any) -> None:
    """Write what a captured stream has handed on as it came, bytes that are no text included.

    Parameters
    ----------
    file : file
        Of text.
    """
    try:
        file.write(text)
    except UnicodeEncodeError:
        file.flush()
        file.buffer.write(text.encode(file.encoding, "surrogateescape"))
    file.flush()


def flush() -> None:
    """Flush stdout and stderr, even if the program has closed or replaced them."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            continue

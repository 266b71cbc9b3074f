"""A screen of one's own: what the program or its children write to file descriptors 1 and 2 becomes lines, not stains.

The script's ``print`` never comes here, for the session captures it; C libraries and child processes do.
"""

from __future__ import annotations

import codecs
import io
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from rich.segment import Segment
from textual.color import Color
from textual.driver import Driver
from textual.filter import LineFilter
from textual.message import Message

from gradscope.inspect.output.terminal_restore import terminal_restored
from gradscope.inspect.output.terminal_text import visible
from gradscope_tui.terminal.pixel_graphics import split_answers

__all__ = ["LAST_WORDS", "TerminalAnswered", "VisibleText", "own_terminal"]

_PATIENCE = 0.1
"""Seconds after which what is typed is looked at again: Escape alone begins no sequence then."""

_MODES = (1000, 1002, 1003, 1006, 1015, 1004, 2004)  # these modes report the mouse, the focus and pasted text

LAST_WORDS = (
    "\x1b[?1049l\x1b[?25h\x1b[?7h"
    + "".join([f"\x1b[?{mode}l" for mode in _MODES])
    + "\x1b[<u\x1b[0m"
    + "gradscope: the program has died without a word: it was killed, or has crashed in a library\r\n"
)
"""What the terminal is sent where this process cannot send it anything.

The sequence leaves the alternate screen, shows the cursor, wraps lines, and turns those modes, reports of keys and
colours off.
"""


class VisibleText(LineFilter):
    """Takes out of every line that is drawn what a terminal would obey: names and source lines may be a stranger's."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the segments of a line, each with what can be seen of it."""
        if all(segment.text.isprintable() for segment in segments):
            return segments
        return [Segment(visible(text), style, control) for text, style, control in segments]


class TerminalAnswered(Message):
    """The terminal has answered what it was asked."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


@contextmanager
def own_terminal(take: Callable[[str], None]) -> Iterator[type[Driver] | None]:
    """Keep the terminal for the app, for the length of the block.

    Parameters
    ----------
    take : callable
        Called, on a thread of its own, with every line that somebody writes to file descriptors 1 and 2 meanwhile.

    Yields
    ------
    type or None
        The driver with which the app must be run; ``None`` (Textual's own driver, nothing caught) where there is no
        terminal, or on systems that know no such thing.
    """
    if sys.platform == "win32" or not os.isatty(1):
        yield None
        return
    for stream in (sys.__stdout__, sys.__stderr__):
        if stream is not None:
            stream.flush()
    saved = os.dup(1), os.dup(2)
    reader, writer = os.pipe()
    os.dup2(writer, 1)
    os.dup2(writer, 2)
    os.close(writer)
    pump = threading.Thread(target=_pump, args=(reader, take), name="gradscope output", daemon=True)
    pump.start()
    with (
        terminal_restored(saved[0], LAST_WORDS),
        _Screen(io.FileIO(saved[0], "w", closefd=False), encoding="utf-8") as screen,
    ):
        try:
            yield _driver(screen, saved[0])
        finally:
            for stream in (sys.__stdout__, sys.__stderr__):
                if stream is not None:
                    stream.flush()
            os.dup2(saved[0], 1)
            os.dup2(saved[1], 2)
    # A child of the program may still hold the pipe: its last words are not waited for.
    pump.join(0.2)
    os.close(saved[0])
    os.close(saved[1])


class _Screen(io.TextIOWrapper):
    """The terminal; once it has been closed, what is drawn is lost: Textual would wait for it without end."""

    def write(self, text: str) -> int:
        """Write what can be written."""
        with suppress(OSError):
            super().write(text)
        return len(text)

    def flush(self) -> None:
        """Let the terminal have it."""
        with suppress(OSError):
            super().flush()


def _driver(screen: Any, descriptor: int) -> type[Driver]:
    """Return a driver that draws on `screen`, whatever has become of file descriptors 1 and 2."""
    # The parser is loaded with the driver, which Windows cannot import.
    from textual._xterm_parser import XTermParser
    from textual.drivers.linux_driver import LinuxDriver  # Windows has no such module

    class OwnTerminalDriver(LinuxDriver):
        """Draws on a copy of the terminal's file descriptor."""

        descriptor = screen.fileno()

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self._file = screen

        def _get_terminal_size(self) -> tuple[int, int]:
            try:
                width, height = os.get_terminal_size(descriptor)
            except OSError:
                return super()._get_terminal_size()
            return width or 80, height or 24

        def run_input_thread(self) -> None:
            """Tell what is typed, and what the terminal answers; Textual would take the answers for typed.

            What was typed before the terminal was the app's own is in its queue already, with a line feed for Enter.
            """
            parser = XTermParser(self._debug)
            decode = codecs.getincrementaldecoder("utf-8")("replace").decode
            begun, terminal = "", os.isatty(self.fileno)
            early = terminal and bool(select.select([self.fileno], [], [], 0)[0])
            while not self.exit_event.is_set():
                if select.select([self.fileno], [], [], _PATIENCE)[0]:
                    data = _read(self.fileno)
                    if not data:
                        if terminal:  # it is gone, and has not told who does not lead its session
                            os.kill(os.getpid(), signal.SIGHUP)
                        return
                    if early:
                        data, early = data.replace(b"\n", b"\r"), False
                    answers, typed, begun = split_answers(begun + decode(data))
                    for answer in answers:
                        self.process_message(TerminalAnswered(answer))
                else:
                    typed, begun = begun, ""
                for event in parser.feed(typed) if typed else ():
                    self.process_message(event)
                for event in parser.tick():
                    self.process_message(event)

    return OwnTerminalDriver


def _read(descriptor: int) -> bytes:
    """Return what has come; nothing where no more will."""
    try:
        return os.read(descriptor, 4096)
    except OSError:  # the other side of a pseudo-terminal is closed
        return b""


def _pump(reader: int, take: Callable[[str], None]) -> None:
    """Cut what comes through a pipe into lines."""
    decode = codecs.getincrementaldecoder("utf-8")("replace").decode
    rest = ""
    while data := os.read(reader, 65536):
        *lines, rest = (rest + decode(data)).split("\n")
        for line in lines:
            take(line)
    if rest:
        take(rest)
    os.close(reader)

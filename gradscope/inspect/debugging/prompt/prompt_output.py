"""The base of line mode's verbs: they print, page by page, and take a line apart."""

from __future__ import annotations

import shutil
import sys
import threading
from types import BuiltinFunctionType
from typing import TYPE_CHECKING, TextIO

from ...output.terminal_text import say
from .prompt_verbs import UsageError

if TYPE_CHECKING:
    from ..session.debugger import Debugger

__all__ = ["PROMPT", "PromptOutput"]

PROMPT = "(gradscope) "


class PromptOutput:
    """A session, and the streams on which a person talks to it."""

    def __init__(
        self,
        debugger: Debugger,
        *,
        stdin: TextIO | None = None,
        stdout: TextIO | None = None,
        stderr: TextIO | None = None,
    ) -> None:
        self.debugger = debugger
        self.stdin = stdin or sys.stdin
        self.stdout = stdout or sys.stdout
        self.stderr = stderr or sys.stderr
        self.failures = 0
        self.interrupted = False
        self.mid_line = False
        self._leaving = False
        self._writing = threading.RLock()
        self._end_told = False
        self._sources = 0

    @property
    def terminal(self) -> bool:
        """Whether a person types on a terminal."""
        return self.stdin.isatty() and self.stdout.isatty()

    @property
    def interactive(self) -> bool:
        """Whether a person types each line: on a terminal, or in the field that a notebook opens for ``input()``."""
        notebook = type(input) is not BuiltinFunctionType  # a kernel puts its own in the place of Python's
        return self.stdin.isatty() or (notebook and self.stdin is sys.stdin)

    def obey(self, line: str) -> None:
        """Carry out a command; say what is wrong with it."""
        raise NotImplementedError

    def read(self, prompt: str = PROMPT) -> str | None:
        """Return the next line, or None at the end of input."""
        if not self.interactive:
            line = self.stdin.readline()
            if not line:
                return None
            self._say(prompt + line.strip())
            return line
        # input() edits lines only on the process's own streams, in whose place the program's have been put.
        kept = sys.stdin, sys.stdout
        sys.stdin, sys.stdout = self.stdin, self.stdout
        try:
            return input(prompt)
        except (EOFError, NotImplementedError):  # the latter of a notebook that nobody looks at
            self._say("")
            return None
        finally:
            sys.stdin, sys.stdout = kept

    def page(self, text: str) -> None:
        """Say something long: on a terminal, a screenful at a time."""
        lines = text.split("\n")
        height = max(2, shutil.get_terminal_size().lines - 1)
        if not self.terminal or len(lines) <= height:
            self._say(text)
            return
        for start in range(0, len(lines), height):
            self._say("\n".join(lines[start : start + height]))
            left = len(lines) - start - height
            if left > 0:
                answer = self.read(f"-- {left} more lines; Enter goes on, q stops -- ")
                if answer is None or answer.strip() == "q":
                    return

    def _say(self, text: str) -> None:
        # A line that the program has begun is ended before the prompt writes its own.
        with self._writing:
            start, self.mid_line = "\n" if self.mid_line else "", False
            say(f"{start}{text}\n", end="", file=self.stdout)  # one call: a signal may end the process after it

    def _over(self) -> bool:
        """Whether there is nothing left to ask: the person leaves, or the program has left nothing to look at."""
        # A recording has no program that could end.
        ended = getattr(self.debugger, "ended", False)
        return self._leaving or (ended and not self.debugger.recorded)

    @staticmethod
    def number(text: str, name: str) -> int:
        """Return a number that was typed."""
        if not text.isdecimal():
            raise UsageError(f"{name} is a number, got {text!r}")
        return int(text)

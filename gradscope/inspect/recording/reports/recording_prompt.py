"""A recording at a prompt: look around in it with a few verbs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import TextIO

from ...debugging.stops.breakpoints import BreakpointError, parse_spec
from ...output.terminal_text import say
from ..file.reader import Recording
from ..file.recording_records import BackwardRecord
from ..file.schema import RecordingError
from . import text_view
from .series_view import chosen_series, series_text

__all__ = ["RecordingPrompt"]

_PROMPT = "(recording) "
_SHORT = 30

_HELP = """\
overview            what the recording holds
iterations          the training steps
iteration N         the backwards of a step; the first of them becomes the current one
backward N          make a backward the current one
nodes [SPEC]        the nodes of the current backward: all, or those that SPEC names (param:*, mod:layers.*, op:Mul)
node N              a node of the current backward, with all its statistics
next, previous      the node after, or before
value [NAME] [NR]   the kept elements of a gradient of the current node: grad_outputs (default) or grad_inputs
series [NAME]       norms of gradients over the whole run: all, or those of a name (* in it); one in full
violations, events  saved tensors that had been modified; marks and errors
refresh             read what has been recorded since
help, quit

The debugger's words for the same may be used: print, goto N, list, step (n), back."""

_OF_THE_DEBUGGER = {
    "print": "node", "p": "node", "goto": "node", "list": "nodes", "l": "nodes", "step": "next", "n": "next",
    "back": "previous", "exit": "quit",
}  # fmt: skip


class RecordingPrompt:
    """Takes commands, and prints.

    Parameters
    ----------
    stdin, stdout : file, optional
        The process's own by default.

    Attributes
    ----------
    failures : int
        Commands that could not do what they say.
    """

    def __init__(self, recording: Recording, *, stdin: TextIO | None = None, stdout: TextIO | None = None) -> None:
        self.recording = recording
        self.failures = 0
        self._stdin = stdin or sys.stdin
        self._stdout = stdout or sys.stdout
        self._left = False
        self._index = 0
        self._actions: dict[str, Callable[[list[str]], str]] = {
            "overview": lambda words: text_view.overview_text(recording),
            "iterations": lambda words: text_view.iterations_text(recording),
            "iteration": self._iteration,
            "backward": self._backward,
            "nodes": self._nodes,
            "node": self._node,
            "next": lambda words: self._node([str(self._index + 1)]),
            "previous": lambda words: self._node([str(self._index - 1)]),
            "value": self._value,
            "series": self._series,
            "violations": lambda words: text_view.violations_text(recording),
            "events": lambda words: text_view.events_text(recording),
            "refresh": self._refresh,
            "help": lambda words: _HELP,
            "quit": self._quit,
        }
        self._task: BackwardRecord | None = next(iter(recording.tasks()), None)

    def run(self) -> None:
        """Take commands until the person leaves."""
        self._say(text_view.overview_text(self.recording))
        while not self._left:
            line = self._read()
            if line is None:
                break
            if line.strip():
                self.obey(line)

    def run_commands(self, commands: Iterable[str]) -> None:
        """Carry out commands, each echoed."""
        for command in commands:
            self._say(_PROMPT + command)
            self.obey(command)
            if self._left:
                break

    def obey(self, line: str) -> None:
        """Carry out one command; a prefix of its name is enough."""
        name, *words = line.split()
        name = _OF_THE_DEBUGGER.get(name, name)
        found = [name] if name in self._actions else [verb for verb in self._actions if verb.startswith(name)]
        try:
            if len(found) != 1:
                known = "is " + " or ".join(found) if found else "is no command; help lists them"
                raise RecordingError(f"{name!r} {known}")
            self._say(self._actions[found[0]](words))
        except (RecordingError, BreakpointError) as error:
            self.failures += 1
            self._say(f"*** {error}")

    def _read(self) -> str | None:
        if self._stdin.isatty() and self._stdin is sys.stdin:
            try:
                return input(_PROMPT)
            except (EOFError, KeyboardInterrupt):
                self._say("")
                return None
        line = self._stdin.readline()
        if not line:
            return None
        self._say(_PROMPT + line.strip())
        return line

    def _say(self, text: str) -> None:
        if text:
            say(text, file=self._stdout)

    # --- verbs ---

    def _current(self) -> BackwardRecord:
        if self._task is None:
            raise RecordingError("the recording has no backward yet")
        return self._task

    def _iteration(self, words: list[str]) -> str:
        tasks = self.recording.tasks(iteration=_number(words, "iteration"))
        if not tasks:
            raise RecordingError(f"there is no iteration {words[0]}")
        self._task, self._index = tasks[0], 0
        return text_view.tasks_text(tasks)

    def _backward(self, words: list[str]) -> str:
        self._task, self._index = self.recording.task(_number(words, "backward")), 0
        return text_view.tasks_text([self._task])

    def _nodes(self, words: list[str]) -> str:
        task = self._current()
        if not words:
            start = self._index
            nodes = task.nodes[start : start + _SHORT]
            return text_view.nodes_text([task], ((task.id, node) for node in nodes), limit=0)
        matches = parse_spec(" ".join(words))
        return text_view.nodes_text([task], ((task.id, node) for node in task.nodes if matches(node)), limit=0)

    def _node(self, words: list[str]) -> str:
        task, index = self._current(), _number(words, "node") if words else self._index
        if not 0 <= index < task.count:
            raise RecordingError(f"backward {task.id} has nodes 0 to {task.count - 1}, no {index}")
        self._index = index
        return text_view.node_page(task, index)

    def _value(self, words: list[str]) -> str:
        which = next((word for word in words if not word.isdecimal()), "grad_outputs")
        nr = next((int(word) for word in words if word.isdecimal()), 0)
        if which not in ("grad_outputs", "grad_inputs"):
            raise RecordingError(f"{which!r} is neither grad_outputs nor grad_inputs")
        value = self.recording.value(self._current().id, self._index, which, nr)
        if value is None:
            raise RecordingError(f"{which}[{nr}] of node {self._index} was not kept; record with keep='all'")
        return str(value)

    def _series(self, words: list[str]) -> str:
        return series_text([("", chosen_series(self.recording.series(), " ".join(words)))])

    def _refresh(self, words: list[str]) -> str:
        self.recording.refresh()
        if self._task is None:
            self._task = next(iter(self.recording.tasks()), None)
        else:
            self._task = self.recording.task(self._task.id)
        return text_view.overview_text(self.recording)

    def _quit(self, words: list[str]) -> str:
        self._left = True
        return ""


def _number(words: list[str], verb: str) -> int:
    word = words[0] if words else ""
    if not word.lstrip("-").isdecimal():
        raise RecordingError(f"{verb} needs a number, such as `{verb} 0`")
    return int(word)

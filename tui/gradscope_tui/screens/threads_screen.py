"""Backwards inside backwards, and the threads that have one: which to follow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

if TYPE_CHECKING:
    from gradscope.inspect.debugging.session.session_records import TaskRecord, ThreadRecord

__all__ = ["ThreadsScreen", "stack_text"]


def stack_text(tasks: Sequence[TaskRecord]) -> Text:
    """Return the backwards in progress as text, the outermost first.

    Examples
    --------
    >>> from gradscope.inspect import TaskRecord
    >>> print(stack_text([TaskRecord(1, 0, 2, 5, "MulBackward0"), TaskRecord(2, 1, 0, 3, "SumBackward0")]))
    backward 1  at node 2 of 5  MulBackward0
    └ backward 2  at node 0 of 3  SumBackward0
    """
    lines = []
    for task in tasks:
        indent = "  " * (task.depth - 1) + "└ " if task.depth else ""
        of = f" of {task.total}" if task.total >= 0 else ""
        lines.append(f"{indent}backward {task.number}  at node {task.index}{of}  {task.node}".rstrip())
    return Text("\n".join(lines or ["no backward is in progress"]))


class ThreadsScreen(ModalScreen[int | None]):
    """Shows the stack of the thread that is followed, and lets one choose another thread."""

    BINDINGS = [
        Binding("escape,q,T", "cancel", "Close", show=False),
        Binding("j", "move('down')", "Down", show=False),
        Binding("k", "move('up')", "Up", show=False),
    ]

    def __init__(self, tasks: Sequence[TaskRecord], threads: Sequence[ThreadRecord]) -> None:
        super().__init__()
        self._tasks, self._threads = tasks, threads

    def compose(self) -> ComposeResult:
        """Lay out the stack and the threads."""
        with Vertical(id="threads") as box:
            box.border_title = "Backwards and threads"
            box.border_subtitle = "Enter follows · Esc closes"
            yield Static(Text("Backwards of the followed thread, one inside the other"), classes="help--group")
            yield Static(stack_text(self._tasks))
            yield Static(Text("Threads that have called backward() and run"), classes="help--group")
            if self._threads:
                yield OptionList(*(Option(_thread_line(thread), str(thread.number)) for thread in self._threads))
            else:
                yield Static(Text("none"))

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(int(event.option_id or 0))

    def action_move(self, direction: str) -> None:
        """Move in the list."""
        for options in self.query(OptionList):
            getattr(options, f"action_cursor_{direction}")()

    def action_cancel(self) -> None:
        """Close without a choice."""
        self.dismiss(None)


def _thread_line(thread: ThreadRecord) -> Text:
    busy = f"{thread.backwards} in progress" if thread.backwards else "in no backward"
    mark = "▶" if thread.followed else " "
    return Text(f"{mark} {thread.number}  {thread.name}  {busy}{'  followed' if thread.followed else ''}")

"""The line at the bottom where a person types a command, a breakpoint or a gradient."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Label

__all__ = ["Prompt"]


class Prompt(Horizontal):
    """One line of input that is seen only while it is asked for; every kind of question remembers its answers."""

    BINDINGS = [
        Binding("escape,ctrl+c", "cancel", "Cancel", show=False),
        Binding("up", "recall(-1)", "Earlier", show=False),
        Binding("down", "recall(1)", "Later", show=False),
    ]

    class Answered(Message):
        """A person has typed an answer."""

        def __init__(self, kind: str, text: str) -> None:
            super().__init__()
            self.kind = kind
            self.text = text

    class Closed(Message):
        """The prompt is gone, with or without an answer."""

    KINDS: ClassVar[dict[str, tuple[str, str]]] = {
        "command": (":", "step · break op:Mul* if norm > 10 · print grad_outputs[0] · help"),
        "break": ("break at ", "op:Mul* · param:fc1.weight · mod:layers.* · line:train.py:31 · … if norm > 10"),
        "breakpoint": ("the breakpoint: ", "break SPEC if CONDITION; ignore $ COUNT; disable $"),
        "watch": ("watch ", "norm · grad.max() · saved.self.mean() · any variable of the script"),
        "filter": ("/", "op:Mul* · mod:layers.* · param:*.weight · line:train.py:31 · nan · word · !word"),
        "find": ("/", "part of a line of this pane; capitals matter where there are any"),
        "save": ("save the log in ", "FILE"),
        "type": ("to the script > ", "a line that it reads from its terminal"),
        "what if": ("what if gradient in ", "SLOT EXPRESSION, such as: 0 grad * 0"),
        "edit before": ("set gradient in ", "SLOT EXPRESSION, such as: 0 grad * 0.5"),
        "edit after": ("set gradient out ", "SLOT EXPRESSION, such as: 0 grad * 0.5"),
    }

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._kind = "command"
        self._history: dict[str, list[str]] = {kind: [] for kind in self.KINDS}
        self._place = 0

    def compose(self) -> ComposeResult:
        """Put a label before the input."""
        yield Label()
        yield Input(compact=True, select_on_focus=False)

    def ask(self, kind: str, text: str = "") -> None:
        """Open the prompt.

        Parameters
        ----------
        kind : str
            One of `KINDS`.
        text : str
            What already stands there.
        """
        self._kind = kind
        self._place = len(self._history[kind])
        label, hint = self.KINDS[kind]
        self.query_one(Label).update(label)
        entry = self.query_one(Input)
        entry.placeholder = hint
        entry.value = text
        entry.cursor_position = len(text)
        self.display = True
        # The prompt has the focus at once, so that what is typed ahead comes here.
        self.screen.set_focus(entry, scroll_visible=False)

    def close(self) -> None:
        """Hide the prompt."""
        if self.display:
            self.display = False
            self.post_message(self.Closed())

    def action_cancel(self) -> None:
        """Close without an answer."""
        self.close()

    def action_recall(self, step: int) -> None:
        """Bring back an earlier answer."""
        history = self._history[self._kind]
        self._place = max(0, min(len(history), self._place + step))
        entry = self.query_one(Input)
        entry.value = history[self._place] if self._place < len(history) else ""
        entry.cursor_position = len(entry.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Pass the answer on."""
        event.stop()
        typed = self._kind == "type"  # a line of the script's, which may be empty
        text = event.value if typed else event.value.strip()
        history = self._history[self._kind]
        if text and history[-1:] != [text]:
            history.append(text)
        self.close()
        if text or typed:
            self.post_message(self.Answered(self._kind, text))

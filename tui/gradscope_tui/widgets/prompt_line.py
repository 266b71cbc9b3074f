"""The line at the bottom where a person types a command, a breakpoint or a gradient."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, Label

__all__ = ["Prompt"]


class _Entry(Input):
    """Where it is typed. The keys behind Enter and Escape are for the pane, though they may have come here already."""

    @property
    def _prompt(self) -> Prompt:
        assert isinstance(self.parent, Prompt)
        return self.parent

    def on_key(self, event: events.Key) -> None:
        """Answer at once, where Textual would let other keys pass Enter; hand on what is not for this line."""
        if not self._prompt.display:
            self.app.post_message(events.Key(event.key, event.character))
        elif event.key == "enter":
            self._prompt.take(self.value)
        elif event.key == "escape":
            self._prompt.close()
        else:
            return
        event.stop()
        event.prevent_default()

    async def action_submit(self) -> None:
        """Answer, where Enter has not come here as a key."""
        if self._prompt.display:
            self._prompt.take(self.value)


class Prompt(Horizontal):
    """One line of input that is seen only while it is asked for; every kind of question remembers its answers.

    Attributes
    ----------
    answered : callable
        Called with the kind of the question and what has been answered.
    completions : tuple of str
        What the last word may become, where it has been asked for and there are several.
    """

    BINDINGS = [
        Binding("escape,ctrl+c", "cancel", "Cancel", show=False),
        Binding("up", "recall(-1)", "Earlier", show=False),
        Binding("down", "recall(1)", "Later", show=False),
        Binding("tab", "complete", "Complete", show=False),
    ]

    class Closed(Message):
        """The prompt is gone, with or without an answer."""

    class CompletionWanted(Message):
        """A person wants to know what the last word may become."""

        def __init__(self, line: str, typed: str) -> None:
            super().__init__()
            self.line = line
            self.typed = typed

    KINDS: ClassVar[dict[str, tuple[str, str]]] = {
        "command": (":", "step · break op:Mul* if norm > 10 · print grad_outputs[0] · help"),
        "break": ("break at ", "op:Mul* · param:fc1.weight · mod:layers.* · line:train.py:31 · … if norm > 10"),
        "breakpoint": ("the breakpoint: ", "break SPEC if CONDITION; ignore $ COUNT; disable $"),
        "watch": ("watch ", "norm · grad.max() · saved.self.mean() · any variable of the script"),
        "filter": ("/", "op:Mul* · mod:layers.* · param:*.weight · line:train.py:31 · nan · word · !word"),
        "find": ("/", "part of a line of this pane; capitals matter where there are any"),
        "save": ("save the log in ", "FILE"),
        "type": ("to the script > ", "a line that it reads from its terminal"),
        "what if": ("what if its gradient were ", "0 · grad * 0.5 · of several, the second: 1 grad * 0.5"),
        "edit before": ("set the gradient in to ", "0 · grad * 0.5 · of several, the second: 1 grad * 0.5"),
        "edit after": ("set the gradient out to ", "0 · grad * 0.5 · of several, the second: 1 grad * 0.5"),
    }

    COMPLETED_AS: ClassVar[dict[str, str]] = {
        "command": "",
        "break": "break ",
        "breakpoint": "break ",
        "filter": "break ",
        "watch": "watch ",
        "what if": "what-if ",
        "edit before": "set ",
        "edit after": "set ",
    }
    """What stands before an answer where it is a part of a command, for those kinds whose words can be completed."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._kind = "command"
        self._history: dict[str, list[str]] = {kind: [] for kind in self.KINDS}
        self._place = 0
        self.completions: tuple[str, ...] = ()
        self._completed = ""
        self._asked_from: Widget | None = None
        self.answered: Callable[[str, str], None] = lambda kind, text: None

    def compose(self) -> ComposeResult:
        """Put a label before the input."""
        yield Label()
        yield _Entry(compact=True, select_on_focus=False)
        yield Label(id="completions", markup=False)

    def ask(self, kind: str, text: str = "", about: str = "") -> None:
        """Open the prompt.

        Parameters
        ----------
        kind : str
            One of `KINDS`.
        text : str
            What already stands there.
        about : str
            What is asked about, for the label.
        """
        self._kind = kind
        self._place = len(self._history[kind])
        label, hint = self.KINDS[kind]
        self.query_one(Label).update(Text(f"{about}: {label}" if about else label))
        self._show_completions(())
        entry = self.query_one(Input)
        entry.placeholder = hint
        entry.value = text
        entry.cursor_position = len(text)
        if not self.display:
            self._asked_from = self.screen.focused
        self.display = True
        # The prompt has the focus at once, so that what is typed ahead comes here.
        self.screen.set_focus(entry, scroll_visible=False)

    def on_descendant_blur(self) -> None:
        """Keep the focus while it is open: Textual takes it when it hears of a close that a question has followed."""
        self.call_later(self._take_focus)

    def _take_focus(self) -> None:
        entry = self.query_one(Input)
        if self.display and self.screen.is_active and self.app.app_focus and self.screen.focused is not entry:
            self.screen.set_focus(entry, scroll_visible=False)

    def close(self) -> None:
        """Hide the prompt."""
        if self.display:
            self.display = False
            self.screen.set_focus(self._asked_from, scroll_visible=False)
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

    def action_complete(self) -> None:
        """Ask what the word before the cursor may become; a question whose answer is a text of its own has no words."""
        entry = self.query_one(Input)
        if self._kind in self.COMPLETED_AS and entry.cursor_position == len(entry.value):
            self.post_message(self.CompletionWanted(self.COMPLETED_AS[self._kind] + entry.value, entry.value))

    def complete(self, typed: str, words: Sequence[str]) -> None:
        """Complete the last word as far as all `words` agree, and show them where there are several.

        Parameters
        ----------
        typed : str
            What stood there when they were asked for; nothing happens if it has changed since.
        words : sequence of str
            What its last word may become.
        """
        entry = self.query_one(Input)
        if not self.display or entry.value != typed or not words:
            return
        head, space, word = typed.rpartition(" ")
        first, last = min(words), max(words)  # a prefix of the first and the last in order is one of all
        common = "".join(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, last)))
        more = " " if len(words) == 1 and not common.endswith((":", "(")) else ""
        entry.value = head + space + (common if len(common) >= len(word) else word) + more
        entry.cursor_position = len(entry.value)
        self._completed = entry.value
        self._show_completions(words if len(words) > 1 else ())

    def _show_completions(self, words: Sequence[str]) -> None:
        """Show words to the right of the input, as many as half of the line has room for."""
        self.completions = tuple(words)
        room, shown = self.size.width // 2, 0
        for count in range(1, len(words) + 1):
            if len("  ".join(words[:count])) + len(f"  +{len(words)}") > room:
                break
            shown = count
        text = "  ".join(words[:shown]) + (f"  +{len(words) - shown}" if shown < len(words) else "")
        label = self.query_one("#completions", Label)
        label.update(text.strip())
        label.display = bool(words)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Forget what the last word might have become as soon as something else stands there."""
        event.stop()
        if event.value != self._completed:
            self._show_completions(())

    def take(self, value: str) -> None:
        """Close, and pass the answer on."""
        typed = self._kind == "type"  # the script reads a line, which may be empty
        text = value if typed else value.strip()
        history = self._history[self._kind]
        if text and history[-1:] != [text]:
            history.append(text)
        self.close()
        if text or typed:
            self.answered(self._kind, text)  # at once: the next key comes before a message would

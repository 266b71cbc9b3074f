"""The question before quitting or restarting."""

from __future__ import annotations

from collections.abc import Callable

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

__all__ = ["ConfirmScreen"]


class ConfirmScreen(ModalScreen[bool]):
    """Asks before something that cannot be taken back.

    Parameters
    ----------
    what : callable
        Returns what will happen, as things stand.
    yes : str
        What the answer yes does.
    """

    BINDINGS = [
        Binding("y,q,enter", "answer(True)", "Yes", show=False),
        Binding("n,escape", "answer(False)", "No", show=False),
    ]

    def __init__(self, title: str, what: Callable[[], str], yes: str) -> None:
        super().__init__()
        self._title, self._what, self._yes = title, what, yes

    def compose(self) -> ComposeResult:
        """Lay out the question."""
        with Vertical(id="confirm") as box:
            box.border_title = self._title
            yield Static(Text(self._what()), id="confirm-what")
            yield Static(Text.assemble(("y", "bold"), f" {self._yes}   ", ("n", "bold"), " stay"))

    def follow(self) -> None:
        """Say anew what will happen: the program goes on, or ends, while the question stands."""
        for shown in self.query("#confirm-what").results(Static):
            shown.update(Text(self._what()))

    def action_answer(self, agreed: bool) -> None:
        """Answer the question."""
        self.dismiss(agreed)

"""The app of the tour: the real one, with a strip at the top that waits for the key it names."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from textual.app import ComposeResult
from textual.widgets import Static

from gradscope_tui.app import GradscopeApp, run_session
from gradscope_tui.sessions.session_protocol import Session

__all__ = ["PROGRAM", "STEPS", "GuidedApp", "Step", "run_tour"]

PROGRAM = Path(__file__).parent / "program" / "three_mistakes.py"


class Step(NamedTuple):
    """What the strip says, and the action that it waits for, with its key."""

    text: str
    key: str
    action: str


STEPS = (
    Step("This script has three mistakes. It waits before the first node of its first backward, and the line below "
         "names the first mistake already.", "!", "findings"),
    Step("Pane 8 says why, and at which line. Enter goes there.", "Enter", "open"),
    Step("Each node shows the norm of its gradient once it is known. Run this one.", "n", "step"),
    Step("Nodes can be run one by one, or all: c runs on, and stops at trouble of itself.", "c", "continue"),
    Step("A gradient is infinite. Pane 5 says which operation made it so, and what to do. Look at the node before: the "
         "program waits meanwhile.", "N", "step_back"),
    Step("REPLAYING: what is shown is the past. Go back to where the script is.", "L", "live"),
    Step("0 * inf is NaN: a node that multiplies it by zero would make one. Run on.", "c", "continue"),
    Step("There it is, and pane 5 has both numbers. What follows from a NaN is no other one: run on, to the third "
         "mistake.", "c", "continue"),
    Step("A saved tensor has been written since. Pane 5 names both lines. What else is wrong with this backward?", "!",
         "findings"),
    Step("That is all one has to know: c, ! and Enter. ? lists every key. `gradscope debug YOUR_SCRIPT.py` is next.",
         "q", "quit"),
)  # fmt: skip


class GuidedApp(GradscopeApp):
    """The app with the tour above it.

    Attributes
    ----------
    at : int
        The step that is shown.
    """

    def __init__(self, session: Session) -> None:
        super().__init__(session, PROGRAM.name)
        self.at = 0

    def compose(self) -> ComposeResult:
        """Put the strip above all."""
        yield Static(id="tour", markup=False)
        yield from super().compose()

    def on_mount(self) -> None:
        """Show the first step; Textual calls the app's own `on_mount` too."""
        self._show_step()

    async def run_action(self, action: Any, *arguments: Any, **options: Any) -> bool:
        """Carry out an action, and go on with the tour if it is the one that is waited for."""
        done = await super().run_action(action, *arguments, **options)
        if action == STEPS[self.at].action and self.at + 1 < len(STEPS):
            self.at += 1
            self._show_step()
        return done

    def _show_step(self) -> None:
        step = STEPS[self.at]
        self.query_one("#tour", Static).update(f"{self.at + 1}/{len(STEPS)}  {step.text}  Press {step.key}")


def run_tour(session: Any) -> int:
    """Run the tour on a session of `PROGRAM` until the person leaves; return an exit status."""
    return run_session(GuidedApp(session), session)

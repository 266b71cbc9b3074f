"""All ranks of a program: where each is, and the norm of the current node's gradient side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from gradscope_tui.refusal import refuse
from gradscope_tui.widgets.norm_columns import NormScale, norm_bar

if TYPE_CHECKING:
    from gradscope.inspect.ranks.rank_comparison import RankComparison, RankRow

__all__ = ["RankChoice", "RanksScreen", "rank_line"]

_BAR = 12


def rank_line(row: RankRow, chosen: int, scale: NormScale) -> Text:
    """Return what is shown of a rank in a line.

    Examples
    --------
    >>> from gradscope.inspect.ranks.rank_comparison import RankRow
    >>> print(rank_line(RankRow(1, 0.25, "rank 1: paused before node 2: Mul"), 1, NormScale()))
    ▶ 2.5e-01 ████████▏    rank 1: paused before node 2: Mul
    """
    mark = "▶" if row.rank == chosen else " "
    norm = "      -" if row.norm is None else f"{row.norm:.1e}"
    return Text(f"{mark} {norm} {norm_bar(row.norm, _BAR, scale):<{_BAR}} {row.text}")


class RankChoice(NamedTuple):
    """What is wanted of a rank: to look at it, or to see its backward beside the one that is shown."""

    rank: int
    beside: bool = False


class RanksScreen(ModalScreen[RankChoice | None]):
    """Shows the ranks, and lets one choose which to look at."""

    BINDINGS = [
        Binding("escape,q,K", "cancel", "Close", show=False),
        Binding("j", "move('down')", "Down", show=False),
        Binding("k", "move('up')", "Up", show=False),
        Binding("v", "beside", "Side by side", show=False),
    ]

    def __init__(self, found: RankComparison, scale: NormScale) -> None:
        super().__init__()
        self._found, self._scale = found, scale

    def compose(self) -> ComposeResult:
        """Lay out the node, the ranks and how their graphs differ."""
        found = self._found
        with Vertical(id="ranks") as box:
            box.border_title = "Ranks"
            box.border_subtitle = f"Enter looks at one · v puts it beside this · Esc closes · {self._scale}"
            yield Static(Text(found.title or "the rank that is looked at is at no node"), classes="help--group")
            yield OptionList(*(Option(rank_line(row, found.chosen, self._scale), str(row.rank)) for row in found.rows))
            if found.differences:
                yield Static(Text("\n".join(found.differences)))
            yield Static(id="ranks-stack")

    def on_mount(self) -> None:
        """Begin at the rank that is looked at."""
        self.query_one(OptionList).highlighted = self._found.chosen

    @on(OptionList.OptionHighlighted)
    def _looked_at(self, event: OptionList.OptionHighlighted) -> None:
        """Show where the main thread of a rank that runs is."""
        self.query_one("#ranks-stack", Static).update(Text(self._found.rows[int(event.option_id or 0)].stack.rstrip()))

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(RankChoice(int(event.option_id or 0)))

    def action_move(self, direction: str) -> None:
        """Move in the list."""
        getattr(self.query_one(OptionList), f"action_cursor_{direction}")()

    def action_beside(self) -> None:
        """Choose the rank that is marked, to see it beside the one that is looked at."""
        rank = self.query_one(OptionList).highlighted
        if rank is None or rank == self._found.chosen:
            refuse(self.app, "move to another rank: v puts it beside the one that is looked at")
        else:
            self.dismiss(RankChoice(rank, beside=True))

    def action_cancel(self) -> None:
        """Close without a choice."""
        self.dismiss(None)

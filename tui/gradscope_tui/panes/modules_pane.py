"""The modules as a tree: how many of their nodes have run, and which are folded in the graph."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.message import Message

from gradscope_tui.sessions.session_protocol import is_over
from gradscope_tui.widgets.graph_rows import NOTHING, Outline, ancestors
from gradscope_tui.widgets.line_pane import CursorPane, Place

if TYPE_CHECKING:
    from gradscope_tui.sessions.session_protocol import Session
    from gradscope_tui.sessions.session_snapshot import Snapshot

__all__ = ["ModulesPane"]


class ModulesPane(CursorPane):
    """The modules of a backward, in the order in which their first node runs."""

    NUMBER: ClassVar[int] = 7
    TITLE: ClassVar[str] = "Modules"
    PLACE: ClassVar[Place] = Place.IN_TURN
    KEY_HELP: ClassVar[str] = "Go to the tree of modules; Enter folds one in the graph"
    ABOUT: ClassVar[str] = "The tree of modules, with how many of their nodes have run. Space folds one in the graph."
    EMPTY: ClassVar[str] = "no module: tensors of a module that has run are told by its name"

    class Switched(Message):
        """A module is to be folded in the graph, or unfolded."""

        def __init__(self, module: str, first: int) -> None:
            super().__init__()
            self.module = module
            self.first = first

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._outline = NOTHING
        self._members: dict[str, list[int]] = {}
        self._order: list[str] = []
        self._folded: frozenset[str] = frozenset()
        self._current = -1
        self._width = 0

    def update(self, snapshot: Snapshot) -> None:
        """Show the modules of the backward, and how many of their nodes have run."""
        outline, folded = snapshot.outline, snapshot.folded
        current = len(snapshot.nodes) if is_over(snapshot.state) else snapshot.current
        if (outline is self._outline, folded, current) == (True, self._folded, self._current):
            return
        if outline is not self._outline:
            self._read(outline)
        self._outline, self._folded, self._current = outline, folded, current
        self.set_heading(count=len(self._order))
        self.content_changed()
        self.cursor = min(self.cursor, max(0, len(self._order) - 1))

    def _read(self, outline: Outline) -> None:
        nodes: defaultdict[str, list[int]] = defaultdict(list)
        for index, module in enumerate(outline.modules):
            for part in ancestors(module):
                nodes[part].append(index)
        self._members = dict(nodes)
        # A module stands below the one that it is part of, those of one level in the order in which they run.
        self._order = sorted(nodes, key=lambda m: [nodes[part][0] for part in ancestors(m)] + [0])
        self._width = max((_width(module, len(members)) for module, members in nodes.items()), default=0)

    @property
    def selected(self) -> tuple[str, int] | None:
        """The module under the cursor, and the index of its first node."""
        if self.cursor >= len(self._order):
            return None
        module = self._order[self.cursor]
        return module, self._members[module][0]

    def copied(self) -> str:
        """Return the module under the cursor."""
        return self.selected[0] if self.selected is not None else ""

    def switch(self, session: Session) -> None:
        """Fold the module under the cursor in the graph, or unfold it."""
        if self.selected is not None:
            self.post_message(self.Switched(*self.selected))

    def line_width(self) -> int:
        """Return how wide the widest line is."""
        return self._width

    def line_count(self) -> int:
        """Return the number of modules."""
        return len(self._order)

    def line(self, row: int, width: int) -> Text:
        """Return the line of one module."""
        module = self._order[row]
        nodes = self._members[module]
        done = sum(index < self._current for index in nodes) if len(nodes) < 1000 else None
        folded = any(part in self._folded for part in ancestors(module))
        here = self._current in range(nodes[0], nodes[-1] + 1)
        text = Text("▶" if here else "›" if row == self.cursor else " ", self.color("now"))
        text.append("  " * module.count(".") + ("▸ " if folded else "▾ "), self.color("dim"))
        text.append(module.rpartition(".")[2], self.color("now" if here else "strong"))
        count = f"{len(nodes)} nodes" if done is None else f"{done}/{len(nodes)} nodes"
        text.append(f"  {count}", self.color("good" if done == len(nodes) else "dim"))
        return text


def _width(module: str, nodes: int) -> int:
    """Return the cells that a module's line takes at most, found without writing it: there may be thousands."""
    return 2 * module.count(".") + len(module.rpartition(".")[2]) + len(f"▶▾   {nodes}/{nodes} nodes")

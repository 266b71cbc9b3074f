"""How a script was looked at: sizes, theme, watches, columns and folds, kept for the next session like breakpoints."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gradscope_tui.sessions.saved_breakpoints import name_of, state_directory
from gradscope_tui.widgets.graph_columns import COLUMNS

__all__ = ["SavedView", "View"]


@dataclass(frozen=True, slots=True)
class View:
    """How a script is looked at.

    Parameters
    ----------
    columns, rows : int
        How much of the width the graph has, and of the height what stands above, in hundredths; 0 where
        nobody has chosen it.
    theme : str
        Name of the theme; empty for the one that is set.
    watches : tuple of str
        Their expressions.
    graph_columns : tuple of str or None
        The columns of the graph; None where nobody has chosen them.
    folded : tuple of str
        The modules that are folded in the graph.
    """

    columns: int = 0
    rows: int = 0
    theme: str = ""
    watches: tuple[str, ...] = ()
    graph_columns: tuple[str, ...] | None = None
    folded: tuple[str, ...] = ()


class SavedView:
    """The view of one script or recording.

    Parameters
    ----------
    title : str
        Its path.
    directory : path-like, optional
        Where to keep it; a directory of gradscope's own in `state_directory` by default.
    """

    def __init__(self, title: str, directory: str | os.PathLike[str] | None = None) -> None:
        self.path = Path(directory or state_directory() / "gradscope" / "views") / f"{name_of(title)}.json"
        self._known = View()

    def load(self) -> View:
        """Return the view that has been kept; a new one where there is none, or none that can be read."""
        try:
            self._known = _view(json.loads(self.path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError, AttributeError):
            self._known = View()
        return self._known

    def keep(self, view: View) -> None:
        """Write a view if it is another than before; nobody is disturbed where that cannot be done."""
        if view == self._known:
            return
        self._known = view
        fresh = self.path.with_suffix(f".{os.getpid()}")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            fresh.write_text(json.dumps(asdict(view)), encoding="utf-8")
            fresh.replace(self.path)
        except OSError:
            with suppress(OSError):
                fresh.unlink(missing_ok=True)


def _view(kept: Any) -> View:
    """Return a view as it was written; raise where it was not written here."""
    new = View()
    columns, rows = int(kept.get("columns", new.columns)), int(kept.get("rows", new.rows))
    if not (0 <= columns < 100 and 0 <= rows < 100):
        raise ValueError("no part of a screen")
    chosen = kept.get("graph_columns")
    known = tuple(column.id for column in COLUMNS)
    return View(
        columns,
        rows,
        str(kept.get("theme", "")),
        tuple(map(str, kept.get("watches", ()))),
        None if chosen is None else tuple(name for name in known if name in chosen),
        tuple(map(str, kept.get("folded", ()))),
    )

"""Explanations as Rich tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from .terminal_text import printable

if TYPE_CHECKING:
    # Rich loads when a table is shown.
    from rich.table import Table

__all__ = ["table"]


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Return a Rich table.

    Parameters
    ----------
    columns : sequence of str
        The headings; one that starts with ``#`` is a column of numbers.

    Examples
    --------
    >>> t = table("sizes", ("name", "#bytes"), [("weight", "24")])
    >>> t.row_count, [column.header for column in t.columns]
    (1, ['name', 'bytes'])
    """
    # Rich loads when a table is shown.
    from rich.table import Table
    from rich.text import Text

    made = Table(title=Text(printable(title)), title_justify="left")
    for heading in columns:
        number = heading.startswith("#")
        made.add_column(
            heading.removeprefix("#"), justify="right" if number else "left", no_wrap=number, overflow="fold"
        )
    for row in rows:
        made.add_row(*(Text(printable(cell)) for cell in row))  # a plain string would be read as markup
    return made

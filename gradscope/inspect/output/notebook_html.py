"""Tables, notes and small pictures for the output of a notebook's cell, in the colours of its theme."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from typing import Any

from .markup import Markup, element

__all__ = ["MOST_IN_A_TABLE", "embedded_picture", "histogram", "note", "page", "table"]

MOST_IN_A_TABLE = 200
"""Rows of a table that may have any number of them: a cell's output is kept in the notebook."""

# Lines stay lines, and begin at the left: a notebook sets tables to the right.
_TEXT = {"style": "text-align: left; white-space: pre-wrap"}
_NUMBER = {"style": "text-align: right; white-space: nowrap"}
_BAR, _BAR_HEIGHT = 5, 24


def page(*parts: str) -> str:
    """Return the parts of an answer as one.

    Parameters
    ----------
    *parts : str
        Markup; text is escaped.
    """
    return element("div", None, *parts)


def note(text: str) -> Markup:
    """Return text as it stands, line by line; long lines are broken where the page ends."""
    return element("pre", {"style": "white-space: pre-wrap"}, text)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, caption: str = "") -> Markup:
    """Return a table.

    Parameters
    ----------
    columns : sequence of str
        The headings; one that starts with ``#`` is a column of numbers.
    rows : iterable of sequence of str
        Text, which is escaped, or Markup.

    Examples
    --------
    >>> made = table(("name", "#bytes"), [("<w>", "24")])
    >>> made.count("<td"), "&lt;w&gt;" in made
    (2, True)
    """
    styles = [_NUMBER if column.startswith("#") else _TEXT for column in columns]
    headings = [element("th", style, column.removeprefix("#")) for column, style in zip(columns, styles)]
    made = [element("tr", None, *(element("td", style, cell) for cell, style in zip(row, styles))) for row in rows]
    title = [element("caption", {"style": "text-align: left"}, caption)] if caption else []
    return element("table", None, *title, element("tr", None, *headings), *made)


def histogram(bins: Sequence[tuple[int, int]]) -> Markup:
    """Return how magnitudes are distributed, a bar for each power of two between the least and the largest.

    Parameters
    ----------
    bins : sequence of (int, int)
        As in :attr:`TensorSummary.histogram`.

    Examples
    --------
    >>> print(histogram([(-1, 3), (1, 6)])[:66])
    <svg xmlns="http://www.w3.org/2000/svg" width="15" height="24" rol
    """
    if not bins:
        return Markup()
    counts = dict(bins)
    low, most = min(counts), max(counts.values())
    bars = [_bar(k - low, k, number / most, number) for k, number in sorted(counts.items())]
    width = _BAR * (max(counts) - low + 1)
    size = {"xmlns": "http://www.w3.org/2000/svg", "width": width, "height": _BAR_HEIGHT, "role": "img"}
    return element("svg", size, *bars)


def _bar(place: int, k: int, part: float, number: int) -> Markup:
    height = max(1.0, part * _BAR_HEIGHT)
    where = {"x": place * _BAR, "y": f"{_BAR_HEIGHT - height:.1f}", "width": _BAR - 1, "height": f"{height:.1f}"}
    told = element("title", None, f"{number:,} in [2^{k}, 2^{k + 1})")
    return element("rect", {**where, "fill": "currentColor", "opacity": "0.7"}, told)


def embedded_picture(svg: bytes, what: str) -> Markup:
    """Return a picture that another library drew, as an image: its markup stays apart from the page's.

    Parameters
    ----------
    what : str
        For those who do not see it.
    """
    data: dict[str, Any] = {"src": f"data:image/svg+xml;base64,{b64encode(svg).decode()}", "alt": what}
    return element("img", {**data, "style": "max-width: 100%; background: white"})

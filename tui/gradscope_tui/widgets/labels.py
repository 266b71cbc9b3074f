"""How states are written: always a glyph and a word, in a style that only repeats them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradscope.inspect.debugging.session.session_records import BackwardFinding

__all__ = [
    "EDITED",
    "FINDING_SIGNS",
    "NODE_STATES",
    "SESSION_STATES",
    "UNREADABLE",
    "basename",
    "place_label",
    "short_value",
    "shorten",
]

_NAME = re.compile(r"^(\D).*?(\d*)$")
"""A name that begins with a letter, and the number at its end."""

_LEAST_END = 3
"""Cells for the end of a path: the dot, a letter, and the sign that it goes on."""

UNREADABLE = "(unreadable)"
"""How a node is called that a damaged recording has lost."""

NODE_STATES: dict[str, tuple[str, str, str]] = {
    "pending": ("·", "wait", "dim"),
    "current": ("‖", "now", "now"),
    "done": ("✓", "done", "good"),
    "failed": ("✗", "fail", "bad"),
    "skipped": ("»", "skip", "warn"),
}
"""For each state of a node: its glyph, its word of at most four letters, and the color of a pane."""

EDITED = ("✎", "edited", "warn")
"""For a node with a gradient that somebody has replaced: the glyph in place of its state's, a word and a color."""

SESSION_STATES: dict[str, tuple[str, str, str]] = {
    "not started": ("○", "NOT STARTED", "dim"),
    "starting": ("▷", "STARTING AGAIN", "good"),
    "running": ("▷", "RUNNING", "good"),
    "paused before": ("‖", "PAUSED before", "now"),
    "paused after": ("‖", "PAUSED after", "now"),
    "replaying": ("◁", "REPLAYING", "past"),
    "finished": ("■", "FINISHED", "dim"),
    "failed": ("✗", "FAILED", "bad"),
}
"""For each state of the session: its glyph, its words, and the color of the status bar."""


FINDING_SIGNS: dict[str, tuple[str, str]] = {"error": ("✗", "bad"), "warning": ("!", "warn")}
"""For each severity of a finding: its sign, and the color of a pane."""


def place_label(finding: BackwardFinding) -> str:
    """Write where a finding leads to: its line and its node.

    Examples
    --------
    >>> from gradscope.inspect.debugging.session.session_records import BackwardFinding
    >>> from gradscope.inspect.records.records import Location
    >>> place_label(BackwardFinding("nan", "error", "", location=Location("/a/train.py", 7, "f", ""), index=3))
    'train.py:7  #3'
    """
    where = finding.location
    likely = "likely " if finding.likely else ""
    line = f"{likely}{basename(where.filename)}:{where.lineno}" if where is not None else ""
    return "  ".join(part for part in (line, f"#{finding.index}" if finding.index >= 0 else "") if part)


def short_value(value: float | None) -> str:
    """Write a statistic in at most ten cells.

    Examples
    --------
    >>> short_value(0.031), short_value(float("nan")), short_value(None)
    ('0.031', 'nan', '-')
    """
    return "-" if value is None else f"{value:.3g}"


def shorten(path: str, width: int) -> str:
    """Shorten a dotted path where it has no room: names to their letter and number, then the end, then the beginning.

    Examples
    --------
    >>> shorten("encoder.layers.0.norm1.weight", 20), shorten("encoder.layers.0.norm1.weight", 23)
    ('e.l.0.norm1.weight', 'e.layers.0.norm1.weight')
    >>> shorten("encoder.layers.0.norm1.weight", 15), shorten("encoder.layers.0.norm1.weight", 12)
    ('e.l.0.n1.weight', 'e.l.0.n1.we…')
    >>> shorten("encoder.layers.0.norm1.weight", 10)
    '….weight'
    >>> shorten("weight_ih_l1", 7), shorten("bias_ih_l1", 7), shorten("encoder", 7)
    ('w…ih_l1', 'b…ih_l1', 'encoder')
    """
    parts = path.split(".")
    for place in range(len(parts) - 1):
        if len(path) <= width:
            return path
        parts[place] = _NAME.sub(r"\1\2", parts[place])
        path = ".".join(parts)
    if len(path) <= width:
        return path
    head, _, last = path.rpartition(".")
    if head and len(head) + _LEAST_END <= width:
        return f"{head}.{last[: width - len(head) - 2]}…"
    if not head and width > _LEAST_END:  # the first letter tells a weight from a bias
        return f"{path[0]}…{path[len(path) - width + 2 :]}"
    tail = path[len(path) - max(1, width - 1) :]
    dot = tail.find(".")
    return f"…{tail[dot:] if 0 <= dot <= len(tail) // 2 else tail}"


def basename(path: str) -> str:
    r"""Return the last part of a path, whichever system wrote it.

    Examples
    --------
    >>> basename("examples/train.py"), basename(r"C:\work\train.py")
    ('train.py', 'train.py')
    """
    return path.replace("\\", "/").rpartition("/")[2]

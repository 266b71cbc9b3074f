"""The colours that widgets write in: those of their component classes, blended with what lies below."""

from __future__ import annotations

from functools import lru_cache

from rich.style import Style
from textual.theme import Theme
from textual.widget import Widget

__all__ = ["SIXTEEN_COLORS", "line_style", "text_style", "without_background"]

_RED, _GREEN, _YELLOW, _BLUE, _MAGENTA, _CYAN = "#ff5555", "#55ff55", "#ffff55", "#5555ff", "#ff55ff", "#55ffff"

SIXTEEN_COLORS = Theme(
    name="sixteen-colors",
    primary=_BLUE,
    secondary=_MAGENTA,
    accent=_CYAN,
    warning=_YELLOW,
    error=_RED,
    success=_GREEN,
    foreground="#ffffff",
    background="#000000",
    surface="#000000",
    panel="#000000",
    boost="#000000",
    variables={
        "text-primary": _CYAN,
        "text-secondary": _MAGENTA,
        "text-accent": _CYAN,
        "text-warning": _YELLOW,
        "text-error": _RED,
        "text-success": _GREEN,
    },
)
"""For a terminal of sixteen colours: of other themes several colours become one there, the focus that of an error."""


def text_style(widget: Widget, component: str) -> Style:
    """Return the style in which a component class writes.

    Parameters
    ----------
    widget : Widget
        The widget that has the component class.
    component : str
        Its name, such as ``'pane--dim'``.

    Returns
    -------
    Style
        Its colour and its text style, without a background, so that a cursor can shine through.
    """
    return without_background(widget.get_component_rich_style(component))


def line_style(widget: Widget, component: str) -> Style:
    """Return what a component class lays over a line: its background and its text style, without a colour."""
    return _background(widget.get_component_rich_style(component))


@lru_cache(maxsize=512)
def without_background(style: Style) -> Style:
    """Return a style without its background."""
    return Style(color=style.color) + _attributes(style)


@lru_cache(maxsize=512)
def _background(style: Style) -> Style:
    return Style(bgcolor=style.bgcolor) + _attributes(style)


def _attributes(style: Style) -> Style:
    """Return bold and its kin where they are on: what is off does not undo what lies below."""
    return Style.parse(" ".join(name for name in ("bold", "italic", "underline", "reverse") if getattr(style, name)))

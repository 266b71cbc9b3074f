"""The colours that widgets write in: those of their component classes, blended with what lies below."""

from __future__ import annotations

from functools import lru_cache

from rich.style import Style
from textual.widget import Widget

__all__ = ["line_style", "text_style", "without_background"]


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

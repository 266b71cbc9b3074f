from __future__ import annotations

import pytest
from rich.color import Color as RichColor
from rich.color import ColorSystem
from textual.color import Color

from tests.tui.fake import play, text_of, until

LEGIBLE = 2.9
"""Ratio of luminances; 3 is what WCAG asks of large text, and a rounding error below it passes."""


def luminance(color):
    def linear(part):
        part /= 255
        return part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4

    return 0.2126 * linear(color.r) + 0.7152 * linear(color.g) + 0.0722 * linear(color.b)


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def worst(app):
    """Return the text on the screen that can be read worst, and how well: frames and lanes are no text."""
    found = []
    for strip in app.screen._compositor.render_strips(app.size):
        for text, style, _ in strip:
            if any(map(str.isalnum, text)) and style and style.color and style.bgcolor:
                ink, paper = (
                    Color.from_rich_color(RichColor.parse(part.name)) for part in (style.color, style.bgcolor)
                )
                found.append((contrast(ink, paper), text))
    return min(found)


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["textual-dark", "textual-light"])
@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=str)
def test_every_word_on_the_screen_can_be_read(theme, size):
    async def scenario(app, pilot):
        app.theme = theme
        await until(pilot, lambda: app.session.nodes and "PAUSED" in text_of(app))
        await pilot.press("n", "n", "j")
        await until(pilot, lambda: "#2/13" in text_of(app))
        assert worst(app) >= (LEGIBLE, "")

    play(scenario, size=size)


@pytest.mark.slow
def test_in_sixteen_colors_the_focus_has_not_the_color_of_an_error(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-color")
    monkeypatch.setenv("COLORTERM", "")

    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes)
        assert app.theme == "sixteen-colors"
        variables = app.get_css_variables()
        names = ("accent", "text-error", "text-warning", "text-success", "text-secondary")
        shown = [RichColor.parse(variables[name]).downgrade(ColorSystem.STANDARD).number for name in names]
        assert len(set(shown)) == len(names)
        assert app._view_now().theme == ""

    play(scenario)
    monkeypatch.setenv("COLORTERM", "truecolor")

    async def truecolor(app, pilot):
        assert app.theme == "textual-dark"

    play(truecolor)

"""Few escape sequences show what a sequence of its own for each style shows."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.color import ColorSystem
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from gradscope_tui.terminal.style_changes import write_runs
from tests.tui.terminal.cells_shown import Terminal

ATTRIBUTES = ("bold", "dim", "italic", "underline", "underline2", "reverse", "strike", "overline", "blink", "frame")
COLORS = st.sampled_from([None, "red", "bright_blue", "default", "color(200)", "#102030"])


@st.composite
def styles(draw):
    on = draw(st.sets(st.sampled_from(ATTRIBUTES), max_size=3))
    return Style(color=draw(COLORS), bgcolor=draw(COLORS), **dict.fromkeys(on, True))


runs = st.lists(
    st.tuples(st.text("ab 漢█", min_size=1, max_size=4), st.none() | styles()).map(lambda pair: Segment(*pair)),
    min_size=1,
    max_size=8,
).map(Strip)


@pytest.mark.parametrize("colors", [ColorSystem.TRUECOLOR, ColorSystem.EIGHT_BIT, ColorSystem.STANDARD])
@given(lines=st.lists(runs, min_size=1, max_size=4))
def test_each_cell_looks_as_its_style_says(colors, lines):
    terminal, plainly = Terminal(), Terminal()
    terminal.write(write_runs([(row, row, cells) for row, cells in enumerate(lines)], colors))
    for row, cells in enumerate(lines):
        plainly.write(
            f"\x1b[{row + 1};{row + 1}H"
            + "".join(text if style is None else style.render(text, color_system=colors) for text, style, _ in cells)
        )
    assert terminal.cells == plainly.cells
    assert terminal.look == plainly.look


def test_what_stays_is_not_said_again():
    red = Style(color="red", bgcolor="#102030")
    cells = Strip(
        [
            Segment("a", red),
            Segment("b", red),
            Segment("   ", Style(bgcolor="#102030")),
            Segment("c", red + Style(bold=True)),
        ]
    )
    assert re.findall(r"\x1b\[([\d;]*)m", write_runs([(0, 0, cells), (1, 0, cells)], ColorSystem.TRUECOLOR)) == [
        "31;48;2;16;32;48",
        "1",
        "22",
        "1",
        "0",
    ]

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from gradscope_tui.terminal.changed_cells import ChangedCells, ShownFrame, changed_runs
from gradscope_tui.terminal.pixel_graphics import PixelGraphics
from tests.tui.fake import play, until
from tests.tui.terminal.cells_shown import Terminal

CONSOLE = Console(file=io.StringIO(), force_terminal=True, color_system="truecolor")
WIDTH = 30
PLAIN = PixelGraphics(print, "off")

styles = st.sampled_from([None, Style.parse("red"), Style.parse("bold on blue"), Style(meta={"@click": "a"})])
texts = st.text(st.sampled_from("ab 漢字é\u0301█"), max_size=8)


@st.composite
def lines(draw):
    """Return a line of the screen's width in several styles."""
    segments = [Segment(text, style) for text, style in draw(st.lists(st.tuples(texts, styles), max_size=6))]
    return Strip(segments).adjust_cell_length(WIDTH)


frames = st.lists(lines(), min_size=3, max_size=3)


@given(st.lists(frames, min_size=1, max_size=5))
def test_the_terminal_shows_each_frame_though_only_changes_are_sent(shown):
    frame, terminal = ShownFrame(), Terminal()
    for new in shown:
        terminal.write(ChangedCells(frame, lambda new=new: new, PLAIN).render_segments(CONSOLE))
        whole = Terminal()
        whole.write(ChangedCells(ShownFrame(), lambda new=new: new, PLAIN).render_segments(CONSOLE))
        assert terminal.cells == whole.cells


@given(frames)
def test_what_stands_there_is_not_sent_again(new):
    frame = ShownFrame()
    ChangedCells(frame, lambda: new, PLAIN).render_segments(CONSOLE)
    assert ChangedCells(frame, lambda: new, PLAIN).render_segments(CONSOLE) == ""
    frame.forget()
    assert ChangedCells(frame, lambda: new, PLAIN).render_segments(CONSOLE)


def test_runs_that_are_near_each_other_are_sent_as_one():
    before, after = Strip([Segment("a" * 40)]), Strip([Segment("b" + "a" * 5 + "b" + "a" * 32 + "b")])
    assert changed_runs(before, after) == [(0, 7), (39, 40)]


def test_a_step_sends_a_small_part_of_the_screen():
    sent = []

    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes)
        screen, frame = app.screen, ShownFrame()
        update = ChangedCells(frame, screen._compositor.render_strips, PLAIN)
        sent.append(len(update.render_segments(CONSOLE)))
        await pilot.press("n")
        await until(pilot, lambda: app.session.current == 1)
        sent.append(len(update.render_segments(CONSOLE)))

    play(scenario, size=(160, 48))
    assert 0 < sent[1] < sent[0] / 3

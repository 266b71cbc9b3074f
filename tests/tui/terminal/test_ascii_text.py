from __future__ import annotations

import pytest
from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color

from gradscope_tui.terminal.ascii_text import AsciiText, speaks_ascii
from tests.tui.fake import play, text_of, until


def test_every_line_of_the_screen_becomes_ascii_cell_by_cell():
    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes and "PAUSED" in text_of(app))
        for line in text_of(app).split("\n"):
            (segment,) = AsciiText().apply([Segment(line)], Color(0, 0, 0))
            assert segment.text.isascii()
            assert "?" not in segment.text.replace("? Keys", "")
            assert len(segment.text) == cell_len(line)

    play(scenario)


def test_shift_is_not_taken_for_control():
    (segment,) = AsciiText().apply([Segment("^c ⇧F11")], Color(0, 0, 0))
    assert segment.text == "^c SF11"


@pytest.mark.parametrize(
    ("environment", "plain"),
    [
        ({"LANG": "C"}, True),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, True),
        ({"LANG": "C", "LC_ALL": "en_US.UTF-8"}, False),
        ({"LANG": "de_DE.ISO-8859-1"}, True),
        ({"LC_CTYPE": "UTF-8"}, False),
        ({"LANG": "C.utf8"}, False),
        ({}, False),
    ],
)
def test_the_locale_says_what_the_terminal_takes(environment, plain):
    assert speaks_ascii(environment) is plain

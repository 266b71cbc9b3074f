from __future__ import annotations

import io
import os
import re
import select
import struct
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.segment import Segment
from textual.strip import Strip

from gradscope_tui.terminal.changed_cells import ChangedCells, ShownFrame
from gradscope_tui.terminal.pixel_graphics import GRAPHICS, Picture, PixelGraphics, split_answers
from gradscope_tui.terminal.raster import Raster

pty = pytest.importorskip("pty", reason="needs pseudo-terminals")
fcntl, termios = pytest.importorskip("fcntl"), pytest.importorskip("termios")

CELL, SIXEL, NO_SIXEL, NAMED_KITTY, KITTY = (
    "\x1b[6;20;10t", "\x1b[?62;4;22c", "\x1b[?1;2c", "\x1bP>|kitty(0.31.0)\x1b\\", "\x1b_Gi=17017;OK\x1b\\",
)  # fmt: skip


def asked(answers, wanted="auto", term="xterm-256color"):
    """Let a terminal give answers; return the graphics, and all that was written to it."""
    written = []
    graphics = PixelGraphics(written.append, wanted, {"TERM": term})
    graphics.ask()
    graphics.ask()
    for answer in answers:
        graphics.take(answer)
    return graphics, "".join(written)


# --- what the terminal is asked ---------------------------------------------------------------------------------------


def test_a_terminal_that_has_sixel_says_so_among_its_features():
    graphics, written = asked([CELL, SIXEL])
    assert (graphics.protocol, graphics.cell, graphics.ready) == ("sixel", (10, 20), True)
    assert written == "\x1b[>q\x1b[16t\x1b[c"


def test_only_a_terminal_that_gives_a_name_of_kittys_kin_is_asked_in_kittys_way():
    graphics, written = asked([NAMED_KITTY, CELL, NO_SIXEL, KITTY])
    assert (graphics.protocol, graphics.ready) == ("kitty", True)
    assert written.count("\x1b_G") == 1
    for name in ("xterm-kitty", "xterm-ghostty"):
        graphics, written = asked([KITTY, CELL, NO_SIXEL], term=name)
        assert (graphics.protocol, written.count("\x1b_G")) == ("kitty", 1)
    _, written = asked(["\x1bP>|XTerm(390)\x1b\\", CELL, NO_SIXEL])
    assert "\x1b_" not in written


@pytest.mark.parametrize("answers", [[], [NO_SIXEL], [CELL, NO_SIXEL], [SIXEL], [NAMED_KITTY, CELL, NO_SIXEL]])
def test_without_an_answer_that_says_so_nothing_is_drawn(answers):
    graphics, _ = asked(answers)
    assert not graphics.ready
    graphics.show(PICTURE)
    assert graphics.update([(0, 0, 80)], covered=False) == ""


def test_a_protocol_that_is_set_needs_the_size_of_a_cell_alone():
    for wanted in ("kitty", "sixel"):
        graphics, written = asked([CELL, NO_SIXEL], wanted)
        assert (graphics.protocol, graphics.ready, written) == (wanted, True, "\x1b[16t")
    graphics, written = asked([CELL, SIXEL, KITTY], "off")
    assert (graphics.protocol, graphics.ready, written) == ("", False, "")
    assert GRAPHICS == ("auto", "kitty", "sixel", "off")


typed = st.text(st.sampled_from("abc[?;1\x1bP_ \r"), max_size=6).filter(lambda text: not re.search("\x1b[P_[]", text))


@given(st.lists(st.sampled_from([CELL, SIXEL, NAMED_KITTY, KITTY]), max_size=4), st.data())
def test_answers_are_no_keys_however_they_are_cut(answers, data):
    keys = [data.draw(typed.filter(lambda text: not text.endswith("\x1b"))) for _ in answers]
    text = "".join(key + answer for key, answer in zip(keys, answers))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=4)))
    # An Escape alone is a key, unless more comes with it.
    cuts = [cut for cut in cuts if not text[:cut].endswith("\x1b")]
    found, pressed, begun = [], "", ""
    for start, stop in zip([0, *cuts], [*cuts, len(text)]):
        some, rest, begun = split_answers(begun + text[start:stop])
        found += some
        pressed += rest
    assert (found, pressed + begun) == (answers, "".join(keys))


@pytest.mark.parametrize("key", ["\x1b", "\x1b[A", "\x1b[1;5C", "\x1bOP", "\x1b[6~", "\x1b[<0;3;4M", "\x1b[200~"])
def test_keys_are_no_answers(key):
    assert split_answers(key) == ([], key, "")


# --- what stands on the terminal --------------------------------------------------------------------------------------

CONSOLE = Console(file=io.StringIO(), force_terminal=True, color_system="truecolor")
BLANK = [Strip.blank(30) for _ in range(6)]
RASTER = Raster([(0, 0, 0), (255, 0, 0)], [bytes(60)] * 40)
PICTURE = Picture(1, 2, 2, 6, RASTER)


def screen(protocol):
    """Return graphics of a protocol, and what writes lines to their terminal."""
    graphics, _ = asked([CELL], protocol)
    frame = ShownFrame()

    def draw(lines):
        return ChangedCells(frame, lambda: lines, graphics).render_segments(CONSOLE)

    draw(BLANK)
    return graphics, draw


def over(row, text):
    """Return the lines with some text in one of them."""
    line = Strip([Segment(" " * 4), Segment(text)]).adjust_cell_length(30)
    return [*BLANK[:row], line, *BLANK[row + 1 :]]


@pytest.mark.parametrize(("protocol", "begin"), [("sixel", "\x1bP0;1;0q"), ("kitty", "\x1b_Ga=T")])
def test_a_picture_is_drawn_once_and_again_where_its_cells_were_written(protocol, begin):
    graphics, draw = screen(protocol)
    graphics.show(PICTURE)
    assert draw(BLANK).count(f"\x1b[2;3H{begin}") == 1
    assert draw(BLANK) == ""
    assert begin not in draw(over(5, "below"))
    assert begin not in draw(over(2, "a message"))  # it is covered
    assert draw(BLANK).count(begin) == 1


def test_of_a_picture_that_has_changed_sixel_draws_the_cells_that_differ():
    graphics, draw = screen("sixel")
    graphics.show(PICTURE)
    draw(BLANK)
    rows = [*RASTER.rows[:25], bytes(33) + b"\1" + bytes(26), *RASTER.rows[26:]]
    graphics.show(PICTURE._replace(raster=Raster(RASTER.palette, rows)))
    drawn = draw(BLANK)
    assert drawn.startswith('\x1b[3;6H\x1bP0;1;0q"1;1;10;20')  # the second row of cells, the fourth column
    assert draw(BLANK) == ""


def test_a_picture_that_goes_leaves_nothing_behind():
    graphics, draw = screen("sixel")
    graphics.show(PICTURE)
    draw(BLANK)
    graphics.show(None)
    assert re.findall(r"\x1b\[(\d+);(\d+)H", draw(BLANK)) == [("2", "1"), ("3", "1")]
    assert draw(BLANK) == ""
    graphics, draw = screen("kitty")
    graphics.show(PICTURE)
    draw(BLANK)
    graphics.show(None)
    assert draw(BLANK) == "\x1b_Ga=d,d=I,i=17017,q=2\x1b\\"
    assert draw(BLANK) == ""


# --- a terminal that answers ------------------------------------------------------------------------------------------


SCRIPT = """
import torch
a = torch.linspace(-1, 1, 48).reshape(6, 8).requires_grad_()
a.tanh().sum().backward()
"""


class Terminal:
    """A terminal on which the command runs, and that answers what it is asked."""

    def __init__(self, answers, script, folder):
        self.answers, self.got = answers, b""
        self.ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        environment = os.environ | {
            "TERM": "xterm-256color",
            "XDG_CONFIG_HOME": str(folder),
            "XDG_STATE_HOME": str(folder),
        }
        environment.pop("NO_COLOR", None)
        command = [sys.executable, "-m", "gradscope", "debug", str(script)]
        self.process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True, cwd=folder
        )
        os.close(theirs)

    def until(self, wanted, seconds=90):
        """Read, and answer, until something has been written."""
        end = time.monotonic() + seconds
        while wanted not in self.got:
            assert time.monotonic() < end, self.got[-2000:]
            if select.select([self.ours], [], [], 0.2)[0]:
                data = os.read(self.ours, 65536)
                self.got += data
                for question, answer in self.answers.items():
                    if question in data:
                        os.write(self.ours, answer)

    def press(self, keys):
        self.got = b""
        os.write(self.ours, keys)

    def close(self):
        self.process.terminate()
        end = time.monotonic() + 30
        while self.process.poll() is None and time.monotonic() < end:
            if select.select([self.ours], [], [], 0.2)[0]:
                try:
                    os.read(self.ours, 65536)
                except OSError:
                    break
        self.process.wait(30)
        os.close(self.ours)


@pytest.mark.torch
@pytest.mark.parametrize(
    ("answers", "sign"),
    [
        ({b"\x1b[16t": CELL.encode(), b"\x1b[c": SIXEL.encode()}, b'\x1bP0;1;0q"'),
        ({b"\x1b[>q": NAMED_KITTY.encode(), b"\x1b[16t": CELL.encode(), b"a=q": KITTY.encode()}, b"\x1b_Ga=T"),
        ({b"\x1b[16t": CELL.encode(), b"\x1b[c": NO_SIXEL.encode()}, None),
    ],
    ids=["sixel", "kitty", "neither"],
)
def test_the_viewer_draws_a_heat_map_where_the_terminal_says_that_it_can(torch, tmp_path, answers, sign):
    script = tmp_path / "tanh.py"
    script.write_text(SCRIPT)
    terminal = Terminal(answers, script, tmp_path)
    try:
        terminal.until(b"first node")
        terminal.press(b"n")
        terminal.until(b"unchanged")  # the inspector has been told of the node
        terminal.press(b"2")
        terminal.press(b"/")
        terminal.until(b"art of a line")
        terminal.press(b"saved\r")
        terminal.until(b"Next match")
        terminal.press(b"\r")
        terminal.until(b" Close")
        terminal.press(b"v")
        terminal.until(sign or "▀".encode())
        if sign is None:
            assert b"\x1bP" not in terminal.got
            assert b"\x1b_G" not in terminal.got
            return
        terminal.press(b"l")
        terminal.until(sign)  # another number is marked
        terminal.press(b"\x1b")
        terminal.until(b"a=d" if b"_G" in sign else b"Inspector")
    finally:
        terminal.close()

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gradscope_tui.terminal.terminal_emulator import TerminalEmulator

WRITTEN = ("a", "loss 0.25", "\n", "\r", "\t", "é", "漢", "\x07", "\b")
SEQUENCES = (
    "[31m",
    "[0m",
    "[2A",
    "[K",
    "[2J",
    "[?25l",
    "[5;3H",
    "[>4;1m",
    "]0;title\x07",
    "[",
    "",
    "[999999999C",
    "[?1049h",
)
PIECES = st.sampled_from([*WRITTEN, *(f"\x1b{sequence}" for sequence in SEQUENCES)])


def shown(terminal, text, size=None):
    """Feed a text, in pieces of some size, and return all lines."""
    size = size or max(1, len(text))
    lines = [line for at in range(0, len(text), size) for line in terminal.feed(text[at : at + size])]
    return [line.plain for line in (*lines, *terminal.live)]


@given(st.lists(PIECES, max_size=40), st.integers(1, 12), st.integers(1, 8))
def test_whatever_is_written_lines_come_out_that_can_be_printed(pieces, columns, rows):
    terminal = TerminalEmulator(columns, rows)
    lines = shown(terminal, "".join(pieces), 3)
    lines += [line.plain for line in terminal.settle()]
    assert all(line.isprintable() for line in lines)


@given(st.lists(st.text("abc ", max_size=10), max_size=30), st.integers(1, 10), st.integers(1, 8))
def test_plain_lines_are_kept_however_they_come(lines, size, rows):
    text = "".join(f"{line}\n" for line in lines)
    assert shown(TerminalEmulator(80, rows), text, size) == lines


@given(st.lists(st.text("abc\r", max_size=8), max_size=12), st.integers(1, 10))
def test_a_line_that_is_written_over_is_what_a_terminal_leaves_of_it(lines, size):
    text = "".join(f"{line}\n" for line in lines)
    short, whole = TerminalEmulator(80, 50), TerminalEmulator(80, 50)
    whole.feed("\x1b[?25l")  # from here on every cell is kept
    found = [line.rstrip() for line in shown(short, text, size)]
    expected = shown(whole, text)
    while found and not found[-1]:
        found.pop()
    while expected and not expected[-1]:
        expected.pop()
    assert found == expected


COLOURED = st.sampled_from(["a", "bc", "def", "\r", "\x1b[31m", "\x1b[0m", "\n"])


@given(st.lists(COLOURED, max_size=20), st.integers(1, 10))
def test_a_coloured_line_that_is_written_over_is_what_a_terminal_leaves_of_it(pieces, size):
    text = f"{''.join(pieces)}\n"
    short, whole = TerminalEmulator(80, 50), TerminalEmulator(80, 50)
    whole.feed("\x1b[?25l")  # from here on every cell is kept
    found, expected = ([line.rstrip() for line in shown(*one)] for one in ((short, text, size), (whole, text)))
    assert "\n".join(found).rstrip() == "\n".join(expected).rstrip()


def test_a_coloured_line_behind_a_progress_bar_is_not_cut_like_the_cells_of_a_terminal():
    line, *_ = shown(TerminalEmulator(10, 3), f"\r 50%\r100%\x1b[31m{'x' * 30}\n" + "\n" * 5)
    assert line == f"100%{'x' * 30}"


@given(
    st.lists(st.sampled_from(["one", "two\n", "\x1b[A", "\r", "\x1b[2K", "three\n"]), max_size=20), st.integers(1, 9)
)
def test_it_makes_no_difference_in_which_pieces_output_comes(pieces, size):
    text = "".join(pieces)
    assert shown(TerminalEmulator(20, 6), text, size) == shown(TerminalEmulator(20, 6), text)


def test_what_scrolls_away_stays_as_it_is():
    terminal = TerminalEmulator(20, 3)
    settled = terminal.feed("".join(f"line {n}\n" for n in range(6)) + "\x1b[9Aover\n")
    assert [line.plain for line in settled] == ["line 0", "line 1", "line 2", "line 3"]
    assert [line.plain for line in terminal.live] == ["over 4", "line 5"]


def test_much_plain_output_ends_the_keeping_of_cells():
    terminal = TerminalEmulator(20, 4)
    terminal.feed("a\n\x1b[Ab\n")
    settled = terminal.feed("".join(f"line {n}\n" for n in range(20)))
    assert [line.plain for line in settled][:2] == ["b", "line 0"]
    assert terminal._screen is None


def test_the_line_that_has_been_begun():
    terminal = TerminalEmulator(20, 4)
    terminal.feed("done\nname? ")
    assert terminal.begun == "name? "
    assert [line.plain for line in terminal.settle()] == ["done"]
    assert [line.plain for line in terminal.live] == ["name? "]
    terminal.feed("\x1b[32m>\x1b[K")
    assert terminal.begun == "name? >"


def test_a_program_that_counts_on_the_room_it_had_has_it():
    terminal = TerminalEmulator(20, 6)
    terminal.feed("a\nb\n\x1b[Ac\n")
    terminal.resize(10, 4)
    terminal.feed("x" * 20 + "\ry\n")
    assert [line.plain for line in terminal.live] == ["a", "c", "y" + "x" * 19]
    terminal.resize(30, 4)
    terminal.feed("z" * 30)
    assert terminal.begun == "z" * 30

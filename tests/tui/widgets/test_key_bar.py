from __future__ import annotations

from functools import cache

import pytest

from gradscope_tui.actions import NEEDS_PAUSE, unavailable
from gradscope_tui.panes import PANES
from gradscope_tui.widgets.key_bar import KeyBar, entries
from tests.tui.fake import FakeSession, play, text_of, type_in, until

PAUSED = unavailable(FakeSession()) - NEEDS_PAUSE


def words(width, off=PAUSED, own=None):
    return [f"{' '.join(key for key, _ in entry.actions)} {entry.words}" for entry in entries(width, off, own)]


@cache
def words_of(pane, width):
    """Return the bar over a pane: that of every width is asked for by more than one test."""
    return words(width, own=pane.KEYS)


def foot(app):
    return text_of(app).split("\n")[-1].strip()


def test_the_bar_at_80_columns_has_the_daily_keys_in_words():
    assert words(80) == [
        "n Next node", "c Continue", "N Back", "b Break here", "! What is wrong", "? Keys", "q Quit",
    ]  # fmt: skip


def test_a_wide_bar_has_the_verbs_of_a_node_and_a_module_too():
    assert words(120)[:3] == ["n Next node", "s Run this node", "f Finish module"]


@pytest.mark.slow
def test_help_and_quit_are_never_left_out_and_stand_last():
    for width in (1, 2, *range(10, 200, 13)):
        for pane in PANES:
            assert words_of(pane, width)[-2:] == ["? Keys", "q Quit"]


@pytest.mark.slow
def test_the_bar_fits_wherever_more_than_help_and_quit_is_in_it():
    for width in range(20, 200, 7):
        for pane in PANES:
            chosen = words_of(pane, width)
            assert len(chosen) == 2 or 1 + len("  ".join(chosen)) <= width


def test_keys_that_go_between_backwards_share_their_words():
    between = {"previous_backward", "next_iteration", "previous_iteration"}
    assert {"[ ] Backward", "{ } Iteration"} <= set(words(120, PAUSED - between))
    assert "] Backward" in words(200)


def test_plus_and_minus_are_named_by_what_they_do_in_the_pane():
    for pane in PANES:
        named = {entry for entry in words(500, own=pane.KEYS) if entry.startswith("+ -")}
        assert named == {"+ - Zoom" if pane.TITLE == "Diagram" else "+ - Pane size"}


def test_keys_can_be_clicked():
    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes)
        at = foot(app).index("s Run this node")
        await pilot.click(KeyBar, offset=(at + 4, 0))
        await until(pilot, lambda: "PAUSED after" in text_of(app))

    play(scenario, size=(120, 30))


def test_the_bar_belongs_to_the_pane_that_has_the_focus():
    async def scenario(app, pilot):
        await until(pilot, lambda: "Next node" in foot(app))
        await pilot.press("4")
        await until(pilot, lambda: foot(app).startswith("Enter Edit  Space On or off  d Delete"))
        await pilot.press("8")
        await until(pilot, lambda: foot(app).startswith("Enter Go there  n Next node"))
        await pilot.press("1")
        await until(pilot, lambda: foot(app).startswith("n Next node"))

    play(scenario)


def test_while_lines_are_looked_for_the_bar_says_what_n_does_then():
    async def scenario(app, pilot):
        app.session.say("loss 0.5")
        await until(pilot, lambda: app.session.nodes)
        await pilot.press("5")
        await until(pilot, lambda: "loss 0.5" in text_of(app))
        await type_in(pilot, "loss", "/")
        await until(pilot, lambda: foot(app).startswith("n Next match  N Match before  Esc End of the search"))
        await pilot.press("escape")
        await until(pilot, lambda: foot(app).startswith("/ Find"))

    play(scenario)


def test_what_can_no_longer_be_done_is_left_out():
    async def scenario(app, pilot):
        await until(pilot, lambda: "Continue" in foot(app))
        await pilot.press("c")
        await until(pilot, lambda: "FINISHED" in text_of(app))
        assert "Next node" not in foot(app)
        assert "R Start again" in foot(app)

    play(scenario)


def test_the_bar_shows_the_keys_that_a_person_has_set():
    (first, *_) = entries(80, PAUSED, keys={"step": "a, f10"})
    assert (first.words, [key for key, _ in first.actions]) == ("Next node", ["a"])

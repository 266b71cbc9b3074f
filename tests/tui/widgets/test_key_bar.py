from __future__ import annotations

from gradscope_tui.widgets.key_bar import KeyBar, chosen_keys
from tests.tui.fake import play, text_of, until


def test_the_bar_at_80_columns_has_the_daily_keys():
    assert [action.id for action in chosen_keys(80)] == [
        "step", "into", "out", "continue", "step_back", "break", "findings", "help", "quit",
    ]  # fmt: skip


def test_help_and_quit_are_never_left_out_and_stand_last():
    for width in range(1, 200):
        assert [action.id for action in chosen_keys(width)][-2:] == ["help", "quit"]


def test_keys_can_be_clicked():
    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes)
        at = text_of(app).split("\n")[-1].index("s Into")
        await pilot.click(KeyBar, offset=(at + 3, 0))
        await until(pilot, lambda: "PAUSED after" in text_of(app))

    play(scenario)

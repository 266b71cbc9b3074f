"""The screen of the panes is laid out for the size that the terminal has, and painted anew where it has changed."""

from unittest.mock import patch

import pytest
from textual.events import Resize
from textual.geometry import Size
from textual.screen import Screen

from gradscope_tui.terminal import paint_delay
from tests.tui.fake import play, text_of, until


def test_two_sizes_that_come_together_do_not_take_turns():
    async def scenario(app, pilot):
        laid_out = []
        refresh = Screen._refresh_layout

        def note(screen, size=None, scroll=False):
            laid_out.append(size)
            assert len(laid_out) < 50, "the layout does not come to an end"
            refresh(screen, size, scroll)

        with patch.object(Screen, "_refresh_layout", note):
            for size in (Size(60, 20), app.size):
                app.screen.post_message(Resize(size, size))
                app.screen.call_later(lambda: None)  # a message in between: else the later size takes the other's place
            await pilot.pause()
        assert Size(60, 20) not in laid_out
        assert app.screen.size == app.size

    play(scenario, size=(100, 24))


@pytest.fixture
def painted(monkeypatch):
    """What is painted, each time the names of the widgets that asked for it."""
    paintings = []

    def note(screen):
        paintings.append({type(widget).__name__ for widget in screen._dirty_widgets})
        screen._dirty_widgets.clear()

    async def begin(app, pilot):
        await until(pilot, lambda: "PAUSED" in text_of(app) and not app.watcher.is_looking)
        await pilot.pause()
        monkeypatch.setattr(paint_delay, "LONGEST", 60)
        monkeypatch.setattr(Screen, "_compositor_refresh", note)
        return paintings

    return begin


def test_another_focus_paints_the_two_panes_and_their_keys_once(painted):
    async def scenario(app, pilot):
        paintings = await painted(app, pilot)
        await pilot.press("tab")
        await until(pilot, lambda: paintings)
        await pilot.pause()
        assert paintings == [{"GraphPane", "InspectorPane", "KeyBar"}]

    play(scenario, size=(160, 48))


def test_a_pane_that_takes_the_place_of_another_is_painted_once_in_its_size(painted):
    async def scenario(app, pilot):
        paintings = await painted(app, pilot)
        await pilot.press("6")
        await until(pilot, lambda: paintings)
        await pilot.pause()
        assert paintings == [{"WatchesPane"}]  # the others have told what is to be painted before the layout

    play(scenario, size=(160, 48))

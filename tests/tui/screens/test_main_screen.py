"""The screen of the panes is laid out for the size that the terminal has."""

from unittest.mock import patch

from textual.events import Resize
from textual.geometry import Size
from textual.screen import Screen

from tests.tui.fake import play


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

from __future__ import annotations

from gradscope_tui.screens.help_screen import HelpLines, HelpScreen
from tests.tui.fake import play, text_of, type_in, until


def test_a_word_of_the_help_is_found_and_n_goes_on():
    async def scenario(app, pilot):
        await pilot.press("?")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen) and app.screen.query_one(HelpLines).line_count())
        lines = app.screen.query_one(HelpLines)
        await pilot.press("slash")
        await until(pilot, lambda: app.focused is not None and app.focused.id == "help-input")
        app.focused.value = "breakpoint"
        await pilot.press("enter")
        await until(pilot, lambda: lines.searching and "breakpoint" in lines.line(lines._found_row, 0).plain)
        first = lines._found_row
        await pilot.press("n")
        await until(pilot, lambda: lines._found_row > first)
        await until(pilot, lambda: lines.scroll_offset.y <= lines._found_row)
        assert lines.line(lines._found_row, 0).plain.strip()[:30] in text_of(app)
        await pilot.press("N", "N")
        await until(pilot, lambda: "this is the first match" in text_of(app))
        assert app.session.calls[-1].verb == "start"
        await pilot.press("escape")
        await until(pilot, lambda: not lines.searching)
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, HelpScreen))

    play(scenario, size=(100, 30))


def test_what_is_not_in_the_help_is_said():
    async def scenario(app, pilot):
        await pilot.press("?")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        await pilot.press("slash")
        await until(pilot, lambda: app.focused is not None and app.focused.id == "help-input")
        app.focused.value = "zzz"
        await pilot.press("enter")
        await until(pilot, lambda: "no line of the help has 'zzz'" in text_of(app))

    play(scenario, size=(100, 30))


def test_every_pane_can_be_searched_and_n_steps_again_afterwards():
    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes)
        for key, word in (("2", "norm"), ("4", "exception"), ("7", "layers")):
            await pilot.press(key)
            await until(pilot, lambda: app.pane.line_count())
            await type_in(pilot, word, "slash")
            await until(
                pilot, lambda word=word: app.pane.searching and word in app.pane.line(app.pane._found_row, 0).plain
            )
            await pilot.press("escape")
            assert not app.pane.searching
        await pilot.press("n")
        await until(pilot, lambda: app.session.calls[-1].verb == "step")

    play(scenario, size=(120, 40))

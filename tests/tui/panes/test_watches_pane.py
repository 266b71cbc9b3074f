from __future__ import annotations

from gradscope_tui.widgets.prompt_line import Prompt
from tests.tui.fake import play, text_of, until


async def start(app, pilot):
    await until(pilot, lambda: app.session.nodes and "PAUSED" in text_of(app))


async def answer(app, pilot, key, text):
    """Press a key that asks for something, and answer."""
    await pilot.press(key)
    await until(pilot, lambda: app.query_one(Prompt).display)
    app.focused.value = text
    await pilot.press("enter")


def test_a_watch_shows_its_value_the_one_before_and_that_it_has_changed():
    async def scenario(app, pilot):
        await start(app, pilot)
        await answer(app, pilot, "w", "index * 10")
        await until(pilot, lambda: "6 Watches 1" in text_of(app) and "1 index * 10 = 0" in text_of(app))
        await pilot.press("n")
        await until(pilot, lambda: "≠ 1 index * 10 = 10  (was 0)" in text_of(app))
        await answer(app, pilot, "w", "nothing_there")
        await until(pilot, lambda: "NameError: name 'nothing_there' is not defined" in text_of(app))
        await pilot.press("6", "j", "d")
        await until(pilot, lambda: "nothing_there" not in text_of(app))
        assert [watch.expression for watch in app.session.watches] == ["index * 10"]

    play(scenario)


def test_a_watch_that_is_no_expression_is_refused():
    async def scenario(app, pilot):
        await start(app, pilot)
        await answer(app, pilot, "w", "1 +")
        await until(pilot, lambda: "SyntaxError" in text_of(app))
        assert app.session.watches == ()

    play(scenario)


def test_long_watches_and_breakpoints_can_be_scrolled_into_view():
    async def scenario(app, pilot):
        await start(app, pilot)
        await answer(app, pilot, "w", f"index + {' + '.join(['0'] * 30)} + 4321")
        await until(pilot, lambda: "6 Watches 1" in text_of(app))
        assert "= 4321" not in text_of(app)
        await pilot.press("6", *["right"] * 10)
        await until(pilot, lambda: "= 4321" in text_of(app))
        await answer(app, pilot, "B", f"op:Addmm if {' + '.join(['0'] * 30)} > 0")
        await pilot.press("4")
        await until(pilot, lambda: "4 Breakpoints 1" in text_of(app))
        assert "hits 0" not in text_of(app)
        await pilot.press(*["right"] * 10)
        await until(pilot, lambda: "hits 0" in text_of(app))

    play(scenario)

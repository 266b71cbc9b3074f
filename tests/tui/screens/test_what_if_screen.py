from __future__ import annotations

from gradscope_tui.screens.what_if_screen import WhatIfScreen
from gradscope_tui.widgets.prompt_line import Prompt
from tests.tui.fake import Call, play, text_of, until


async def start(app, pilot):
    await until(pilot, lambda: app.session.nodes and "PAUSED" in text_of(app))


async def answer(app, pilot, key, text):
    """Press a key that asks for something, and answer."""
    await pilot.press(key)
    await until(pilot, lambda: app.query_one(Prompt).display)
    app.focused.value = text
    await pilot.press("enter")


def test_what_if_asks_for_a_gradient_and_shows_what_the_parameters_would_get():
    async def scenario(app, pilot):
        await start(app, pilot)
        await answer(app, pilot, "i", "0 grad * 0")
        await until(pilot, lambda: isinstance(app.screen, WhatIfScreen) and "What if" in text_of(app))
        shown = text_of(app)
        assert "incoming gradient 0 = grad * 0   norm 0.5 → 0" in shown
        weight, other = (next(x for x in shown.split("\n") if f"layers.{n}.weight" in x and "%" in x) for n in (0, 1))
        assert "100.0%  ▇▇▇▇▇▇▇▇▇▇▇▇" in weight
        assert "0.0%" in other
        assert "▇" not in other
        assert shown.index(weight) < shown.index(other)
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, WhatIfScreen))

    assert Call("what_if", (0, "grad * 0")) in play(scenario).calls

from __future__ import annotations

import io

from rich.console import Console

from gradscope.inspect.debugging.session.session_records import ParameterChange, WhatIf
from gradscope_tui.screens.what_if_screen import WhatIfScreen, what_if_table
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


def test_rows_keep_what_tells_them_apart_and_those_that_change_alike_their_order():
    paths = [f"encoder.layers.{n}.self_attn.in_proj_weight" for n in range(3)]
    changes = tuple(ParameterChange(path, 0.1 * (n + 1), 10.0 * (n + 1), 9.9 * (n + 1)) for n, path in enumerate(paths))
    console = Console(width=82, record=True, file=io.StringIO())
    console.print(what_if_table(WhatIf(0, 0, 0.5, 50.0, changes, complete=True, nodes_run=4), 82))
    rows = [line for line in console.export_text().split("\n") if "in_proj" in line]
    assert [row.split()[0] for row in rows] == [f"e.l.{n}.s.in_proj_weight" for n in range(3)]
    assert all("99×" in row for row in rows)

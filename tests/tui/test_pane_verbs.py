from __future__ import annotations

from gradscope_tui.panes.inspector_pane import InspectorPane
from tests.tui.fake import play, text_of, until


async def start(app, pilot):
    await until(pilot, lambda: app.session.nodes and "PAUSED" in text_of(app))


def test_y_copies_what_the_pane_is_about():
    async def scenario(app, pilot):
        await start(app, pilot)
        app.session.add_breakpoint("op:Addmm")
        app.session.add_watch("index")
        app.session.say("hello")
        await pilot.press("j")
        await until(pilot, lambda: "#1" in app.query_one(InspectorPane).border_title)
        for pane, text in (
            (1, "node 1 of 13: AddmmBackward0  layers.0  train.py:2  x = layer_1(x)"),
            (2, "  made at        train.py:2  x = layer_1(x)  (in forward)"),
            (3, "train.py:2"),
            (4, "break op:Addmm"),
            (5, "hello"),
            (6, "index = 0"),
            (7, "layers"),
        ):
            await pilot.press(str(pane), "y")
            await until(pilot, lambda text=text: text in app.clipboard)

    play(scenario)

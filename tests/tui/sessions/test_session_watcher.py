from __future__ import annotations

from gradscope.inspect.records.records import DebuggerEvent
from gradscope_tui.panes.log_pane import LogPane
from tests.tui.fake import play, text_of, until


async def start(app, pilot):
    await until(pilot, lambda: app.session.nodes and "PAUSED" in text_of(app))


def test_what_a_logpoint_prints_goes_to_the_log():
    async def scenario(app, pilot):
        await start(app, pilot)
        app.session._tell(DebuggerEvent("log", app.session.state, text="norm 0.5"))
        await until(pilot, lambda: "● norm 0.5" in app.query_one(LogPane).text)

    play(scenario)

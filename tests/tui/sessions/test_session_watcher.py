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


def test_a_question_of_the_script_is_seen_before_it_is_answered():
    async def scenario(app, pilot):
        await start(app, pilot)
        app.session.types, app.session.unfinished = True, "name? "
        app.session.state = "running"
        await until(pilot, lambda: "name?   (> types an answer)" in app.query_one(LogPane).text)
        assert app.query_one(LogPane).text.count("name?") == 1

    play(scenario)

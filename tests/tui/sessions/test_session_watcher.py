from __future__ import annotations

from gradscope.inspect.debugging.session.session_errors import SessionError
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


class GoneNodes(list):
    def __getitem__(self, index):
        raise SessionError("the other side is gone: it has not answered")


def test_a_program_that_goes_while_it_is_read_does_not_take_the_screen_with_it():
    async def scenario(app, pilot):
        await start(app, pilot)
        known, app.session.nodes = app.session.nodes, GoneNodes(app.session.nodes)
        app.watcher.refresh()
        app.watcher.look()
        await pilot.pause()
        app.session.nodes = known
        await pilot.press("n")
        await until(pilot, lambda: "#1/13" in text_of(app))

    play(scenario)

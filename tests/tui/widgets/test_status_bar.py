from __future__ import annotations

from gradscope.inspect.records.records import SessionState, StopReason
from gradscope_tui.panes.graph_pane import GraphPane
from gradscope_tui.panes.log_pane import LogPane
from gradscope_tui.widgets.status_bar import StatusBar
from tests.tui.fake import FakeSession, chain, play, text_of, until


def test_the_timeline_shows_how_far_the_backward_has_come_and_takes_clicks():
    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes)
        await pilot.press("j", "b", "H", "n", "n", "n", "n")
        await until(pilot, lambda: "breakpoint 1 (op:Addmm)" in text_of(app))
        line = text_of(app).split("\n")[1]
        assert line.index("├") < line.index("●") < line.index("▶") < line.rindex("●") < line.index("┤")
        await pilot.click(StatusBar, offset=(line.rindex("●"), 1))
        await until(pilot, lambda: app.query_one(GraphPane).node.operator == "Addmm")
        assert app.session.current != app.query_one(GraphPane).cursor

    play(scenario, FakeSession(chain(30)))


def test_a_program_that_fails_after_a_backward_has_come_to_the_end_of_it():
    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes)
        app.session.stop(12, StopReason("finished", "the program has ended (exit status 1)"), SessionState.FAILED)
        await until(pilot, lambda: "FAILED" in text_of(app))
        track = text_of(app).split("\n")[1].partition("├")[2].partition("┤")[0]
        assert set(track) == {"─"}

    play(scenario)


def test_a_reason_that_has_no_room_is_cut():
    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes)
        app.session.stop(1, app.session.reason.__class__("breakpoint", "a very long reason " * 9))
        await until(pilot, lambda: "a very long reason" in text_of(app))
        assert text_of(app).split("\n")[1].endswith("…")

    play(scenario)


def test_a_reason_that_has_no_room_stands_in_the_log_whole():
    why = "breakpoint 1: its condition `noo > 3` raised NameError: name 'noo' is not defined"

    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes)
        app.session.stop(1, StopReason("breakpoint", why[:50]))
        await until(pilot, lambda: text_of(app).split("\n")[1].endswith(why[:50]))
        app.session.stop(2, StopReason("breakpoint", why))
        await until(pilot, lambda: app.query_one(LogPane).text == f"‖ {why}")

    play(scenario)


def test_of_a_recorded_backward_the_bar_says_which_of_how_many_it_is():
    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes)
        await pilot.press("n")
        await until(pilot, lambda: app.session.current == 1)
        app.session.begun = 7
        await pilot.press("N")
        await until(pilot, lambda: "backward 1 of 7" in text_of(app))
        app.session.task_index = 7
        app.session.goto(1)
        await until(pilot, lambda: "backward 7" in text_of(app) and "of 7" not in text_of(app))
        app.session.ended = True  # as it is of a recording: the last is known to be the last
        app.session.goto(2)
        await until(pilot, lambda: "backward 7 of 7" in text_of(app))

    play(scenario)


def test_the_loss_is_shown_over_time_where_there_is_room():
    session = FakeSession()
    session.lost = [4.0, 2.0, 1.0]

    def shown(width):
        async def scenario(app, pilot):
            await until(pilot, lambda: app.session.nodes and "PAUSED" in text_of(app))
            found.append(text_of(app).split("\n")[0])

        found = []
        play(scenario, session, size=(width, 24))
        return found[0]

    assert "loss 1 █▃▁" in shown(140)
    assert "loss" not in shown(60)

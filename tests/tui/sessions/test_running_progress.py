from __future__ import annotations

from gradscope.inspect.records.records import StopReason
from gradscope_tui.sessions.running_progress import QUIET, RunningProgress
from gradscope_tui.widgets.status_bar import StatusBar
from tests.tui.fake import FakeSession, play, text_of, until


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_time_and_rate_count_from_the_last_stop():
    clock = Clock()
    progress = RunningProgress(clock)
    progress.begin(10)
    clock.now = 5.0
    progress.begin(12)
    assert progress.text(20, "") == "5 s  2.0 backwards/s"
    progress.end()
    progress.begin(20)
    assert progress.is_quiet()
    clock.now += QUIET
    assert not progress.is_quiet()
    assert progress.text(20, "") == ""
    clock.now += 3
    assert progress.text(20, "waits in all_reduce, called at a.py:3") == "3 s  waits in all_reduce, called at a.py:3"


def test_a_step_that_is_short_leaves_the_screen_as_it_is():
    async def scenario(app, pilot):
        await until(pilot, lambda: "PAUSED" in text_of(app))
        app.watcher.progress = RunningProgress(Clock())  # time stands still
        app.session.held = True
        await pilot.press("n")
        assert app.session.state == "running"
        assert "PAUSED" in text_of(app)
        assert app.query_one(StatusBar).status.state == "paused before"
        app.session.release()
        await until(pilot, lambda: app.query_one(StatusBar).status.node == 1)

    play(scenario)


def test_a_long_run_says_for_how_long_how_fast_and_at_which_line():
    session = FakeSession(held=False)
    session.whereabouts = lambda: "is at train.py:31"
    clock = Clock()

    async def scenario(app, pilot):
        await until(pilot, lambda: "PAUSED" in text_of(app))
        app.watcher.progress = RunningProgress(clock)
        session.held = True
        await pilot.press("c")
        clock.now, session.begun = 4.0, 9
        await until(pilot, lambda: "4 s  2.0 backwards/s  at train.py:31" in text_of(app))
        session.stop(2, StopReason("pause", "paused on request"))
        await until(pilot, lambda: "PAUSED" in text_of(app) and "backwards/s" not in text_of(app))

    play(scenario, session, size=(120, 30))

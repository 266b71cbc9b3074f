from __future__ import annotations

from gradscope.inspect.debugging.session.session_records import TaskRecord
from gradscope_tui.screens.threads_screen import ThreadsScreen
from tests.tui.fake import Call, FakeSession, play, text_of, until


async def start(app, pilot):
    await until(pilot, lambda: app.session.nodes and "PAUSED" in text_of(app))


def test_a_thread_is_chosen_from_the_list():
    async def scenario(app, pilot):
        await start(app, pilot)
        await pilot.press("T")
        await until(pilot, lambda: isinstance(app.screen, ThreadsScreen) and "▶ 1  MainThread" in text_of(app))
        await pilot.press("j", "enter")
        await until(pilot, lambda: Call("follow_thread", (2,)) in app.session.calls)
        await pilot.press("T")
        await until(pilot, lambda: isinstance(app.screen, ThreadsScreen))
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, ThreadsScreen))

    play(scenario)


def test_nested_backwards_are_told_in_the_status_bar_and_as_a_stack():
    session = FakeSession()
    session.tasks = (TaskRecord(1, 0, 2, 13, "MulBackward0"), TaskRecord(2, 1, 0, 5, "SumBackward0"))

    async def scenario(app, pilot):
        await until(pilot, lambda: "backward 1 in 1" in text_of(app))
        await pilot.press("T")
        await until(pilot, lambda: "└ backward 2  at node 0 of 5  SumBackward0" in text_of(app))

    play(scenario, session)

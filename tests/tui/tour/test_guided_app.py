from __future__ import annotations

import asyncio

import pytest

from gradscope.inspect.wire.program_process import ProgramProcess
from gradscope_tui.actions import ACTIONS
from gradscope_tui.tour.guided_app import PROGRAM, STEPS, GuidedApp
from tests.tui.fake import text_of, until


def test_the_strip_names_the_keys_of_its_actions():
    keys = {action.id: action.shown.split(", ")[0] for action in ACTIONS}
    assert [step.key for step in STEPS] == [keys[step.action] for step in STEPS]


@pytest.mark.slow
def test_the_keys_that_it_names_lead_through_all_three_mistakes():
    process = ProgramProcess([str(PROGRAM)], terminal=False)
    app = GuidedApp(process.debugger)
    seen = []

    async def walk():
        async with app.run_test(size=(160, 48)) as pilot:
            await until(pilot, lambda: "PAUSED" in text_of(app))
            await until(pilot, lambda: "Sigmoid in a row" in text_of(app))
            for number, step in enumerate(STEPS[:-1]):
                await until(pilot, lambda number=number: app.at == number)
                key = {"Enter": "enter", "!": "exclamation_mark"}.get(step.key, step.key)
                before = app.session.reason
                await pilot.press(key)
                if step.action not in ("findings", "open"):
                    moved = lambda before=before: app.session.state != "running" and app.session.reason != before  # noqa: E731
                    await until(pilot, moved)
                    seen.append(app.session.reason.kind)
            await until(pilot, lambda: app.at == len(STEPS) - 1)

    try:
        asyncio.run(walk())
    finally:
        process.debugger.leave()
        process.conclude()
    assert seen == ["step", "inf", "replay", "live", "nan", "violation"]

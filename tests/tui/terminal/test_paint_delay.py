from __future__ import annotations

import threading
from contextlib import contextmanager
from unittest.mock import patch

import pytest
from textual.screen import Screen

from gradscope_tui.panes.graph_pane import GraphPane
from gradscope_tui.terminal import paint_delay
from tests.tui.fake import FakeSession, play, text_of, until


class SlowSession(FakeSession):
    """Answers what a node holds when it is let."""

    def __init__(self):
        super().__init__()
        self.asked: list[int] = []
        self.may_answer = threading.Event()
        self.may_answer.set()

    def inspect(self, index):
        self.asked.append(index)
        assert self.may_answer.wait(60)
        return super().inspect(index)


def told(app):
    """Return which node the inspector tells of."""
    focus = app.watcher._snapshot.focus.node
    return focus.index if focus is not None else -1


async def settled(app, pilot):
    await until(pilot, lambda: "PAUSED" in text_of(app) and told(app) == 0 and not app.watcher.is_looking)


@contextmanager
def watched(app):
    """Keep what is painted in a block, each time as text."""
    painted: list[str] = []

    def note(screen):
        painted.append(text_of(app))
        screen._dirty_widgets.clear()

    with patch.object(Screen, "_compositor_refresh", note):
        yield painted


@pytest.mark.parametrize(
    ("key", "changes"),
    [("j", ["Inspector #1 Addmm", "│›   1 · ○─╮   Addmm"]), ("n", ["Inspector #1 Addmm", "PAUSED before #1/13"])],
    ids=["cursor", "step"],
)
def test_what_a_key_changes_is_painted_at_once(monkeypatch, key, changes):
    monkeypatch.setattr(paint_delay, "LONGEST", 60)

    async def scenario(app, pilot):
        await settled(app, pilot)
        await pilot.pause()
        with watched(app) as painted:
            await pilot.press(key)
            await until(pilot, lambda: told(app) == 1)
            await until(pilot, lambda: not any(worker.is_running for worker in app.workers))
            await pilot.pause()
            await until(pilot, lambda: painted and not app.screen._dirty_widgets)
        assert [[change for change in changes if change in text] for text in painted] == [changes]

    play(scenario, SlowSession(), size=(160, 48))


def test_an_answer_that_does_not_come_is_not_waited_for():
    session = SlowSession()

    async def scenario(app, pilot):
        await settled(app, pilot)
        session.may_answer.clear()
        with watched(app) as painted:
            await pilot.press("j")
            await until(pilot, lambda: painted)
        assert app.query_one(GraphPane).cursor == 1
        session.may_answer.set()
        await until(pilot, lambda: told(app) == 1)

    play(scenario, session)


def test_a_program_is_asked_about_a_node_once_where_it_stops():
    session = SlowSession()

    async def scenario(app, pilot):
        await settled(app, pilot)
        session.asked.clear()
        session.may_answer.clear()
        await pilot.press("n")
        await until(pilot, lambda: session.current == 1 and session.asked)
        await until(pilot, lambda: app.query_one(GraphPane).index == 1)
        await pilot.pause()
        session.may_answer.set()
        await until(pilot, lambda: told(app) == 1)
        assert session.asked == [1]

    play(scenario, session)

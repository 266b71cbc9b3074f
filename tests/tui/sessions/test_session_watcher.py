from __future__ import annotations

import re
import threading

import pytest

from gradscope.inspect.debugging.session.session_errors import SessionError
from gradscope.inspect.records.records import DebuggerEvent, Location
from gradscope_tui.panes.inspector_pane import InspectorPane
from gradscope_tui.panes.log_pane import LogPane
from gradscope_tui.sessions import session_watcher
from gradscope_tui.widgets.prompt_line import Prompt
from tests.tui.fake import FakeSession, play, text_of, type_in, until


async def start(app, pilot):
    await until(pilot, lambda: app.session.nodes and "PAUSED" in text_of(app))


def test_what_a_logpoint_prints_goes_to_the_log():
    async def scenario(app, pilot):
        await start(app, pilot)
        app.session._tell(DebuggerEvent("log", app.session.state, text="norm 0.5"))
        await until(pilot, lambda: "● norm 0.5" in app.query_one(LogPane).text)

    play(scenario)


def test_a_question_of_the_script_is_seen_before_it_is_answered():
    session = FakeSession()
    session.types = True

    async def scenario(app, pilot):
        await start(app, pilot)
        await pilot.press("5")
        session.write("name? ")
        session.unfinished, session.state = "name? ", "running"
        await until(pilot, lambda: "name?   (> types an answer)" in text_of(app))
        session.unfinished = ""
        session.write("Ada\n")
        await until(pilot, lambda: "name? Ada " in text_of(app))
        assert app.query_one(LogPane).text.count("name?") == 1

    play(scenario, session)


def test_enter_in_the_log_answers_a_question_of_the_script():
    session = FakeSession()
    session.types, session.type_line = True, (answers := []).append

    async def scenario(app, pilot):
        await start(app, pilot)
        await pilot.press("5", "enter")
        assert not app.query_one(Prompt).display  # nothing reads while the script is paused
        session.write("name? ")
        session.unfinished, session.state = "name? ", "running"
        await until(pilot, lambda: "Enter Answer" in text_of(app))
        await type_in(pilot, "Ada", "enter")
        await until(pilot, lambda: answers == ["Ada"])

    play(scenario, session)


def test_what_the_program_writes_on_its_terminal_stands_in_the_log_once_and_in_order():
    session = FakeSession()
    session.types = True

    async def scenario(app, pilot):
        await start(app, pilot)
        log = app.query_one(LogPane)
        session.write("step 1\n")
        session.say("step 1")  # the same line, as it is told to those who read lines
        session.write(" 50%|##  |\r")
        app.watcher.take_output("an answer", "dim")
        session.write("100%|####|\nstep 2\n")
        await until(pilot, lambda: "step 2" in log.text)
        assert log.text.split("\n")[-4:] == ["step 1", "an answer", "100%|####|", "step 2"]

    play(scenario, session)


@pytest.mark.slow
def test_of_a_flood_the_latest_is_shown(monkeypatch):
    monkeypatch.setattr(session_watcher, "MOST_WAITING", 12_000)
    session = FakeSession()
    session.types = True

    async def scenario(app, pilot):
        await start(app, pilot)
        session.write("first\n" * 1000)
        for chunk in range(3000):
            session.write(f"chunk {chunk}\n")
        await until(pilot, lambda: "chunk 2999" in app.query_one(LogPane).text)
        text = app.query_one(LogPane).text
        assert "first" not in text
        assert "chunk 2500\nchunk 2501\n" in text

    play(scenario, session)


def test_a_flood_is_shown_in_parts_between_which_the_screen_is_painted(monkeypatch):
    monkeypatch.setattr(session_watcher, "MOST_AT_ONCE", 100)
    feed, events = LogPane.feed, []

    def told(pane, text):
        events.append(len(text))
        pane.call_after_refresh(events.append, "painted")
        feed(pane, text)

    monkeypatch.setattr(LogPane, "feed", told)
    session = FakeSession()
    session.types = True

    async def scenario(app, pilot):
        await start(app, pilot)
        for number in range(60):
            session.write(f"line {number:>3} {'x' * 50}\n")
        await until(pilot, lambda: "line  59" in app.query_one(LogPane).text)
        sizes = [event for event in events if event != "painted"]
        assert max(sizes) <= 160
        painted = sum("painted" in events[at : at + 2] for at in range(len(events) - 1))
        assert painted >= len(events) / 2  # not each time: painting may wait a moment for an answer

    play(scenario, session, size=(120, 40))


def test_while_the_program_runs_nothing_is_said_to_wait_and_what_was_read_stays():
    session = FakeSession(held=True)

    async def scenario(app, pilot):
        session.release()
        await start(app, pilot)
        inspector = app.query_one(InspectorPane)
        await until(pilot, lambda: re.search(r"saved mat1 +\(3,4\) +0\.5", inspector.text))
        assert "‖" in text_of(app).split("1 Graph")[1]
        await pilot.press("c")
        await until(pilot, lambda: "RUNNING" in text_of(app) and "‖" not in text_of(app))
        assert re.search(r"saved mat1 +\(3,4\) +0\.5", inspector.text)
        await pilot.press("1", "j")
        await until(pilot, lambda: "saved mat1  (3,4)  not read while it runs" in inspector.text)
        session.release()

    play(scenario, session, size=(140, 40))


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


def test_a_look_at_a_running_program_while_the_screen_is_closed_finds_no_widgets_and_goes():
    session = FakeSession(held=True)

    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.state == "running")
        await app.query_one("#panes").remove()
        app.watcher.poll()

    play(scenario, session)


def test_a_program_that_runs_has_no_loss_beside_the_number_of_a_later_backward():
    session = FakeSession()
    session.lost = [4.0]

    async def scenario(app, pilot):
        await start(app, pilot)
        await until(pilot, lambda: "loss 4" in text_of(app))
        session.held = True
        await pilot.press("c")
        await until(pilot, lambda: "RUNNING" in text_of(app))
        assert "loss" not in text_of(app).split("\n")[0]
        session.release()
        await until(pilot, lambda: "loss 4" in text_of(app))

    play(scenario, session, size=(140, 24))


@pytest.mark.parametrize(("key", "asked"), [("7", "parameters"), ("9", "frames")])
def test_what_is_pointed_at_while_the_program_is_asked_stays_pointed_at(monkeypatch, key, asked):
    line = Location("train.py", 8, "fit", "loss.backward()")
    answering = threading.Event()
    answer = getattr(FakeSession, asked)

    def slowly(session):
        answering.wait(10)
        return answer(session)

    async def scenario(app, pilot):
        await start(app, pilot)
        monkeypatch.setattr(FakeSession, asked, slowly)
        await pilot.press(key)
        app.watcher.point_at(line)
        await until(pilot, lambda: "Source train.py:8" in text_of(app))
        answering.set()
        await until(pilot, lambda: not any(worker.is_running for worker in app.workers))
        app.watcher.show_outline()
        await pilot.pause()
        assert "Source train.py:8" in text_of(app)

    play(scenario, size=(120, 40))

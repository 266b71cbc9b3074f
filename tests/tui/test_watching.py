"""Breakpoints, watches, what-if, threads: what is asked for and shown beside the graph."""

from __future__ import annotations

from gradscope.inspect.debugging.session.session_records import TaskRecord
from gradscope.inspect.records.records import DebuggerEvent
from gradscope_tui.panes.breakpoints_pane import BreakpointsPane
from gradscope_tui.panes.inspector_pane import InspectorPane
from gradscope_tui.panes.log_pane import LogPane
from gradscope_tui.screens.threads_screen import ThreadsScreen
from gradscope_tui.screens.what_if_screen import WhatIfScreen
from gradscope_tui.widgets.prompt_line import Prompt
from tests.tui.fake import Call, FakeSession, play, text_of, until


async def start(app, pilot):
    await until(pilot, lambda: app.session.nodes and "PAUSED" in text_of(app))


async def answer(app, pilot, key, text):
    """Press a key that asks for something, and answer."""
    await pilot.press(key)
    await until(pilot, lambda: app.query_one(Prompt).display)
    app.focused.value = text
    await pilot.press("enter")


def test_a_watch_shows_its_value_the_one_before_and_that_it_has_changed():
    async def scenario(app, pilot):
        await start(app, pilot)
        await answer(app, pilot, "w", "index * 10")
        await until(pilot, lambda: "6 Watches 1" in text_of(app) and "1 index * 10 = 0" in text_of(app))
        await pilot.press("n")
        await until(pilot, lambda: "≠ 1 index * 10 = 10  (was 0)" in text_of(app))
        await answer(app, pilot, "w", "nothing_there")
        await until(pilot, lambda: "NameError: name 'nothing_there' is not defined" in text_of(app))
        await pilot.press("6", "j", "d")
        await until(pilot, lambda: "nothing_there" not in text_of(app))
        assert [watch.expression for watch in app.session.watches] == ["index * 10"]

    play(scenario)


def test_a_watch_that_is_no_expression_is_refused():
    async def scenario(app, pilot):
        await start(app, pilot)
        await answer(app, pilot, "w", "1 +")
        await until(pilot, lambda: "SyntaxError" in text_of(app))
        assert app.session.watches == ()

    play(scenario)


def test_breakpoints_tell_conditions_counts_logpoints_and_that_they_are_off():
    async def scenario(app, pilot):
        await start(app, pilot)
        session = app.session
        session.add_breakpoint("op:Addmm", condition="norm > 10")
        session.add_breakpoint("param:*.weight", temporary=True)
        session.add_breakpoint("mod:layers.1", log="norm")
        session.ignore_breakpoint(1, 3)
        session.enable_breakpoint(2, False)
        await pilot.press("4")
        await until(pilot, lambda: "● 1 op:Addmm  if norm > 10  hits 0  passes 3 more" in text_of(app))
        assert "◌ 2 param:*.weight  hits 0  once  off" in text_of(app)
        assert "● 3 mod:layers.1  prints norm  hits 0" in text_of(app)

    play(scenario, size=(100, 40))


def test_space_switches_breakpoints_and_the_stops_at_trouble():
    async def scenario(app, pilot):
        await start(app, pilot)
        app.session.add_breakpoint("op:Addmm")
        await pilot.press("4")
        await until(pilot, lambda: "● 1 op:Addmm" in text_of(app))
        await pilot.press("space")
        await until(pilot, lambda: "◌ 1 op:Addmm" in text_of(app))
        await pilot.press("space")
        await until(pilot, lambda: "● 1 op:Addmm" in text_of(app))
        for row, kind in enumerate(("violation", "exception", "nan", "inf"), start=1):
            app.query_one(BreakpointsPane).cursor = row
            before = app.session.catching[kind]
            await pilot.press("space")
            await until(pilot, lambda kind=kind, before=before: app.session.catching[kind] is not before)
        await until(pilot, lambda: "[●] nan" in text_of(app) and "[ ] violation" in text_of(app))

    play(scenario, size=(100, 40))


def test_what_a_logpoint_prints_goes_to_the_log():
    async def scenario(app, pilot):
        await start(app, pilot)
        app.session._tell(DebuggerEvent("log", app.session.state, text="norm 0.5"))
        await until(pilot, lambda: "● norm 0.5" in app.query_one(LogPane).text)

    play(scenario)


def test_what_if_asks_for_a_gradient_and_shows_what_the_parameters_would_get():
    async def scenario(app, pilot):
        await start(app, pilot)
        await answer(app, pilot, "i", "0 grad * 0")
        await until(pilot, lambda: isinstance(app.screen, WhatIfScreen) and "What if" in text_of(app))
        shown = text_of(app)
        assert "incoming gradient 0 = grad * 0   norm 0.5 → 0" in shown
        weight, other = (next(x for x in shown.split("\n") if f"layers.{n}.weight" in x and "%" in x) for n in (0, 1))
        assert "100.0%  ▇▇▇▇▇▇▇▇▇▇▇▇" in weight
        assert "0.0%" in other
        assert "▇" not in other
        assert shown.index(weight) < shown.index(other)
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, WhatIfScreen))

    assert Call("what_if", (0, "grad * 0")) in play(scenario).calls


def test_skip_leaves_the_node_out():
    async def scenario(app, pilot):
        await start(app, pilot)
        await pilot.press("x")
        await until(pilot, lambda: "node 0 ReluBackward0 will be left out" in app.query_one(LogPane).text)

    assert Call("skip") in play(scenario).calls


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


def test_long_watches_and_breakpoints_can_be_scrolled_into_view():
    async def scenario(app, pilot):
        await start(app, pilot)
        await answer(app, pilot, "w", f"index + {' + '.join(['0'] * 30)} + 4321")
        await until(pilot, lambda: "6 Watches 1" in text_of(app))
        assert "= 4321" not in text_of(app)
        await pilot.press("6", *["right"] * 10)
        await until(pilot, lambda: "= 4321" in text_of(app))
        await answer(app, pilot, "B", f"op:Addmm if {' + '.join(['0'] * 30)} > 0")
        await pilot.press("4")
        await until(pilot, lambda: "4 Breakpoints 1" in text_of(app))
        assert "hits 0" not in text_of(app)
        await pilot.press(*["right"] * 10)
        await until(pilot, lambda: "hits 0" in text_of(app))

    play(scenario)

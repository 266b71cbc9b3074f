from __future__ import annotations

import pytest

from gradscope.inspect.records.records import SessionState
from gradscope_tui.actions import unavailable
from gradscope_tui.panes.graph_pane import GraphPane
from gradscope_tui.panes.inspector_pane import InspectorPane
from gradscope_tui.screens.confirm_screen import ConfirmScreen
from gradscope_tui.widgets.line_pane import LinePane
from gradscope_tui.widgets.status_bar import StatusBar
from tests.tui.fake import Call, play, text_of, type_in, until


async def at(app, pilot, index, state="paused before"):
    await until(pilot, lambda: app.query_one(StatusBar).status.state == state and app.session.current == index)


async def go_to_node_four(app, pilot):
    await at(app, pilot, 0)
    await type_in(pilot, "step 4", ":")
    await at(app, pilot, 4)


def test_back_shows_the_past_unmistakably_and_live_the_present_again():
    async def scenario(app, pilot):
        await go_to_node_four(app, pilot)
        await pilot.press("N", "N")
        await at(app, pilot, 2, "replaying")
        shown = text_of(app)
        assert "◁ REPLAYING #2/13 AccumulateGrad layers.0.weight  LIVE #4" in shown
        assert "║◁   2 ✓ │" in shown or "║◁   2 ✓ ◉" in shown
        assert "║▶   4" in shown
        assert "◀ LIVE" in shown
        assert "1 Graph ◁ REPLAYING" in shown
        assert shown.split("\n")[1].index("◁") < shown.split("\n")[1].index("▶")
        assert app.query_one(GraphPane).index == 2
        assert all(pane.has_class("-replaying") for pane in app.query(LinePane))
        await pilot.press("L")
        await at(app, pilot, 4)
        assert "REPLAYING" not in text_of(app)

    assert Call("go_live") in play(scenario, size=(160, 48)).calls


def test_the_keys_of_gdb_go_back():
    async def scenario(app, pilot):
        await go_to_node_four(app, pilot)
        await pilot.press("N")
        await at(app, pilot, 3, "replaying")
        await pilot.press("C")
        await at(app, pilot, 0, "replaying")

    calls = play(scenario).calls
    assert calls[-2:] == [Call("back", (1,)), Call("reverse_continue")]


def test_back_after_begins_with_what_the_node_has_produced():
    async def scenario(app, pilot):
        await go_to_node_four(app, pilot)
        await pilot.press("2", "S")
        await at(app, pilot, 3, "replaying")
        pane = app.query_one(InspectorPane)
        await until(pilot, lambda: pane.line(pane.cursor, 30).plain.startswith("grad out"))

    play(scenario, size=(80, 20))


def test_run_to_cursor_looks_back_at_a_node_that_has_run():
    async def scenario(app, pilot):
        await go_to_node_four(app, pilot)
        await pilot.press("g", "j", "t")
        await at(app, pilot, 1, "replaying")

    assert play(scenario).calls[-1] == Call("goto", (1,))


@pytest.mark.slow
def test_steps_typed_ahead_in_the_past_are_carried_out_one_after_the_other():
    async def scenario(app, pilot):
        await go_to_node_four(app, pilot)
        await pilot.press("N", "N", "N")
        await at(app, pilot, 1, "replaying")

    assert [call.verb for call in play(scenario).calls[-3:]] == ["back"] * 3


def test_what_was_typed_ahead_is_forgotten_where_the_past_begins():
    async def scenario(app, pilot):
        await at(app, pilot, 0)
        await pilot.press("N", "N")
        await until(pilot, lambda: "nothing is recorded before this node" in text_of(app))
        assert not app.run_verbs._ahead

    play(scenario)


def test_nothing_can_be_changed_in_the_past():
    async def scenario(app, pilot):
        await go_to_node_four(app, pilot)
        await pilot.press("N")
        await at(app, pilot, 3, "replaying")
        assert {"edit", "skip"} <= unavailable(app.session)
        await pilot.press("e")
        await until(pilot, lambda: "this node has run" in text_of(app))

    play(scenario)


def test_live_is_refused_in_the_present():
    async def scenario(app, pilot):
        await at(app, pilot, 0)
        assert "live" in unavailable(app.session)
        await pilot.press("L")
        await until(pilot, lambda: "this is no recorded node" in text_of(app))

    play(scenario)


def test_restart_asks_first_while_the_script_is_paused():
    async def scenario(app, pilot):
        await go_to_node_four(app, pilot)
        await pilot.press("R")
        await until(pilot, lambda: isinstance(app.screen, ConfirmScreen) and "Restart?" in text_of(app))
        await pilot.press("n")
        await until(pilot, lambda: not isinstance(app.screen, ConfirmScreen))
        assert Call("restart") not in app.session.calls
        await pilot.press("R", "y")
        await at(app, pilot, 0)
        await until(pilot, lambda: app.query_one(GraphPane).index == 0)

    assert Call("restart") in play(scenario).calls


def test_a_script_that_has_ended_is_started_again_without_a_question():
    async def scenario(app, pilot):
        await at(app, pilot, 0)
        await pilot.press("c")
        await until(pilot, lambda: "FINISHED" in text_of(app))
        await pilot.press("R")
        await at(app, pilot, 0)
        assert app.session.state == SessionState.PAUSED_BEFORE

    play(scenario)


@pytest.mark.slow
def test_a_live_session_says_which_keys_are_for_recordings():
    async def scenario(app, pilot):
        await at(app, pilot, 0)
        for key in ("[", "{", "}"):
            await pilot.press(key)
            await until(pilot, lambda: "that works in a recording" in text_of(app))

    play(scenario)


def test_a_script_that_was_attached_to_is_not_offered_again_when_it_has_ended():
    async def scenario(app, pilot):
        app.session.owned = False
        await go_to_node_four(app, pilot)
        await pilot.press("c")
        await until(pilot, lambda: "FINISHED" in text_of(app))
        for key, said in (("n", "q leaves"), ("e", "can no longer be changed"), ("i", "nothing to run")):
            await pilot.press(key)
            await until(pilot, lambda said=said: said in text_of(app))
            assert "R starts it again" not in text_of(app)

    play(scenario, size=(160, 48))


def test_the_past_of_a_script_that_has_ended_is_walked_and_nothing_there_is_a_dead_end():
    async def scenario(app, pilot):
        await go_to_node_four(app, pilot)
        await pilot.press("c")
        await until(pilot, lambda: "FINISHED" in text_of(app))
        assert app.query_one(GraphPane).index == 4
        assert unavailable(app.session) >= {"step", "edit", "what_if"}
        assert not unavailable(app.session) & {"step_back", "back_after", "reverse_continue", "run_to"}
        await pilot.press("n")
        await until(pilot, lambda: "N looks back" in text_of(app))
        await pilot.press("N")
        await at(app, pilot, 3, "replaying")
        assert "◁ REPLAYING an ended script #3/13" in text_of(app)
        assert "LIVE" not in text_of(app)
        for key in ("e", "i"):
            await pilot.press(key)
            await until(pilot, lambda: "R starts it again" in text_of(app))
        await pilot.press("n")
        await until(pilot, lambda: "it cannot go on" in text_of(app))
        await pilot.press("g", "t")
        await at(app, pilot, 0, "replaying")
        await pilot.press("L")
        await until(pilot, lambda: app.query_one(StatusBar).status.state == "finished")
        await pilot.press("q")
        await until(pilot, lambda: app.left)

    play(scenario, size=(160, 48))


def test_back_at_the_end_the_graph_is_not_called_by_the_backward_that_was_looked_at():
    async def scenario(app, pilot):
        await at(app, pilot, 0)
        await pilot.press("right_square_bracket", "n", "n", "c")
        await until(pilot, lambda: "FINISHED" in text_of(app))
        app.session.task_index = 1
        await pilot.press("N")
        await until(pilot, lambda: "REPLAYING" in text_of(app) and "backward 1" in text_of(app))
        app.session.task_index = 2
        await pilot.press("L")
        await until(pilot, lambda: "FINISHED" in text_of(app))
        assert app.query_one(GraphPane).border_title == "1 Graph"

    play(scenario)

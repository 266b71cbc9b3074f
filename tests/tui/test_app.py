from __future__ import annotations

from dataclasses import replace

import pytest
from textual import events

from gradscope.inspect.debugging.session.session_records import BackwardFinding
from gradscope.inspect.records.records import SessionState, StopReason
from gradscope_tui import refusal
from gradscope_tui.actions import ACTIONS
from gradscope_tui.panes import PANES
from gradscope_tui.panes.breakpoints_pane import BreakpointsPane
from gradscope_tui.panes.graph_pane import GraphPane
from gradscope_tui.panes.inspector_pane import InspectorPane
from gradscope_tui.panes.log_pane import LogPane
from gradscope_tui.panes.source_pane import SourcePane
from gradscope_tui.refusal import refuse
from gradscope_tui.screens.confirm_screen import ConfirmScreen
from gradscope_tui.screens.help_screen import HelpScreen
from gradscope_tui.widgets.line_pane import LinePane, WholeCells
from gradscope_tui.widgets.prompt_line import Prompt
from gradscope_tui.widgets.status_bar import StatusBar
from tests.quick_cases import quick
from tests.tui.fake import Call, FakeSession, chain, play, text_of, type_in, until

NUMBERS = [pane.NUMBER for pane in PANES]
SIZES = [(80, 24), (40, 10), (20, 6), *quick([((160, 48),), ((60, 16),), ((200, 60),)], ())]


def status(app):
    return app.query_one(StatusBar).status


def cursor(app):
    return app.query_one(GraphPane).index


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_starts_the_session_and_shows_the_first_node_at_every_size(size):
    async def scenario(app, pilot):
        await until(pilot, lambda: "PAUSED" in text_of(app))
        assert status(app).state == "paused before"
        assert "#0" in text_of(app)
        assert app.pane.display
        assert app.focused is app.pane

    session = play(scenario, size=size)
    assert session.calls[0] == Call("start")


def test_a_cursor_that_has_moved_is_passed_over_while_the_app_is_closed(monkeypatch):
    async def scenario(app, pilot):
        await until(pilot, lambda: "PAUSED" in text_of(app))
        heard = []

        def follow():  # the widgets of an app that is being closed go before its last messages are heard
            heard.append(True)
            app.query_one("#gone")

        monkeypatch.setattr(app.watcher, "follow_cursor", follow)
        app.query_one(GraphPane).post_message(GraphPane.Selected())
        await until(pilot, lambda: heard)

    play(scenario)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "verb"),
    [
        ("n", "step"),
        ("f10", "step"),
        ("s", "into"),
        ("f11", "into"),
        ("f", "out"),
        ("f23", "out"),
        ("]", "next_backward"),
    ],
)
def test_keys_call_the_verbs_of_the_session(key, verb):
    async def scenario(app, pilot):
        await until(pilot, lambda: status(app).state == "paused before")
        await pilot.press(key)
        await until(pilot, lambda: app.session.calls[-1].verb == verb and app.session.state != "running")

    play(scenario)


def test_the_cursor_and_the_inspector_follow_every_stop():
    async def scenario(app, pilot):
        await until(pilot, lambda: status(app).total)
        for index in (1, 2, 3):
            await pilot.press("n")
            await until(pilot, lambda index=index: cursor(app) == index)
        await until(pilot, lambda: app.query_one(InspectorPane).border_title == "2 Inspector #3 Relu")
        assert "#3/13 ReluBackward0 layers.1" in text_of(app)

    play(scenario, size=(160, 48))


def test_steps_typed_ahead_wait_for_the_stop_and_are_not_lost():
    async def scenario(app, pilot):
        await until(pilot, lambda: status(app).total)
        app.session.held = True
        await pilot.press("n", "n", "n")
        assert [call.verb for call in app.session.calls] == ["start", "step"]
        app.session.held = False
        app.session.release()
        await until(pilot, lambda: cursor(app) == 3)

    play(scenario)


def test_steps_typed_ahead_are_forgotten_at_a_breakpoint():
    async def scenario(app, pilot):
        await until(pilot, lambda: status(app).total)
        app.session.held = True
        await pilot.press("n", "n", "n")
        app.session.stop(1, StopReason("breakpoint", "breakpoint 1 (op:Addmm)", 1))
        await until(pilot, lambda: status(app).why == "breakpoint 1 (op:Addmm)")
        assert cursor(app) == 1
        assert [call.verb for call in app.session.calls] == ["start", "step"]

    play(scenario)


def test_a_verb_that_cannot_be_is_refused_with_its_reason():
    async def scenario(app, pilot):
        await until(pilot, lambda: status(app).total)
        await pilot.press("N")
        await until(pilot, lambda: "nothing is recorded before this node" in text_of(app))
        app.session.held = True
        await pilot.press("c")
        await until(pilot, lambda: status(app).state == "running")
        await pilot.press("n")
        await until(pilot, lambda: "p pauses it" in text_of(app))

    play(scenario)


def test_pause_stops_a_running_session():
    async def scenario(app, pilot):
        await until(pilot, lambda: status(app).total)
        app.session.held = True
        await pilot.press("c")
        await until(pilot, lambda: status(app).state == "running")
        await pilot.press("p")
        await until(pilot, lambda: status(app).why == "paused on request")

    assert Call("pause") in play(scenario).calls


def test_run_to_cursor_and_back_to_here():
    async def scenario(app, pilot):
        await until(pilot, lambda: status(app).total)
        await pilot.press("j", "j", "j", "k", "t")
        await until(pilot, lambda: status(app).node == 2)
        await pilot.press("G")
        assert cursor(app) == 12
        await pilot.press("H")
        assert cursor(app) == 2
        await pilot.press("g")
        assert cursor(app) == 0

    assert Call("run_to", (2,)) in play(scenario).calls


def test_half_pages_move_the_cursor():
    async def scenario(app, pilot):
        await until(pilot, lambda: status(app).total)
        await pilot.press("ctrl+d")
        assert 0 < cursor(app) < 12
        await pilot.press("ctrl+u")
        assert cursor(app) == 0

    play(scenario)


def test_b_toggles_a_breakpoint_on_the_operator_under_the_cursor():
    async def scenario(app, pilot):
        await until(pilot, lambda: status(app).total)
        await pilot.press("j", "b")
        await until(pilot, lambda: status(app).breakpoints == 1)
        assert [point.spec for point in app.session.breakpoints] == ["op:Addmm"]
        assert sum(line[2:3] == "●" for line in text_of(app).split("\n")) == 4
        await until(pilot, lambda: "op:Addmm stops at 4 nodes of this backward" in text_of(app))
        await pilot.press("b")
        await until(pilot, lambda: status(app).breakpoints == 0)
        await pilot.press("j", "b")
        await until(pilot, lambda: [point.spec for point in app.session.breakpoints] == ["param:layers.0.weight"])

    play(scenario, size=(80, 30))


def test_b_on_the_row_of_a_module_breaks_on_that_and_where_no_node_runs_it_says_so():
    session = FakeSession()
    session.found = [BackwardFinding("unreached", "warning", "", parameters=("head.weight",))]

    async def scenario(app, pilot):
        await until(pilot, lambda: "✂ head" in text_of(app))
        await pilot.press("g", "b")
        await until(pilot, lambda: "no gradient comes to this module: it has no node to stop at" in text_of(app))
        assert app.session.breakpoints == []
        await pilot.press("j")
        assert app.query_one(GraphPane).spec == "mod:layers.0"
        await pilot.press("b")
        await until(pilot, lambda: [point.spec for point in app.session.breakpoints] == ["mod:layers.0"])

    play(scenario, session, size=(160, 40))


def test_a_breakpoint_with_a_condition_is_asked_for_and_deleted_in_its_pane():
    async def scenario(app, pilot):
        await until(pilot, lambda: status(app).total)
        await type_in(pilot, "op:Addmm if norm > 10", "B")
        await until(pilot, lambda: status(app).breakpoints == 1)
        assert app.session.breakpoints[0].condition == "norm > 10"
        await pilot.press("4")
        await until(pilot, lambda: "op:Addmm  if norm > 10  hits 0" in text_of(app))
        assert app.focused is app.query_one(BreakpointsPane)
        await pilot.press("d")
        await until(pilot, lambda: "4 Breakpoints ─" in text_of(app) and app.session.breakpoints == [])

    play(scenario)


def test_a_bad_breakpoint_is_said_and_not_set():
    async def scenario(app, pilot):
        await until(pilot, lambda: status(app).total)
        await type_in(pilot, "what:ever", "B")
        await until(pilot, lambda: "unknown kind of breakpoint" in text_of(app))
        assert app.session.breakpoints == []

    play(scenario)


def test_edit_asks_for_an_expression_and_sets_the_gradient():
    async def scenario(app, pilot):
        await until(pilot, lambda: status(app).total)
        await pilot.press("e")
        assert app.query_one(Prompt).display
        await pilot.press(*"grad * 0.5", "enter")
        await until(pilot, lambda: app.session.calls[-1] == Call("set_grad", (0, "grad * 0.5")))

    play(scenario)


def test_escape_closes_the_prompt_and_gives_the_keys_back():
    async def scenario(app, pilot):
        await until(pilot, lambda: status(app).total)
        await pilot.press(":", "n", "escape")
        assert not app.query_one(Prompt).display
        await until(pilot, lambda: app.focused is app.pane)
        await pilot.press("j")
        assert cursor(app) == 1
        assert [call.verb for call in app.session.calls] == ["start"]

    play(scenario)


@pytest.mark.parametrize("opened", quick([False, True], {True}))
def test_what_is_typed_at_once_behind_enter_is_for_the_pane(opened):
    keys = {":": "colon", " ": "space", "\n": "enter", "\x1b": "escape"}

    async def scenario(app, pilot):
        await until(pilot, lambda: status(app).total)
        text = ":print index\njj:x\x1bj"
        if opened:
            await pilot.press(":")
            text = text[1:]
        for sign in text:  # a slow line brings them all in one piece
            app.post_message(events.Key(keys.get(sign, sign), sign if sign.isprintable() else None))
        await until(pilot, lambda: cursor(app) == 3)
        assert app.query_one(Prompt)._history["command"] == ["print index"]
        assert not app.query_one(Prompt).display
        assert app.focused is app.pane

    play(scenario)


def test_a_verb_behind_a_command_waits_for_it():
    async def scenario(app, pilot):
        await until(pilot, lambda: status(app).total)
        add, known = app.session.add_breakpoint, []

        def slowly(spec, **options):
            known.append([call.verb for call in app.session.calls])
            return add(spec, **options)

        app.session.add_breakpoint = slowly
        for sign in ":break op:Relu\nc":
            key = {":": "colon", " ": "space", "\n": "enter"}.get(sign, sign)
            app.post_message(events.Key(key, sign if sign.isprintable() else None))
        await until(pilot, lambda: Call("cont") in app.session.calls)
        assert known == [["start"]]

    play(scenario)


def test_output_goes_to_the_log_and_cannot_draw_on_the_screen():
    async def scenario(app, pilot):
        await until(pilot, lambda: status(app).total)
        app.session.say("epoch 1: loss 2.3")
        app.session.say("\x1b[2J\x1b[33mwarning\tone\x1b[0m\a", "stderr")
        await pilot.press("5")
        await until(pilot, lambda: "epoch 1: loss 2.3" in text_of(app))
        await until(pilot, lambda: "warning one�" in text_of(app))
        assert "\x1b" not in text_of(app)

    play(scenario)


@pytest.mark.slow
@pytest.mark.parametrize(("size", "seen"), [((80, 24), 3), ((160, 48), 4), ((50, 24), 1), ((80, 12), 1)], ids=str)
def test_panes_that_have_room_are_seen(size, seen):
    async def scenario(app, pilot):
        await until(pilot, lambda: status(app).state == "paused before")
        for number, pane in zip(NUMBERS, PANES):
            await pilot.press(pane.KEY)
            await until(pilot, lambda: app.focused is app.pane)
            panes = [app.query_one(f"#pane{n}") for n in NUMBERS]
            assert sum(pane.display for pane in panes) == seen
            assert app.pane is panes[NUMBERS.index(number)]
            assert app.pane.display
            assert app.pane.size.height > 0

    play(scenario, size=size)


def test_maximise_gives_a_pane_the_screen_and_takes_it_back():
    async def scenario(app, pilot):
        await until(pilot, lambda: status(app).total)
        await pilot.press("2", "m")
        await until(pilot, lambda: app.pane.region.size == (80, 21) and "m All panes" in text_of(app))
        await pilot.press("m")
        await until(pilot, lambda: app.query_one(GraphPane).display and "All panes" not in text_of(app))

    play(scenario)


def test_escape_takes_the_screen_back_from_a_pane_but_first_ends_what_is_looked_for_there():
    async def scenario(app, pilot):
        graph = app.query_one(GraphPane)
        await until(pilot, lambda: status(app).total)
        await pilot.press("2", "m", "escape")
        await until(pilot, lambda: graph.display and not app.pane_layout.maximised)
        await pilot.press("1", "m")
        await type_in(pilot, "op:Addmm", "slash")
        await until(pilot, lambda: graph.filtered)
        await pilot.press("escape", "escape")
        await until(pilot, lambda: not graph.found)
        assert app.pane_layout.maximised
        await pilot.press("escape")
        await until(pilot, lambda: not app.pane_layout.maximised)

    play(scenario)


def test_tab_goes_round_all_panes():
    async def scenario(app, pilot):
        seen = []
        for _ in NUMBERS:
            await pilot.press("tab")
            seen.append(app.active)
        await pilot.press("shift+tab")
        assert (seen, app.active) == ([*NUMBERS[1:], NUMBERS[0]], NUMBERS[-1])

    play(scenario)


def test_the_layout_follows_the_size_of_the_terminal():
    async def scenario(app, pilot):
        await until(pilot, lambda: status(app).total)
        for size, seen in (((160, 48), 4), ((40, 12), 1), ((80, 24), 3)):
            await pilot.resize_terminal(*size)
            await until(pilot, lambda seen=seen: sum(app.query_one(f"#pane{n}").display for n in NUMBERS) == seen)

    play(scenario)


def test_help_lists_every_key_and_every_verb():
    async def scenario(app, pilot):
        await until(pilot, lambda: status(app).total)
        await pilot.press("?")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen) and "Help" in text_of(app))
        shown = text_of(app)
        for action in ACTIONS:
            assert action.shown in shown
            assert action.help in shown
        assert "run-to, to, t NODE" in shown
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, HelpScreen))

    play(scenario, size=(120, 150))


def test_the_palette_offers_the_actions():
    async def scenario(app, pilot):
        await until(pilot, lambda: status(app).total)
        await pilot.press("ctrl+p")
        await until(pilot, lambda: "Search for commands" in text_of(app))
        await pilot.press(*"Next node (n")
        await until(pilot, lambda: "Next node (n, F10)" in text_of(app))
        await pilot.press("down", "enter")
        await until(pilot, lambda: status(app).node == 1)

    play(scenario)


def test_the_palette_begins_with_the_keys_of_the_pane_and_has_none_that_do_nothing():
    async def scenario(app, pilot):
        await until(pilot, lambda: status(app).total)
        await pilot.press("4", "ctrl+p")
        await until(pilot, lambda: "Edit (Enter)" in text_of(app))
        assert text_of(app).index("Edit (Enter)") < text_of(app).index("Next node (n, F10)")
        titles = [command.title for command in app.get_system_commands(app.screen)]
        assert titles[:4] == ["Edit (Enter)", "On or off (Space)", "Delete (d, Del)", "New breakpoint (B)"]
        assert "Pause (p, F6, ^c)" not in titles

    play(scenario, size=(80, 30))


def test_quit_asks_while_the_session_is_paused_and_can_be_taken_back():
    async def scenario(app, pilot):
        await until(pilot, lambda: status(app).total)
        await pilot.press("q")
        await until(pilot, lambda: isinstance(app.screen, ConfirmScreen))
        assert "train.py is paused in backward 1" in text_of(app)
        await pilot.press("n")
        await until(pilot, lambda: not isinstance(app.screen, ConfirmScreen))
        assert app.is_running
        await pilot.press("q", "y")
        await until(pilot, lambda: not app.is_running or app._exit)

    assert play(scenario).calls[-1] == Call("abort")


@pytest.mark.slow
def test_a_question_follows_a_program_that_ends_while_it_stands():
    session = FakeSession(held=True)

    async def scenario(app, pilot):
        session.release()
        await until(pilot, lambda: status(app).total)
        await pilot.press("c")
        await until(pilot, lambda: "RUNNING" in text_of(app))
        await pilot.press("q")
        await until(pilot, lambda: "train.py is running. Quitting ends it there" in text_of(app))
        session.release()
        await until(pilot, lambda: "train.py is finished: quitting ends nothing." in text_of(app))
        await pilot.press("y")
        await until(pilot, lambda: app._exit)

    assert Call("abort") not in play(scenario, session).calls


def test_quit_does_not_ask_when_the_session_has_ended():
    async def scenario(app, pilot):
        await until(pilot, lambda: status(app).total)
        await pilot.press("c")
        await until(pilot, lambda: "FINISHED" in text_of(app))
        await pilot.press("q")
        await until(pilot, lambda: app._exit)

    assert Call("abort") not in play(scenario).calls


def test_a_failure_is_an_alarm_in_words():
    async def scenario(app, pilot):
        await until(pilot, lambda: status(app).total)
        app.session.stop(4, StopReason("exception", "AddmmBackward0 raised ValueError: bad"), SessionState.PAUSED_AFTER)
        await until(pilot, lambda: status(app).alarm and "✗ fail" in text_of(app))
        assert "raised ValueError: bad" in text_of(app).split("\n")[1]
        assert "‼" in text_of(app).split("\n")[1]

    play(scenario, size=(160, 48))


def test_states_are_told_without_colour(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")

    async def scenario(app, pilot):
        await until(pilot, lambda: status(app).total)
        await pilot.press("n", "n")
        await until(pilot, lambda: "PAUSED before #2/13" in text_of(app))
        rows = text_of(app).split("\n")
        assert any(line.startswith("│▶   2 ‖ ") for line in rows)
        assert any(line.startswith("│    0 ✓ ◉") for line in rows)
        assert any(line.startswith("│    3 · ") for line in rows)
        styles = [s.style for strip in app.screen._compositor.render_strips(app.size) for s in strip if s.style]
        colours = {c.get_truecolor() for style in styles for c in (style.color, style.bgcolor) if c}
        assert len(colours) > 4
        assert all(max(colour) - min(colour) <= 2 for colour in colours)

    play(scenario, size=(160, 48))


@pytest.mark.slow
def test_a_hundred_thousand_nodes_are_shown_and_walked():
    async def scenario(app, pilot):
        await until(pilot, lambda: status(app).total == 100_000)
        await pilot.press("G")
        await until(pilot, lambda: "#99999" in app.query_one(InspectorPane).border_title)
        assert "99999" in text_of(app)
        await pilot.press("g", "n")
        await until(pilot, lambda: "◉─╮ Addmm" in text_of(app))
        await until(pilot, lambda: cursor(app) == 1)

    play(scenario, FakeSession(chain(100_000)))


def test_the_session_may_go_on_under_the_help_and_under_the_question():
    async def scenario(app, pilot):
        await until(pilot, lambda: status(app).total)
        for key in ("?", "q"):
            await pilot.press(key)
            await until(pilot, lambda: len(app.screen_stack) == 2)
            app.session.say("still here")
            app.session.stop(5, StopReason("step", "next node"))
            await until(pilot, lambda: cursor(app) == 5)
            await pilot.press("escape")
            await until(pilot, lambda: len(app.screen_stack) == 1)
            app.session.stop(1, StopReason("step", "next node"))
            await until(pilot, lambda: cursor(app) == 1)

    play(scenario)


def test_what_is_said_in_passing_is_no_tab_of_the_dock():
    tabs = "4 Break │ 6 Watch │ 7 Mods │ 8 Find │ 9 Frames │ 0 Diag ─╯"

    async def scenario(app, pilot):
        await until(pilot, lambda: tabs in text_of(app))
        refuse(app, "the script is running; p pauses it")
        await until(pilot, lambda: "the script is running; p pauses it" in text_of(app))
        (line,) = (line for line in text_of(app).split("\n") if "p pauses it" in line)
        assert line.startswith(" the script is running; p pauses it ─")
        assert line.endswith(tabs)
        app.clear_notifications()
        refuse(app, "no module\n`step` goes on.")  # its two lines lie over the border and the keys
        await until(pilot, lambda: "`step` goes on." in text_of(app))
        assert [line.lstrip()[:9] for line in text_of(app).split("\n")[-2:]] == ["no module", "`step` go"]

    play(scenario, size=(160, 40))


def test_the_dock_names_what_it_hides():
    async def scenario(app, pilot):
        await until(
            pilot,
            lambda: (
                "─ 4 Breakpoints │ 5 Log │ 6 Watches │ 7 Modules │ 8 Findings │ 9 Frames │ 0 Diagram ─╯" in text_of(app)
            ),
        )
        await pilot.press("b")
        app.session.say("one line")
        await until(
            pilot,
            lambda: (
                "─ 4 Breakpoints 1 │ 5 Log │ 6 Watches │ 7 Modules │ 8 Findings │ 9 Frames │ 0 Diagram ─╯"
                in text_of(app)
            ),
        )
        await pilot.press("5")
        await until(
            pilot,
            lambda: (
                "─ 3 Source │ 4 Breakpoints 1 │ 6 Watches │ 7 Modules │ 8 Findings │ 9 Frames │ 0 Diagram ─╯"
                in text_of(app)
            ),
        )

    play(scenario, size=(100, 30))


def test_names_of_panes_become_other_words_where_there_is_little_room():
    async def scenario(app, pilot):
        words = "─ 4 Break │ 5 Log │ 6 Watch │ 7 Mods │ 8 Find │ 9 Frames │ 0 Diag ─╯"
        await until(pilot, lambda: words in text_of(app))

    play(scenario)


@pytest.fixture
def lasting(monkeypatch):
    """Let what is said in passing stay, however long a busy machine takes to draw it."""
    monkeypatch.setattr(refusal, "SECONDS", 3600)


def changed_rows(before, app):
    """The rows of the screen in which something else stands than before."""
    return [row for row, (old, new) in enumerate(zip(before, text_of(app).split("\n"))) if old != new]


@pytest.mark.usefixtures("lasting")
def test_what_is_said_in_passing_lies_over_a_border():
    async def scenario(app, pilot):
        await until(pilot, lambda: "▶   1" in text_of(app))
        await pilot.press("3")
        before = text_of(app).split("\n")
        await pilot.press("d")
        await until(pilot, lambda: "d removes the breakpoint" in text_of(app) and changed_rows(before, app) == [22])

    play(scenario, size=(120, 24))


@pytest.mark.usefixtures("lasting")
def test_what_is_said_in_two_lines_lies_over_the_keys_too_and_over_no_pane():
    async def scenario(app, pilot):
        await until(pilot, lambda: "▶   1" in text_of(app))
        before = text_of(app).split("\n")
        refuse(app, "what cannot be done here " * 4)
        await until(pilot, lambda: "cannot be done here" in text_of(app) and changed_rows(before, app) == [22, 23])
        refuse(app, "one line")
        await until(pilot, lambda: "one line" in text_of(app).split("\n")[22])

    play(scenario, size=(80, 24))


@pytest.mark.usefixtures("lasting")
def test_what_is_said_on_a_tiny_screen_leaves_room_for_what_it_shows():
    async def scenario(app, pilot):
        await until(pilot, lambda: "PAUSED" in text_of(app))
        before = text_of(app).split("\n")
        refuse(app, "what cannot be done here " * 4)
        await until(pilot, lambda: "cannot be" in text_of(app) and changed_rows(before, app) == [3, 4])

    play(scenario, size=(20, 5))


def test_the_end_of_a_scrollbar_is_no_part_of_a_cell():
    async def scenario(app, pilot):
        await until(pilot, lambda: "▶   1" in text_of(app))
        await pilot.press("j")
        assert app.query_one(InspectorPane).vertical_scrollbar.renderer is WholeCells
        assert not set("▁▂▃▄▅▆▇") & {line.rstrip()[-2:-1] for line in text_of(app).split("\n") if line.endswith("│")}

    play(scenario)


def test_the_app_hears_no_more_of_the_session_once_it_is_gone():
    async def scenario(app, pilot):
        await until(pilot, lambda: status(app).total)
        assert len(app.session._listeners) == 1

    assert play(scenario)._listeners == []


@pytest.mark.slow
@pytest.mark.parametrize("key", ["p", "f6", "ctrl+c"])
def test_a_script_that_is_to_pause_is_said_to_be_until_it_stops(key):
    async def scenario(app, pilot):
        await until(pilot, lambda: status(app).total)
        app.session.held = True
        app.session.pause = lambda: None
        await pilot.press("c")
        await until(pilot, lambda: status(app).state == "running")
        await pilot.press(key)
        await until(pilot, lambda: "stops before its next node" in text_of(app))
        app.session.stop(1, StopReason("pause", "paused on request"))
        await until(pilot, lambda: status(app).why == "paused on request")

    play(scenario)


def marked(pane):
    return pane.line(pane.cursor, 30).plain


def test_a_stop_after_a_node_begins_with_what_it_has_produced():
    async def scenario(app, pilot):
        pane = app.query_one(InspectorPane)
        await until(pilot, lambda: status(app).total and pane.node is not None)
        assert pane.scroll_offset.y == 0
        await pilot.press("s")
        await until(pilot, lambda: "PAUSED after" in text_of(app) and marked(pane).startswith("grad out"))
        await pilot.press("n")
        await until(pilot, lambda: pane.node.index == 1 and marked(pane).startswith("grad in"))

    play(scenario)


def test_an_interrupt_where_nothing_runs_says_how_to_leave():
    async def scenario(app, pilot):
        await until(pilot, lambda: status(app).total)
        await pilot.press("ctrl+c")
        await until(pilot, lambda: "has stopped" in text_of(app) and "q leaves" in text_of(app))

    play(scenario)


def test_the_prompt_takes_the_place_of_the_keys_and_moves_nothing():
    async def scenario(app, pilot):
        await until(pilot, lambda: "n Next node" in text_of(app))
        before = [pane.region for pane in app.query("#panes > *") if pane.display]
        await pilot.press(":")
        await until(pilot, lambda: app.query_one(Prompt).region.height)
        assert "n Next node" not in text_of(app)
        assert [pane.region for pane in app.query("#panes > *") if pane.display] == before
        await pilot.press("escape")
        await until(pilot, lambda: "n Next node" in text_of(app))

    play(scenario)


def test_the_help_can_be_read_from_either_end():
    async def scenario(app, pilot):
        await until(pilot, lambda: status(app).total)
        await pilot.press("?", "G")
        await until(pilot, lambda: "still waits" in text_of(app))
        await pilot.press("g")
        await until(pilot, lambda: "Run this node, stop before the next" in text_of(app))

    play(scenario)


@pytest.mark.slow
def test_the_log_says_where_the_output_of_a_new_start_begins():
    async def scenario(app, pilot):
        await until(pilot, lambda: status(app).total)
        app.session.say("from the first")
        await pilot.press("R", "y")
        await until(pilot, lambda: app.query_one(LogPane).text == "from the first\n── started again ──")

    play(scenario)


def test_a_script_that_exits_with_a_complaint_shows_what_it_has_said():
    async def scenario(app, pilot):
        await until(pilot, lambda: status(app).total)
        assert not app.pane_layout.is_seen(5)
        app.session.exit_status = 1
        app.session.say("no such data set", stream="stderr")
        await pilot.press("c")
        await until(pilot, lambda: "FINISHED" in text_of(app) and "no such data set" in text_of(app))
        assert app.active == 1

    play(scenario)


def test_a_click_on_the_name_of_a_hidden_pane_shows_it():
    async def scenario(app, pilot):
        await until(pilot, lambda: "6 Watch" in text_of(app))
        rows = text_of(app).split("\n")
        row = next(nr for nr, line in enumerate(rows) if "6 Watch" in line)
        await pilot.click(offset=(rows[row].index("6 Watch"), row))
        await until(pilot, lambda: app.active == 6 and app.pane_layout.is_seen(6))

    play(scenario)


def test_another_theme_colours_what_is_on_the_screen_anew():
    def colours(pane):
        return {str(span.style) for row in range(pane.line_count()) for span in pane.line(row, 40).spans}

    async def scenario(app, pilot):
        panes = app.query_one(InspectorPane), app.query_one(SourcePane)
        await until(pilot, lambda: all(pane.line_count() for pane in panes))
        dark = [colours(pane) for pane in panes]
        app.theme = "textual-light"
        await until(pilot, lambda: all(colours(pane) != before for pane, before in zip(panes, dark)))

    play(scenario, FakeSession(chain(filename=__file__)))


def test_a_look_at_a_running_session_while_the_app_is_closed_does_no_harm():
    async def scenario(app, pilot):
        await until(pilot, lambda: status(app).total)
        app.session.held = True
        await pilot.press("c")
        await app.query_one(StatusBar).remove()
        app.watcher.poll()

    play(scenario)


def test_what_is_told_when_the_screens_are_gone_ends_in_nothing():
    ended = []

    async def scenario(app, pilot):
        ended.extend((app, app.query_one(GraphPane)))

    play(scenario)
    app, pane = ended
    assert not app.screen_stack
    app.on_descendant_focus(events.DescendantFocus(pane))
    app.on_key(events.Key("x", "x"))
    assert app.focused is None


@pytest.mark.slow
def test_names_that_a_terminal_would_obey_are_only_shown():
    nasty = "\x1b[2J\x9b31m\u202e[red]x[/red][@click=app.quit]y[/]"

    async def scenario(app, pilot):
        await until(pilot, lambda: "PAUSED" in text_of(app))
        await pilot.press("j", "j")
        shown = text_of(app)
        assert "[2J31m[red]x[/red]" in shown
        assert not set(shown) & set("\x1b\x9b\u202e")

    nodes = [replace(node, module=nasty, parameter=node.parameter and nasty, name=nasty) for node in chain()]
    session = FakeSession(nodes)
    session.say(nasty)
    play(scenario, session, size=(160, 48))


def seen(app):
    """Return the numbers of the panes that can be seen, from the top down and from the left to the right."""
    shown = [pane for pane in app.query(LinePane) if pane.display and pane.region.width]
    return [pane.NUMBER for pane in sorted(shown, key=lambda pane: (pane.region.y, pane.region.x))]


def test_a_third_column_shows_two_panes_in_turn_and_the_graph_over_the_whole_height():
    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes and seen(app) == [1, 2, 3, 5, 8])
        assert app.query_one(GraphPane).region.height == app.query_one("#panes").region.height
        for key, expected in {"7": [1, 2, 3, 5, 7], "5": [1, 2, 3, 5, 7], "9": [1, 2, 3, 5, 9]}.items():
            await pilot.press(key)
            await until(pilot, lambda expected=expected: seen(app) == expected)
        await pilot.press("4")
        await until(pilot, lambda: seen(app) == [1, 2, 3, 4, 9])
        await pilot.press("m")
        await until(pilot, lambda: seen(app) == [4])
        await pilot.press("m")
        await pilot.resize_terminal(160, 48)
        await until(pilot, lambda: seen(app) == [1, 2, 3, 4])

    play(scenario, size=(200, 60))


def test_the_borders_of_three_columns_are_dragged():
    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes and seen(app) == [1, 2, 3, 5, 8])
        graph, inspector = app.query_one(GraphPane), app.query_one("#pane2")
        right, bottom = graph.region.right, inspector.region.bottom
        await pilot.mouse_down(None, offset=(graph.region.x + 9, bottom))  # within the graph
        await pilot.hover(None, offset=(graph.region.x + 9, bottom + 8))
        await pilot.mouse_up(None, offset=(graph.region.x + 9, bottom + 8))
        assert inspector.region.bottom == bottom
        await pilot.mouse_down(None, offset=(right + 9, bottom))
        await pilot.hover(None, offset=(right + 9, bottom + 8))
        await pilot.mouse_up(None, offset=(right + 9, bottom + 8))
        await until(pilot, lambda: inspector.region.bottom > bottom + 4)
        await pilot.mouse_down(None, offset=(right, 20))
        await pilot.hover(None, offset=(right - 20, 20))
        await pilot.mouse_up(None, offset=(right - 20, 20))
        await until(pilot, lambda: graph.region.right < right - 16)
        assert app.query_one("#pane2").region.width == app.query_one("#pane3").region.width
        await pilot.press("1", "+")
        await until(pilot, lambda: graph.region.right > right - 16)

    play(scenario, size=(200, 60))

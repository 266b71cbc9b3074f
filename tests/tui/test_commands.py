from __future__ import annotations

import pytest

from gradscope_tui.screens import ConfirmQuit, HelpScreen
from gradscope_tui.widgets.log import LogPane
from gradscope_tui.widgets.rail import NodeRail

from .fake import Call, play, text_of, until


def command(text, *then):
    """Type a command, and wait until everything in `then` stands in the log."""

    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes and app.session.state != "running")
        await pilot.press("colon")
        entry = app.focused
        entry.value = text
        await pilot.press("enter")
        await until(pilot, lambda: app.query_one(LogPane).line_count())
        for expected in then:
            await until(pilot, lambda expected=expected: expected in app.query_one(LogPane).text)

    return play(scenario, size=(120, 40))


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("step", Call("step", (1,))),
        ("n 3", Call("step", (3,))),
        ("into", Call("into")),
        ("finish", Call("out")),
        ("c", Call("cont")),
        ("until 4", Call("run_to", (4,))),
        ("nb", Call("next_backward")),
        ("abort", Call("abort")),
    ],
)
def test_verbs_that_let_the_program_go_on(text, call):
    assert call in command(text).calls


@pytest.mark.parametrize(
    ("text", "call", "answer"),
    [
        ("set 0 grad * 2", Call("set_grad", (0, "grad * 2")), "incoming gradient 0 is now grad * 2"),
        ("set 7", Call("set_grad", (0, "7")), "incoming gradient 0 is now 7"),
        ("zero", Call("zero_grad_slot", (0,)), "incoming gradient 0 is now 0"),
        ("scale 0 0.5", Call("scale_grad", (0, 0.5)), "incoming gradient 0 is now itself × 0.5"),
    ],
)
def test_verbs_that_change_a_gradient(text, call, answer):
    assert call in command(text, answer).calls


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("print grad", "[0.25, 0.5]"),
        ("eval 6 * 7", "42"),
        ("print", "node 0 of 13: ReluBackward0  layers.0"),
        ("node 4", "node 4 of 13: AddmmBackward0  layers.1"),
        ("list 3 4", "4  AddmmBackward0"),
        ("list all", "12  ReluBackward0"),
        ("graph", "3  ReluBackward0"),
        ("where", "loss.backward()"),
        ("break op:Mul* if norm > 10", "breakpoint 1: op:Mul* if norm > 10"),
        ("tbreak Addmm", "breakpoint 1: Addmm"),
    ],
)
def test_verbs_that_answer(text, answer):
    command(text, f":{text}", answer)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("dance", "there is no command 'dance'"),
        ("step x", "COUNT is a number, got 'x'"),
        ("delete 9", "there is no breakpoint 9"),
        ("break op:", "names nothing after op"),
        ("set 3 1", "there is no incoming gradient 3"),
        ("print nothing_there", "NameError: name 'nothing_there' is not defined"),
    ],
)
def test_what_cannot_be_done_is_said(text, error):
    command(text, error)


def test_print_moves_the_cursor_to_the_node_it_prints():
    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes)
        await pilot.press("colon", *"node 7", "enter")
        await until(pilot, lambda: app.query_one(NodeRail).cursor == 7)

    play(scenario)


def test_help_and_quit_open_their_screens():
    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes)
        await pilot.press("colon", *"help", "enter")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        await pilot.press("escape", "colon", *"quit", "enter")
        await until(pilot, lambda: isinstance(app.screen, ConfirmQuit))

    play(scenario)


def test_earlier_commands_come_back():
    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes)
        for text in ("print 1", "print 2"):
            await pilot.press("colon", *text, "enter")
            await until(pilot, lambda text=text: f":{text}" in text_of(app))
        await pilot.press("colon", "up", "up")
        assert app.focused.value == "print 1"
        await pilot.press("down")
        assert app.focused.value == "print 2"
        await pilot.press("down")
        assert app.focused.value == ""

    play(scenario)

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from textual import events

from gradscope.inspect.records.records import TensorSpec
from gradscope_tui.panes.graph_pane import GraphPane
from gradscope_tui.panes.log_pane import LogPane
from gradscope_tui.screens.confirm_screen import ConfirmScreen
from gradscope_tui.screens.help_screen import HelpScreen
from gradscope_tui.widgets.prompt_line import Prompt
from tests.tui.fake import Call, FakeSession, chain, play, text_of, type_in, until


async def say(app, pilot, text, *then):
    """Type a command, and wait until everything in `then` stands in the log after it."""
    await until(pilot, lambda: app.session.nodes and app.session.state != "running")
    log = app.query_one(LogPane)
    before = len(log.text)
    await pilot.press("colon")
    await until(pilot, lambda: app.query_one(Prompt).display)
    app.focused.value = text
    await pilot.press("enter")
    await until(pilot, lambda: len(log.text) > before)
    for expected in then:
        await until(pilot, lambda: expected in log.text[before:])  # noqa: B023 - awaited before the next round


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("step", Call("step", (1,))),
        ("n 3", Call("step", (3,))),
        ("into", Call("into")),
        ("finish", Call("out")),
        ("c", Call("cont")),
        ("until 4", Call("until", (4,))),
        ("nb", Call("next_backward")),
        ("abort", Call("abort")),
        ("what-if grad * 2", Call("what_if", (0, "grad * 2"))),
    ],
)
def test_verbs_that_let_the_program_go_on(text, call):
    async def scenario(app, pilot):
        await say(app, pilot, text)

    assert call in play(scenario).calls


def test_verbs_that_change_a_gradient():
    async def scenario(app, pilot):
        for text, call in (
            ("set 0 grad * 2", Call("set_grad", (0, "grad * 2"))),
            ("set 7", Call("set_grad", (0, "7"))),
            ("zero", Call("zero_grad_slot", (0,))),
            ("scale 0 0.5", Call("scale_grad", (0, 0.5))),
        ):
            await say(app, pilot, text, "incoming gradient 0 is now [0.25, ...]")
            assert app.session.calls[-1] == call

    play(scenario, size=(120, 40))


def test_verbs_that_answer():
    async def scenario(app, pilot):
        for text, answer in (
            ("print grad", "[0.25, 0.5]"),
            ("eval 6 * 7", "42"),
            ("print", "node 0 of 13: ReluBackward0  layers.0"),
            ("node 4", "node 4 of 13: AddmmBackward0  layers.1"),
            ("list 3 4", "4  AddmmBackward0"),
            ("list all", "12  ReluBackward0"),
            ("graph", "3  ReluBackward0"),
            ("where", "loss.backward()"),
            ("break op:Mul* if norm > 10", "breakpoint 1: op:Mul* if norm > 10"),
            ("tbreak Addmm", "breakpoint 2: Addmm"),
            ("log Addmm :: norm", "logpoint 3: Addmm :: norm"),
            ("catch nan on", "stops at: violation, exception, nan"),
            ("explain nan", "NaN"),
            ("explain gs101", "GS101"),
        ):
            await say(app, pilot, text, f":{text}", answer)

    play(scenario, size=(120, 40))


def test_what_cannot_be_done_is_said():
    async def scenario(app, pilot):
        for text, error in (
            ("dance", "there is no command 'dance'"),
            ("step x", "COUNT is a number, got 'x'"),
            ("delete 9", "there is no breakpoint 9"),
            ("break op:", "names nothing after op"),
            ("set 3 1", "there is no incoming gradient 3"),
            ("print nothing_there", "NameError: name 'nothing_there' is not defined"),
            ("why", "usage: why TENSOR"),
            ("explain dance", "no code or topic 'dance'"),
        ):
            await say(app, pilot, text, error)

    play(scenario, size=(120, 40))


def test_print_moves_the_cursor_to_the_node_it_prints():
    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes)
        await type_in(pilot, "node 7", "colon")
        await until(pilot, lambda: app.query_one(GraphPane).cursor == 7)

    play(scenario)


def test_help_and_quit_open_their_screens():
    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes)
        await type_in(pilot, "help", "colon")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        await type_in(pilot, "quit", "escape", "colon")
        await until(pilot, lambda: isinstance(app.screen, ConfirmScreen))

    play(scenario)


def test_earlier_commands_come_back():
    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes)
        for text in ("print 1", "print 2"):
            await type_in(pilot, text, "colon")
            await until(pilot, lambda text=text: f":{text}" in text_of(app))
        await pilot.press("colon", "up", "up")
        assert app.focused.value == "print 1"
        await pilot.press("down")
        assert app.focused.value == "print 2"
        await pilot.press("down")
        assert app.focused.value == ""

    play(scenario)


def test_a_command_that_comes_all_at_once_loses_no_letter():
    async def scenario(app, pilot):
        keys = [events.Key("colon", ":"), *(events.Key(c if c != " " else "space", c) for c in "break op:Relu")]
        for key in [*keys, events.Key("enter", "\r")]:
            app.post_message(key)
        await until(pilot, lambda: [point.spec for point in app.session.breakpoints] == ["op:Relu"])

    play(scenario)


def test_a_question_about_a_gradient_names_the_node_and_the_shape():
    nodes = chain()
    nodes[0] = replace(nodes[0], outputs=(TensorSpec((3, 4), "float32", "cpu"),))

    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes and "PAUSED" in text_of(app))
        for key, words in (("e", "set the gradient in to 0 · grad"), ("i", "what if its gradient were 0 · grad")):
            await pilot.press(key)
            await until(pilot, lambda words=words: f"#0 Relu (3,4): {words}" in re.sub(" +", " ", text_of(app)))
            await pilot.press("escape")

    play(scenario, FakeSession(nodes))


def test_skip_leaves_the_node_out():
    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes)
        await pilot.press("x")
        await until(pilot, lambda: "node 0 ReluBackward0 will be left out" in app.query_one(LogPane).text)

    assert Call("skip") in play(scenario).calls


def test_a_line_is_typed_for_the_script():
    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes and app.session.state != "running")
        await pilot.press("greater_than_sign")
        await until(pilot, lambda: "there is no script that reads what is typed here" in text_of(app))
        lines = []
        app.session.types, app.session.type_line = True, lines.append
        for line in ("Ada ", ""):
            await pilot.press("greater_than_sign")
            await until(pilot, lambda: app.query_one(Prompt).display)
            app.focused.value = line
            await pilot.press("enter")
        await until(pilot, lambda: lines == ["Ada ", ""])

    play(scenario)


def test_tab_completes_what_is_typed():
    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes)
        prompt = app.query_one(Prompt)
        await pilot.press("colon", *"reverse-c", "tab")
        await until(pilot, lambda: app.focused.value == "reverse-continue ")
        app.focused.value = "break mod:layers"
        await pilot.press("end", "tab")
        await until(pilot, lambda: prompt.completions)
        assert app.focused.value == "break mod:layers."
        assert "mod:layers.0" in prompt.completions
        await pilot.press("0")
        await until(pilot, lambda: not prompt.completions)
        app.focused.value = "explain inp"
        await pilot.press("end", "tab")
        await until(pilot, lambda: app.focused.value == "explain inplace ")
        await pilot.press("escape")
        await until(pilot, lambda: not prompt.display)

    play(scenario)


def test_tab_goes_to_no_other_pane_while_something_is_typed():
    async def scenario(app, pilot):
        await until(pilot, lambda: app.session.nodes)
        await pilot.press("slash", *"nothing-like-it", "tab", "tab")
        assert app.focused.value == "nothing-like-it"
        assert app.query_one(Prompt).display

    play(scenario)

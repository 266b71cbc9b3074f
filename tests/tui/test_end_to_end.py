"""The terminal UI on the real debugger and a real script."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from gradscope.inspect import Debugger
from gradscope.inspect.adapters import NOT_TOLD
from gradscope_tui.panes.graph_pane import GraphPane
from gradscope_tui.panes.inspector_pane import InspectorPane
from gradscope_tui.panes.log_pane import LogPane
from gradscope_tui.screens.what_if_screen import WhatIfScreen
from tests.quick_cases import quick
from tests.tui.fake import play, text_of, type_in, until

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(
        textwrap.dedent(
            """
            import gradscope as gs

            w = gs.tensor([1.0, 2.0, 3.0], requires_grad=True)
            for step in range(2):
                loss = (w * w).sum()
                loss.backward()
                print("step", step, w.grad.tolist())
            """
        )
    )
    return path


@pytest.fixture
def debugger(script):
    session = Debugger.for_script(str(script))
    yield session
    session.abort()
    session.wait(10)


@pytest.mark.slow
def test_what_ran_free_is_run_again_up_to_the_node_under_the_cursor(debugger):
    async def scenario(app, pilot):
        inspector = app.query_one(InspectorPane)
        await until(pilot, lambda: "PAUSED before #0/3" in text_of(app))
        await pilot.press("c")
        await until(pilot, lambda: "FINISHED" in text_of(app))
        app.query_one(GraphPane).select(1)
        await until(pilot, lambda: "t starts again and stops here" in " ".join(inspector.text.split()))
        await pilot.press("t")
        await until(pilot, lambda: "PAUSED before #1/3 MulBackward0" in text_of(app))
        assert debugger.task_index == 2
        assert debugger.breakpoints == []
        await until(pilot, lambda: " 1.73 " in inspector.text and "not kept" not in inspector.text)

    play(scenario, debugger, size=(140, 40))


def test_a_script_is_stepped_through_edited_and_run_to_its_end(debugger):
    async def scenario(app, pilot):
        graph = app.query_one(GraphPane)
        await until(pilot, lambda: "PAUSED before #0/3 SumBackward0" in text_of(app))
        assert "first node of backward 1" in text_of(app)
        await until(pilot, lambda: "▶   6      loss = (w * w).sum()" in text_of(app))

        await pilot.press("n")
        await until(pilot, lambda: graph.cursor == 1 and "2 Inspector #1 Mul" in text_of(app))
        await until(pilot, lambda: " 1.73 " in app.query_one(InspectorPane).text)
        await until(pilot, lambda: "unchanged since version 0" in app.query_one(InspectorPane).text)

        await type_in(pilot, "grad * 10", "e")
        await until(pilot, lambda: " 17.3 " in app.query_one(InspectorPane).text)
        await pilot.press("s")
        await until(pilot, lambda: "PAUSED after #1/3" in text_of(app))

        await pilot.press("G", "b", "c")
        await until(pilot, lambda: "breakpoint 1 (param:w)" in text_of(app))
        assert graph.node.parameter == "w"
        await pilot.press("c")
        await until(pilot, lambda: "backward 2" in text_of(app) and str(debugger.state) == "paused before")
        await until(pilot, lambda: "step 0 [20.0, 40.0, 60.0]" in app.query_one(LogPane).text)

        await pilot.press("c")
        await until(pilot, lambda: "FINISHED" in text_of(app))
        assert app.query_one(LogPane).text.endswith("step 1 [22.0, 44.0, 66.0]")
        await pilot.press("q")
        await until(pilot, lambda: app._exit)

    play(scenario, debugger)
    assert debugger.conclusion()[0] == 0


@pytest.mark.slow
def test_quitting_in_a_backward_ends_the_script(debugger):
    async def scenario(app, pilot):
        await until(pilot, lambda: "PAUSED" in text_of(app))
        await pilot.press("q", "y")
        await until(pilot, lambda: app._exit)

    play(scenario, debugger)
    assert debugger.wait(10).ended
    assert "was ended before its end; .grad is as it was before backward 1" in debugger.conclusion()[1]


def test_a_script_that_raises_shows_its_traceback(debugger, script):
    script.write_text("import gradscope as gs\nraise ValueError('no data')\n")

    async def scenario(app, pilot):
        await until(pilot, lambda: "FAILED" in text_of(app))
        await until(pilot, lambda: "✗ ValueError: no data" in text_of(app).split("\n")[2])
        await pilot.press("!")
        await until(pilot, lambda: "8 Findings 1" in text_of(app))

    play(scenario, debugger)


def test_a_script_that_stops_before_and_between_its_backwards_shows_where(debugger, script):
    lines = ["import gradscope as gs", "import gradscope.inspect as gi", "x = gs.ones(2, requires_grad=True)"]
    script.write_text("\n".join([*lines, "gi.set_trace()", "x.sum().backward()", "gi.set_trace()"]) + "\n")

    async def scenario(app, pilot):
        await until(pilot, lambda: "PAUSED in no backward" in text_of(app) and "no backward yet" in text_of(app))
        await pilot.press("c")
        await until(pilot, lambda: "no backward here" in text_of(app))
        assert "no backward yet" not in text_of(app)

    play(scenario, debugger)


@pytest.mark.parametrize("size", [(80, 24), (160, 48)], ids=str)
def test_the_digits_example_opens_at_its_first_backward(size):
    session = Debugger.for_script(str(EXAMPLES / "digits_mlp.py"))

    async def scenario(app, pilot):
        await until(pilot, lambda: "NllLossBackward0" in text_of(app) and "PAUSED before #0/13" in text_of(app), 60)
        await until(pilot, lambda: "3 Source digits_mlp.py:" in text_of(app))
        await pilot.press("n", "n")
        await until(pilot, lambda: "AddmmBackward0" in text_of(app))

    try:
        play(scenario, session, size=size)
    finally:
        session.abort()
        session.wait(10)


def test_the_command_draws_on_a_terminal_keeps_it_clean_and_gives_it_back(script, tmp_path):
    """In a terminal of 80x24, raw writes of the script stay off the screen, and quitting restores it."""
    script.write_text("import os\nos.write(1, b'stain')\n" + script.read_text())
    with _on_a_terminal("debug", script, state=tmp_path) as (process, ours):
        screen = _read_until(ours, b"PAUSED before")
        os.write(ours, b"q")
        screen += _read_until(ours, b"Quit?")
        os.write(ours, b"y")
        screen += _read_until(ours, b"was ended before its end")
        assert process.wait(30) == 0
    assert screen.index(b"\x1b[?1049h") < screen.index(b"PAUSED before") < screen.index(b"\x1b[?1049l")
    assert b"stain" not in screen.partition(b"\x1b[?1049l")[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", quick(["SIGTERM", "SIGHUP", "SIGINT"], {"SIGTERM"}))
def test_a_signal_ends_the_script_and_gives_the_terminal_back(script, tmp_path, name):
    """Though the script has asked for the default action, which would leave the screen as it is."""
    number = getattr(signal, name)
    default = "import signal\nsignal.signal(signal.SIGTERM, signal.getsignal(signal.SIGTERM))\n"
    script.write_text(default + "assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL\n" + script.read_text())
    with _on_a_terminal("debug", script, state=tmp_path) as (process, ours):
        _read_until(ours, b"PAUSED before")
        process.send_signal(number)
        screen = _read_until(ours, b"was ended before its end")
        assert process.wait(30) == 128 + number
    assert {b"\x1b[?1000l", b"\x1b[?1049l"} <= set(re.findall(rb"\x1b\[\?\d+l", screen))
    assert b".grad is as it was before backward 1" in screen


@pytest.mark.slow
def test_a_terminal_under_nohup_stays_when_its_line_is_lost(script, tmp_path):
    with _on_a_terminal("debug", script, state=tmp_path, hangups=signal.SIG_IGN) as (process, ours):
        _read_until(ours, b"PAUSED before")
        process.send_signal(signal.SIGHUP)
        os.write(ours, b"n")
        _read_until(ours, b"next node")
        process.send_signal(signal.SIGTERM)
        _read_until(ours, b"was ended before its end")  # whoever does not read lets it wait at a full terminal
        assert process.wait(30) == 128 + signal.SIGTERM


@pytest.mark.slow
def test_a_terminal_that_is_closed_ends_the_script(script, tmp_path):
    pty = pytest.importorskip("pty")
    pid, ours = pty.fork()
    if not pid:
        os.environ.update(TERM="xterm-256color", XDG_STATE_HOME=str(tmp_path))
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        os.execv(sys.executable, [sys.executable, "-m", "gradscope", "debug", str(script)])
    _read_until(ours, b"PAUSED before")
    os.close(ours)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 128 + signal.SIGHUP


@pytest.mark.slow
def test_view_opens_a_recording_on_a_terminal_and_prints_it_without_one(script, tmp_path):
    file = str(tmp_path / "run.gscope")
    gradscope = [sys.executable, "-m", "gradscope"]
    subprocess.run([*gradscope, "record", "-o", file, str(script)], check=True, capture_output=True)
    printed = subprocess.run(
        [*gradscope, "view", file], check=True, capture_output=True, text=True, stdin=subprocess.PIPE
    )
    assert "2 iterations, 2 backwards, 6 nodes" in printed.stdout
    with _on_a_terminal("view", file, state=tmp_path) as (process, ours):
        _read_until(ours, b"REPLAYING")
        os.write(ours, b"]")
        _read_until(ours, b"backward 2")
        os.write(ours, b"q")
        _read_until(ours, b"\x1b[?1049l")
        assert process.wait(30) == 0


def test_backwards_that_ran_free_are_counted(debugger, script):
    script.write_text(script.read_text().replace("range(2)", "range(40)"))

    async def scenario(app, pilot):
        await until(pilot, lambda: "PAUSED before #0/3" in text_of(app))
        await type_in(pilot, "break iter:30", ":")
        await until(pilot, lambda: debugger.breakpoints)
        await pilot.press("c")
        await until(
            pilot, lambda: " backward 30 " in text_of(app).split("\n")[0] and "PAUSED before #0/3" in text_of(app)
        )
        await type_in(pilot, "delete 1", ":")
        await until(pilot, lambda: not debugger.breakpoints)
        await pilot.press("c")
        await until(pilot, lambda: "FINISHED" in text_of(app))
        assert " 40 backwards" in text_of(app).split("\n")[0]
        assert "the last stop" not in text_of(app)  # the norms of the last backward are kept

    play(scenario, debugger, size=(120, 30))


def test_the_past_is_looked_at_and_asked_what_if(debugger):
    async def scenario(app, pilot):
        await until(pilot, lambda: "PAUSED before #0/3" in text_of(app))
        await pilot.press("n", "n")
        await until(pilot, lambda: "PAUSED before #2/3" in text_of(app))
        await pilot.press("N")
        await until(pilot, lambda: "◁ REPLAYING #1/3 MulBackward0" in text_of(app))
        await until(pilot, lambda: " 1.73 " in app.query_one(InspectorPane).text)
        await type_in(pilot, "grad * 2", "i")
        await until(pilot, lambda: isinstance(app.screen, WhatIfScreen) and "100.0%" in text_of(app))
        await pilot.press("escape", "L")
        await until(pilot, lambda: "PAUSED before #2/3" in text_of(app))
        await type_in(pilot, "w.grad", "w")
        await until(pilot, lambda: "w.grad = None" in text_of(app))
        await pilot.press("n")
        await until(pilot, lambda: "≠ 1 w.grad = tensor([2., 4., 6.]" in text_of(app))
        await pilot.press("R", "y")
        await until(pilot, lambda: "PAUSED before #0/3" in text_of(app) and debugger.task_index == 1)

    play(scenario, debugger, size=(100, 30))


def test_a_what_if_names_the_hooks_that_it_left_out(debugger, script):
    script.write_text(
        "import gradscope as gs\n"
        "def clip(grad):\n"
        "    return grad.clamp(-1, 1)\n"
        "w = gs.ones(3, requires_grad=True)\n"
        "w.register_hook(clip)\n"
        "w.exp().sum().backward()\n"
    )

    async def scenario(app, pilot):
        await until(pilot, lambda: "PAUSED before #0/3" in text_of(app))
        await type_in(pilot, "grad * 2", "i")
        await until(pilot, lambda: isinstance(app.screen, WhatIfScreen))
        await until(pilot, lambda: "Without the hook clip (train.py:2) of node 2 AccumulateGrad w" in text_of(app))

    play(scenario, debugger, size=(100, 30))


def test_a_nan_is_explained_where_it_appears(debugger, script):
    script.write_text(
        "import gradscope as gs\nx = gs.tensor([0.0, 4.0], requires_grad=True)\n"
        "gs.where(x > 0, x.sqrt(), 0 * x).sum().backward()\n"
    )

    async def scenario(app, pilot):
        await until(pilot, lambda: "PAUSED" in text_of(app))
        await type_in(pilot, "catch nan", ":")
        await until(pilot, lambda: debugger.catching["nan"])
        await pilot.press("c")
        await until(pilot, lambda: "the derivative of sqrt is infinite at 0" in text_of(app))
        assert app.query_one(LogPane).text.count("‖ SqrtBackward0 produced a NaN") == 1
        assert "infinite at 0" not in app.query_one(LogPane).text
        await type_in(pilot, "why x", ":")
        await until(pilot, lambda: "`x`" in app.query_one(LogPane).text or "x " in app.query_one(LogPane).text)
        await type_in(pilot, "explain inplace", ":")
        await until(pilot, lambda: "gradscope check SCRIPT" in app.query_one(LogPane).text)

    play(scenario, debugger, size=(160, 48))


def test_a_violation_names_the_line_that_wrote(debugger, script):
    script.write_text(
        "import gradscope as gs\nx = gs.ones(3, requires_grad=True)\ny = x.exp()\ny += 1\ny.sum().backward()\n"
    )

    async def scenario(app, pilot):
        await until(pilot, lambda: "PAUSED" in text_of(app))
        await pilot.press("c")
        await until(pilot, lambda: "`result`, which Exp had saved, was written by add_  train.py:4" in text_of(app))
        await until(pilot, lambda: "›   4  y += 1" in text_of(app))
        await pilot.press("!")
        await until(pilot, lambda: "`result` was written by add_ at" in text_of(app))

    play(scenario, debugger)


@pytest.mark.torch
def test_a_pytorch_program_is_stepped_through_back_and_asked_what_if(debugger, script):
    torch = pytest.importorskip("torch")
    if not hasattr(torch._C._functions.AccumulateGrad, "_input_metadata"):
        pytest.skip(NOT_TOLD.partition("\n")[0])
    script.write_text(
        "import torch\nmodel = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))\n"
        "loss = model(torch.ones(4, 2)).sum()\nloss.backward()\n"
    )

    async def scenario(app, pilot):
        graph = app.query_one(GraphPane)
        await until(pilot, lambda: "PAUSED before #0/" in text_of(app), 60)
        await pilot.press("n", "n", "N")
        await until(pilot, lambda: "◁ REPLAYING #1/" in text_of(app))
        await type_in(pilot, "grad * 0", "L", "i")
        await until(pilot, lambda: isinstance(app.screen, WhatIfScreen) and "0.weight" in text_of(app))
        await type_in(pilot, "param:*", "escape", "slash")
        await until(pilot, lambda: graph.filtered and len(graph.found) == 4)

    play(scenario, debugger, size=(120, 40))


@contextlib.contextmanager
def _on_a_terminal(*arguments, state, hangups=signal.SIG_DFL):
    """Run the command on a terminal of 80x24, which must be as it was at the end; yield the process and our side.

    What becomes of SIGHUP is inherited, so it is said here: the tests themselves may run under nohup.
    """
    pty, termios = pytest.importorskip("pty"), pytest.importorskip("termios")
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    before = termios.tcgetattr(theirs)
    command = [sys.executable, "-m", "gradscope", *map(str, arguments)]
    environment = {**os.environ, "TERM": "xterm-256color", "XDG_STATE_HOME": str(state)}
    process = subprocess.Popen(
        command,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, hangups),
    )
    try:
        yield process, ours
        assert termios.tcgetattr(theirs) == before
    finally:
        process.kill()
        process.wait()
        os.close(theirs)
        os.close(ours)


def _read_until(descriptor, expected, seconds=60):
    got = b""
    end = time.monotonic() + seconds
    while expected not in got:
        ready, _, _ = select.select([descriptor], [], [], max(0, end - time.monotonic()))
        assert ready, f"{expected!r} did not come in {seconds} s; the terminal has got ... {got[-2000:]!r}"
        got += os.read(descriptor, 65536)
    return got

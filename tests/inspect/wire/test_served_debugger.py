from __future__ import annotations

import threading

import pytest

import gradscope as gs
import gradscope.inspect as gi
from gradscope.inspect import SessionError, SessionState
from gradscope.inspect.debuggee.main_thread import MainThreadProgram
from gradscope.inspect.debuggee.script_targets import find_target
from gradscope.inspect.wire import served_debugger
from gradscope.inspect.wire.served_debugger import RunningProgramDebugger, ScriptDebugger

from .programs import SCRIPT


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return ScriptDebugger(MainThreadProgram(find_target(str(path)), []))


def test_breakpoints_stop_it_only_while_somebody_looks(script, capsys):
    script.attached()
    script.add_breakpoint("*")
    script.detach()
    script.run_free()
    assert (script.state, script.exit_status, script.task_count) == (SessionState.FINISHED, 0, 2)
    assert capsys.readouterr().out == "epoch 0\nepoch 1\n"
    script.attached()
    assert [point.hits for point in script.breakpoints] == [0]
    with pytest.raises(SessionError, match="a process runs its script once"):
        script.restart()


def test_a_script_that_is_never_started_ends(script, capsys):
    script.attached()
    script.abort()
    script.run_script()
    assert script.state is SessionState.FINISHED
    assert capsys.readouterr().out == ""


def test_set_trace_waits_for_a_front_and_says_so(capsys):
    debugger = RunningProgramDebugger("train.py")
    debugger.listen()
    front = threading.Thread(target=lambda: (debugger.wait(timeout=60), debugger.cont()))
    front.start()
    x = gs.ones(2, requires_grad=True)
    x.register_hook(lambda grad: gi.set_trace())
    (x * 3).sum().backward()
    front.join()
    debugger.close()
    assert x.grad.tolist() == [3, 3]
    assert "gradscope: stopped: set_trace() at " in capsys.readouterr().err
    debugger.program_ends()
    assert debugger.ended
    with pytest.raises(SessionError, match="not started by the debugger"):
        debugger.restart()


@pytest.mark.timeout(60)
def test_a_front_that_comes_and_leaves_as_soon_as_it_is_told_lets_it_go_on(monkeypatch):
    debugger = RunningProgramDebugger("train.py")
    debugger.listen()
    told = []

    def come_and_leave(text, file):
        told.append(text)
        debugger.attached()
        debugger.detach()

    monkeypatch.setattr(served_debugger, "say", come_and_leave)
    x = gs.ones(2, requires_grad=True)
    x.register_hook(lambda grad: gi.set_trace())
    (x * 3).sum().backward()
    debugger.close()
    assert len(told) == 1
    assert x.grad.tolist() == [3, 3]

"""A program in a terminal of the editor's, which is a process without one here."""

from __future__ import annotations

import os
import signal
import socket
import subprocess

import pytest

from gradscope.inspect import SessionState
from gradscope.inspect.dap import editor_terminal
from gradscope.inspect.dap.editor_terminal import TerminalProcess
from gradscope.inspect.wire.channel import ChannelError

pytestmark = pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="needs Unix sockets")

BACKWARD = "import gradscope as gs\n(gs.ones(3, requires_grad=True) * 2).sum().backward()\n"


@pytest.fixture
def opened():
    """The processes that have been started."""
    processes = []
    yield processes
    for process in processes:
        process.kill()
        process.wait()


@pytest.fixture
def start(tmp_path, opened):
    def started(source):
        path = tmp_path / "script.py"
        path.write_text(source)

        def open_terminal(asked):
            environment = {**os.environ, **asked["env"]}
            opened.append(subprocess.Popen(asked["args"], cwd=asked["cwd"], env=environment))

        return TerminalProcess(open_terminal, [str(path)], "integrated", {})

    return started


def test_it_is_debugged_and_comes_to_its_end(start, opened):
    process = start(BACKWARD + "raise SystemExit(3)\n")
    debugger = process.debugger
    assert (debugger.pid, debugger.owned) == (opened[0].pid, True)
    debugger.start()
    assert debugger.wait(60) is SessionState.PAUSED_BEFORE
    debugger.cont()
    assert debugger.wait_for_end(60)
    assert debugger.exit_status == 3
    process.end()
    assert opened[0].wait(60) == 3


@pytest.mark.slow
def test_one_that_does_not_end_is_ended(start, opened):
    process = start("import threading\nthreading.Event().wait()\n")
    process.debugger.cont()
    process.end()
    assert opened[0].wait(60) in (-signal.SIGTERM, 0, 1, 130)


@pytest.mark.slow
def test_it_is_started_again_in_another_terminal(start, opened):
    process = start(BACKWARD)
    process.debugger.start()
    process.debugger.wait(60)
    process.debugger.restart()
    assert process.debugger.wait(60) is SessionState.PAUSED_BEFORE
    assert [process.debugger.pid == one.pid for one in opened] == [False, True]
    process.end()
    assert [one.wait(60) is not None for one in opened] == [True, True]


def test_a_terminal_in_which_nothing_starts_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(editor_terminal, "_STARTING", 0.1)
    with pytest.raises(ChannelError, match="has not connected; what the terminal shows says why"):
        TerminalProcess(lambda asked: None, ["script.py"], "external", {})

from __future__ import annotations

import errno
import os
import signal
import threading
import time

import pytest

from gradscope.inspect import SessionError, SessionState
from gradscope.inspect.wire import program_process
from gradscope.inspect.wire.channel import ChannelError
from gradscope.inspect.wire.handshake import PATIENCE
from gradscope.inspect.wire.messages import Logged
from gradscope.inspect.wire.program_process import ProgramProcess, exit_text
from tests.quick_cases import quick

from .programs import SCRIPT

START = "import os, signal, sys, ctypes\nimport gradscope as gs\nx = gs.ones(2, requires_grad=True)\n"
BACKWARD = "(x * 2).sum().backward()\n"

needs_process_table = pytest.mark.skipif(
    not os.path.exists("/proc/self/stat"), reason="the system does not tell what is stopped"
)

DEATHS = {
    "its end": ("", 0, "finished (exit status 0)"),
    "sys.exit": ("sys.exit(3)", 3, "finished (exit status 3)"),
    "an exception": ("1 / 0", 1, "raised ZeroDivisionError (exit status 1)"),
    "os._exit": ("os._exit(4)", 4, "has ended (exit status 4)"),
    "abort": ("os.abort()", 134, "was killed by SIGABRT"),
    "a segmentation fault": ("ctypes.string_at(0)", 139, "was killed by SIGSEGV"),
    "SIGKILL": ("os.kill(os.getpid(), 9)", 137, "was killed by SIGKILL"),
    "SIGTERM": ("os.kill(os.getpid(), 15)", 143, "was killed by SIGTERM"),
    "SIGINT": ("os.kill(os.getpid(), 2)", 130, "raised KeyboardInterrupt (exit status 130)"),
    "exec": ("os.execv(sys.executable, [sys.executable, '-c', 'raise SystemExit(5)'])", 5, "has ended (exit status 5)"),
    "its descriptors are closed": ("os.closerange(3, 4096)", 0, "has ended (exit status 0)"),
    "an exit handler that dies": ("import atexit; atexit.register(os.abort)", 134, "was killed by SIGABRT at its exit"),
}


@pytest.fixture
def run(tmp_path):
    """Start scripts."""
    started = []

    def start(source, **options):
        path = tmp_path / "script.py"
        path.write_text(source)
        process = ProgramProcess([str(path)], **{"terminal": False, **options})
        started.append(process)
        process.said = []
        process.debugger.echo_to(lambda text, stream="stdout": process.said.append(text))
        return process

    yield start
    for process in started:
        if process.status is None:
            process.debugger.abort()
            process.end()


ANSWERED = ("its end", "sys.exit", "an exception", "SIGINT", "an exit handler that dies")
"""Ends that are none where the front evaluates them: what an expression raises is its answer."""


USUAL = {("an exception", False), ("SIGKILL", False), ("os._exit", True)}


@pytest.mark.parametrize(
    ("name", "paused"),
    quick([*((name, False) for name in DEATHS), *((name, True) for name in DEATHS if name not in ANSWERED)], USUAL),
)
def test_how_it_ends_is_told(run, name, paused):
    last, status, said = DEATHS[name]
    process = run(START + (BACKWARD + last if not paused else f"def die(g):\n    {last or 'pass'}\n" + BACKWARD))
    debugger = process.debugger
    if paused:  # it dies by an expression of the front's
        debugger.start()
        assert debugger.wait(30).paused
        with pytest.raises(SessionError):
            debugger.execute(last)
    else:
        debugger.cont()
    assert debugger.wait(30).ended
    process.wait_unseen()  # on a busy machine one that has closed its descriptors is not waited for before
    found, text = process.conclude()
    assert (found, text.endswith(said)) == (status, True), text


@needs_process_table
def test_one_that_becomes_another_program_is_waited_for(run, tmp_path, monkeypatch):
    monkeypatch.setattr(program_process, "_LEAVE", 0.1)
    waits = (
        f"import os, time\nwhile not os.path.exists({str(tmp_path / 'go')!r}): time.sleep(0.01)\nraise SystemExit(5)"
    )
    process = run(START + BACKWARD + f"os.execv(sys.executable, [sys.executable, '-c', {waits!r}])")
    process.debugger.cont()
    assert process.debugger.wait(30).ended
    said = str(process.debugger.reason)
    assert said.startswith(f"{process.debugger.title} has become another program, ")
    assert said.endswith(", and runs on, unseen")
    assert process.status is None
    (tmp_path / "go").touch()
    process.wait_unseen()
    status, text = process.conclude()
    assert (status, text.endswith(", and has ended (exit status 5)")) == (5, True)


@pytest.mark.slow
def test_a_front_that_takes_long_to_load_is_waited_for(tmp_path):
    """A screen loads its libraries after the program has been started: from a cold disk, or beside much other work."""
    path = tmp_path / "script.py"
    path.write_text(START + BACKWARD)
    process = ProgramProcess([str(path)], terminal=False)
    time.sleep(PATIENCE + 1)
    process.debugger.start()
    assert process.debugger.wait(30).paused
    process.debugger.abort()
    process.end()


def test_a_front_that_dies_while_it_loads_leaves_no_process(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(START + BACKWARD)
    process = ProgramProcess([str(path)], terminal=False)
    process._channel.close()
    assert process._process.wait(60) == 0
    with pytest.raises(ChannelError):
        _ = process.debugger


def test_the_script_is_the_main_program(run):
    process = run(
        "import sys, signal, threading\nimport gradscope as gs\n"
        "print(__name__, threading.current_thread() is threading.main_thread())\n"
        "print(sys.stdin.isatty(), sys.stdout.isatty())\n"
        "signal.signal(signal.SIGALRM, lambda *_: print('alarm'))\nsignal.raise_signal(signal.SIGALRM)\n"
        "print(input('name? '))\n",
        terminal=True,
    )
    process.debugger.cont()
    process.debugger.type_line("Ada")
    assert process.debugger.wait(30) is SessionState.FINISHED
    status, _ = process.conclude()
    assert status == 1  # it never called backward()
    assert "".join(process.said).replace("Ada\n", "") == "__main__ True\nTrue True\nalarm\nname? "


def test_without_a_pseudo_terminal_it_has_pipes(run, monkeypatch, capsys):
    def none_left():
        raise OSError(errno.ENOENT, "out of pty devices")

    monkeypatch.setattr(os, "openpty", none_left)
    process = run("print(input())\n", terminal=True)
    process.debugger.cont()
    assert process.debugger.wait(30) is SessionState.FAILED
    assert not process.has_terminal
    assert "EOFError" in "".join(process.said)
    assert process.conclude()[0] == 1
    said = "gradscope: no pseudo-terminal (out of pty devices): the program has pipes, and nothing to read from\n"
    assert capsys.readouterr().err == said


@pytest.mark.slow
def test_it_is_started_again_in_a_new_process(run):
    process = run(SCRIPT)
    debugger = process.debugger
    debugger.add_breakpoint("op:Tanh")
    debugger.add_watch("norm")
    debugger.catch("exception", False)
    debugger.set_limit("recurrent_calls=123456789")
    debugger.catch("nan", False)
    debugger.cont()
    debugger.wait(30)
    first = debugger.pid
    debugger.restart()
    assert debugger.wait(30).paused
    assert debugger.pid != first
    assert [str(point) for point in debugger.breakpoints] == ["op:Tanh"]
    assert [watch.expression for watch in debugger.watches] == ["norm"]
    assert debugger.catching == {"violation": True, "exception": False, "nan": False, "inf": True}
    assert debugger.limits["recurrent_calls"] == 123456789
    assert debugger.reason.text == "first node of backward 1"


@pytest.mark.parametrize("seen", [True, False], ids=["seen", "never seen"])
def test_nodes_can_be_read_when_the_program_has_gone(run, seen):
    process = run(SCRIPT)
    debugger = process.debugger
    debugger.start()
    debugger.wait(30)
    before = [node.name for node in debugger.nodes] if seen else ["(gone)"] * len(debugger.nodes)
    process.end()
    assert len(before) > 0
    assert [node.name for node in debugger.nodes] == before


def test_output_is_there_before_the_stop_is_told(run):
    process = run(SCRIPT)
    debugger = process.debugger
    debugger.start()
    debugger.wait(30)
    assert process.said == []
    debugger.next_backward()
    debugger.wait(30)
    assert "".join(process.said) == "epoch 0\n"
    assert debugger.output == ["epoch 0"]


def test_what_is_written_to_two_pipes_keeps_its_order(run):
    process = run(
        "import sys\nfor number in range(50):\n    print('out', number, flush=True)\n"
        "    print('err', number, file=sys.stderr)\n"
    )
    process.debugger.cont()
    assert process.debugger.wait(30).ended
    process.conclude()
    assert "".join(process.said) == "".join(f"out {number}\nerr {number}\n" for number in range(50))


def test_lines_come_while_the_program_runs_where_somebody_reads_along(run, tmp_path, monkeypatch):
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    go = tmp_path / "go"
    process = run(
        f"import os, time\nprint('ready')\nwhile not os.path.exists({str(go)!r}): time.sleep(0.01)\n",
        line_buffered=True,
    )
    heard = threading.Event()
    process.debugger.echo_to(lambda text, stream="stdout": heard.set())
    process.debugger.cont()
    assert heard.wait(60)
    go.touch()
    assert process.debugger.wait(30).ended
    assert "".join(process.said) == "ready\n"


@pytest.mark.slow
def test_a_script_that_does_not_end_is_ended(run):
    endless = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('set', flush=True)\nwhile True:\n    pass\n"
    process = run(START + BACKWARD + endless)
    process.debugger.cont()
    while "set\n" not in "".join(process.said):
        time.sleep(0.01)
    assert process.end() == -9


@pytest.mark.parametrize("terminal", [False, True], ids=["pipes", "terminal"])
def test_what_keeps_it_from_starting_is_said(tmp_path, terminal):
    path = tmp_path / "missing.py"
    with pytest.raises(ChannelError) as caught:
        _ = ProgramProcess([str(path)], terminal=terminal).debugger
    assert str(caught.value) == f"gradscope.debuggee: there is no script {str(path)!r}"


@pytest.fixture
def stopping(tmp_path):
    """A program that stops itself again and again, when it has done so for the first time."""
    path = tmp_path / "script.py"
    path.write_text("import os, signal\nwhile True: os.kill(os.getpid(), signal.SIGSTOP)\n")
    process = ProgramProcess([str(path)], terminal=False)
    process.debugger.start()
    os.waitid(os.P_PID, process.debugger.pid, os.WSTOPPED | os.WNOWAIT)
    yield process
    process.end()


@needs_process_table
def test_a_program_that_a_signal_holds_is_not_waited_for(stopping):
    debugger = stopping.debugger
    for _ in range(3):
        with pytest.raises(SessionError, match=rf"stopped by a signal; `kill -CONT {debugger.pid}` lets it go on"):
            debugger.evaluate_text("1 + 1")
    assert len(debugger.log) == 1  # it may have been noticed, and said, before anybody asked
    assert debugger.whereabouts() == f"stopped by a signal; `kill -CONT {debugger.pid}` lets it go on"


def held(debugger):
    """Stop a program by a signal."""
    os.kill(debugger.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, debugger.pid, os.WSTOPPED | os.WNOWAIT)


@needs_process_table
def test_a_step_of_a_program_that_a_signal_holds_is_taken_when_it_goes_on(run):
    debugger = run(SCRIPT).debugger
    debugger.start()
    assert debugger.wait(30).paused
    held(debugger)
    debugger.step()
    assert debugger.wait(0.01) is SessionState.RUNNING
    assert debugger.log == [f"{debugger.title} has been stopped by a signal; `kill -CONT {debugger.pid}` lets it go on"]
    os.kill(debugger.pid, signal.SIGCONT)
    assert debugger.wait(30).paused
    assert debugger.current == 1
    held(debugger)
    with pytest.raises(SessionError):
        debugger.evaluate_text("1 + 1")
    debugger.step()
    os.kill(debugger.pid, signal.SIGCONT)
    assert debugger.wait(30).paused
    assert (debugger.current, len(debugger.log)) == (2, 2)


@needs_process_table
def test_whoever_waits_for_a_program_is_told_that_a_signal_holds_it(run):
    process = run("while True: pass\n")
    debugger = process.debugger
    debugger.cont()
    assert debugger.state is SessionState.RUNNING
    held(debugger)
    assert debugger.wait(0.01) is SessionState.RUNNING
    assert debugger.log == [f"{debugger.title} has been stopped by a signal; `kill -CONT {debugger.pid}` lets it go on"]


@needs_process_table
def test_a_message_from_before_the_signal_does_not_have_it_told_twice(run):
    debugger = run("while True: pass\n").debugger
    debugger.cont()
    held(debugger)
    debugger.wait(0.01)
    debugger._take(Logged(("sent before the signal came, and read after it",)))
    debugger.wait(0.01)
    assert sum("has been stopped by a signal" in line for line in debugger.log) == 1


@needs_process_table
def test_a_program_that_stops_itself_for_ever_is_killed(stopping):
    stopping.debugger.abort()
    os.waitid(os.P_PID, stopping.debugger.pid, os.WSTOPPED | os.WNOWAIT)
    status, text = stopping.conclude()
    assert (status, text.rpartition("script.py ")[2]) == (137, "had been stopped by a signal, and has been killed")


@pytest.mark.slow
@needs_process_table
def test_a_program_that_a_signal_holds_goes_on_to_its_end(tmp_path):
    path = tmp_path / "script.py"
    path.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)\nwhile True: pass\n")
    process = ProgramProcess([str(path)], terminal=False)
    process.debugger.start()
    os.waitid(os.P_PID, process.debugger.pid, os.WSTOPPED | os.WNOWAIT)
    process.debugger.abort()
    process.debugger.wait(30)
    assert "script.py was ended before its end" in process.conclude()[1]


@pytest.mark.parametrize(("status", "text"), [(0, "has ended (exit status 0)"), (-9, "was killed by SIGKILL")])
def test_an_exit_status_in_words(status, text):
    assert exit_text(status) == text


def test_one_that_is_being_started_again_is_not_waited_for(run, monkeypatch):
    process = run(START + BACKWARD)
    debugger = process.debugger
    debugger.start()
    assert debugger.wait(30).paused
    debugger.cont()
    debugger.wait_for_end(30)
    begun, introduced = threading.Event(), program_process.introduced

    def waiting(*arguments, **options):
        begun.set()
        return introduced(*arguments, **options)

    monkeypatch.setattr(program_process, "introduced", waiting)
    failures = []

    def restart():
        try:
            debugger.restart()
        except (ChannelError, SessionError) as error:
            failures.append(error)

    restarting = threading.Thread(target=restart)
    restarting.start()
    assert begun.wait(30)
    status, text = process.conclude()
    restarting.join(30)
    assert (status, len(failures)) == (0, 1)
    assert text.endswith("script.py finished (exit status 0)")
    assert process.status is not None

"""What a session runs: how it ends, and what is told of that."""

import gc
import sys
import threading
import time
from types import TracebackType

import pytest

from gradscope.inspect.debuggee.pause_gate import ProgramAborted
from gradscope.inspect.debuggee.program import CallProgram, exit_status_of, own_traceback, print_uncaught


def run(function):
    written = []
    program = CallProgram(function)
    program.run(lambda text, stream="stdout": written.append((stream, text)))
    return program, written


def fail():
    raise ValueError("oh")


def aborted():
    raise ProgramAborted


@pytest.mark.parametrize(("function", "status", "kind"), [(int, 0, None), (aborted, 0, None), (fail, 1, ValueError)])
def test_how_a_call_ends(function, status, kind):
    program, written = run(function)
    assert program.exit_status == status
    assert kind is None or type(program.error) is kind
    assert [stream for stream, _ in written] == ["stderr"] * (kind is not None)


@pytest.mark.parametrize(
    ("code", "status", "said"), [(None, 0, []), (3, 3, []), (-1, 255, []), ("no data", 1, [("stderr", "no data\n")])]
)
def test_a_call_that_exits_has_the_exit_status_of_a_script(code, status, said):
    program, written = run(lambda: sys.exit(code))
    assert (program.exit_status, program.error, program.traceback, written) == (status, None, "", said)


def test_an_exit_without_stderr_says_nothing_elsewhere(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stderr", None)
    assert exit_status_of(SystemExit("no data")) == 1
    assert capsys.readouterr().out == ""


def test_the_traceback_has_no_frames_of_the_debugger():
    program, written = run(fail)
    assert program.traceback == written[0][1]
    assert "gradscope/inspect" not in program.traceback.replace("tests/inspect", "")
    assert program.traceback.startswith("Traceback (most recent call last):\n")
    assert program.traceback.endswith('    raise ValueError("oh")\nValueError: oh\n')


def test_an_abort_that_arrives_in_a_callback_of_the_collector_is_not_reported_and_comes_again(monkeypatch):
    inside, unraisable = threading.Event(), []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)

    def slow(phase, info):
        inside.set()
        until = time.monotonic() + 60
        while time.monotonic() < until:
            pass

    def function():
        gc.callbacks.append(slow)
        try:
            gc.collect()
        finally:
            gc.callbacks.remove(slow)
        while True:
            time.sleep(0.01)

    program = CallProgram(function)
    thread = threading.Thread(target=program.run, args=(print,))
    thread.start()
    assert inside.wait(60)
    program.end()
    thread.join(10)
    assert not thread.is_alive()
    assert program.error is None
    assert not unraisable


def test_a_running_call_can_be_found_and_ended():
    started = threading.Event()

    def forever():
        started.set()
        for _ in range(10**10):
            pass

    program = CallProgram(forever)
    assert program.whereabouts() == ""
    thread = threading.Thread(target=program.run, args=(print,))
    thread.start()
    started.wait(60)
    time.sleep(0.01)
    assert program.whereabouts().startswith(__file__ + ":")
    program.end()
    thread.join(10)
    assert (program.exit_status, program.error, program.whereabouts()) == (0, None, "")


def test_an_uncaught_error_goes_to_the_programs_own_hook(monkeypatch, capsys):
    hooked = []
    monkeypatch.setattr(sys, "excepthook", lambda kind, error, trace: hooked.append((kind, error)))
    error = ValueError("oh")
    assert print_uncaught(error) == own_traceback(error) == "ValueError: oh\n"
    assert hooked == [(ValueError, error)]
    assert capsys.readouterr().err == ""


def test_a_hook_that_calls_pythons_own_prints_the_programs_frames_alone(monkeypatch, capsys):
    """So does that of torch.distributed, which says which rank it is: what is printed is what the error has."""
    program, _ = run(fail)
    error = program.error
    whole = error.__traceback__
    monkeypatch.setattr(sys, "excepthook", lambda *raised: sys.__excepthook__(*raised))
    assert print_uncaught(error) == capsys.readouterr().err
    assert error.__traceback__ is whole


@pytest.mark.parametrize("stream", [None, object()])
def test_an_uncaught_error_without_a_stderr_is_kept(monkeypatch, stream):
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    monkeypatch.setattr(sys, "stderr", stream)
    assert print_uncaught(ValueError("oh")) == "ValueError: oh\n"


def test_the_traceback_of_a_signal_at_an_instruction_without_a_line_is_told():
    frame = sys._getframe()
    without = next(first for first, _, line in frame.f_code.co_lines() if line is None)
    step = TracebackType(None, frame, without, -1)
    assert step.tb_lineno is None
    assert own_traceback(KeyboardInterrupt().with_traceback(step)).endswith("\nKeyboardInterrupt\n")
    with pytest.raises(ValueError, match="oh"):  # the end of a block has instructions without a line
        fail()


def test_a_traceback_leaves_an_error_and_its_causes_as_they_are():
    program, _ = run(fail)
    cause = program.error
    whole = cause.__traceback__
    raised = RuntimeError("in a group")
    raised.__cause__ = ExceptionGroup("two", [cause, KeyError("k")])
    text = own_traceback(raised)
    assert "in fail\n" in text
    assert "in run\n" not in text
    assert cause.__traceback__ is whole
    assert whole.tb_frame.f_code.co_name == "run"

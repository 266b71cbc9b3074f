"""Signals of a program that is on another thread than the process's main one."""

import os
import signal
import subprocess
import sys
import threading
import time
from textwrap import dedent

import pytest

from gradscope.inspect.debuggee.pause_gate import Gate
from gradscope.inspect.debuggee.program_thread import Interrupter, ProgramThread
from gradscope.inspect.debuggee.signals import SignalHandlers

pytestmark = pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="this system has no signals for threads")


class Program:
    """A function on a program's thread, with its signal handlers."""

    def __init__(self, function):
        self.gate, self.interrupter, self.error = Gate(), Interrupter(), None
        self.signals = SignalHandlers(self.gate, self.interrupter)
        self._function = function

    def run(self, meanwhile=lambda program: None):
        thread = ProgramThread(self._run)
        with self.signals.serving():
            thread.start()
            meanwhile(self)
            deadline = time.monotonic() + 10
            while thread.is_alive() and time.monotonic() < deadline:
                thread.join(0.1)
        assert not thread.is_alive()

    def _run(self):
        with self.signals.stand_in():
            try:
                with self.interrupter:
                    self._function(self)
            except BaseException as error:
                self.error = error


def until(condition):
    deadline = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_handlers_are_carried_and_put_back():
    before = {n: signal.getsignal(n) for n in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGURG)}
    heard = []

    def program(self):
        assert (
            signal.signal(signal.SIGUSR1, lambda number, frame: heard.append(threading.current_thread()))
            == before[signal.SIGUSR1]
        )
        signal.signal(signal.SIGUSR2, signal.SIG_IGN)
        subprocess.run(["sh", "-c", f"kill -USR2 {os.getpid()}; kill -USR1 {os.getpid()}"], check=True)
        until(lambda: heard)
        assert signal.getsignal(signal.SIGUSR2) == signal.SIG_IGN

    made = Program(program)
    made.run()
    assert made.error is None
    assert heard == [threading.main_thread()]
    assert {n: signal.getsignal(n) for n in before} == before


def test_a_timer_is_held_while_the_program_is_paused():
    told = []

    def program(self):
        signal.signal(signal.SIGALRM, lambda number, frame: told.append(frame.f_code.co_name))
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        self.gate.park()
        told.append("on")

    def meanwhile(program):
        until(lambda: program.signals.held)
        assert told == []
        program.gate.go()

    Program(program).run(meanwhile)
    assert told == ["program", "on"]


def test_another_signal_interrupts_the_pause():
    def program(self):
        def handler(number, frame):
            raise SystemExit(4)

        signal.signal(signal.SIGUSR1, handler)
        parked.set()
        self.gate.park()

    def meanwhile(program):
        parked.wait(5)
        until(lambda: program.gate.parked)
        os.kill(os.getpid(), signal.SIGUSR1)

    parked, made = threading.Event(), Program(program)
    made.run(meanwhile)
    assert isinstance(made.error, SystemExit)
    assert made.error.code == 4


def test_what_a_handler_raises_is_raised_in_the_program():
    def program(self):
        def handler(number, frame):
            raise TimeoutError("too slow")

        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        time.sleep(60)

    made = Program(program)
    made.run()
    assert str(made.error) == "too slow"


def test_ctrl_c_stays_the_debuggers():
    before = signal.getsignal(signal.SIGINT)

    def program(self):
        assert signal.signal(signal.SIGINT, signal.SIG_IGN) is signal.default_int_handler
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN

    made = Program(program)
    made.run(lambda program: time.sleep(0.05))
    assert made.error is None
    assert signal.getsignal(signal.SIGINT) is before


def test_without_a_main_thread_that_serves_a_program_can_still_signal_itself():
    heard, made = [], None

    def program(self):
        signal.signal(signal.SIGUSR1, lambda number, frame: heard.append(number))
        signal.raise_signal(signal.SIGUSR1)
        os.kill(os.getpid(), signal.SIGUSR1)

    made = Program(program)
    thread = threading.Thread(target=made.run)
    thread.start()
    thread.join(10)
    assert made.error is None
    assert heard == [signal.SIGUSR1] * 2


def test_the_command_ends_when_it_is_terminated_in_a_pause(tmp_path):
    """SIGTERM with a handler of the script's own: what the handler does, is done, though the script is paused."""
    (tmp_path / "script.py").write_text(
        dedent(
            """
            import signal, sys
            import gradscope as gs
            signal.signal(signal.SIGTERM, lambda *_: (print("saved", flush=True), sys.exit(7)))
            x = gs.ones(2, requires_grad=True)
            (x * 2).sum().backward()
            """
        )
    )
    command = [sys.executable, "-m", "gradscope", "debug", "--line", "script.py"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=tmp_path, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout.readline().startswith("stopped before node 0")
        process.terminate()
        said, _ = process.communicate("print\n", timeout=60)
    assert (process.returncode, "saved" in said) == (7, True), said

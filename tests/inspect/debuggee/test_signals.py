"""Signals of a program that is on another thread than the process's main one."""

import os
import signal
import sys
import threading

import pytest

from gradscope.inspect.debuggee.program_thread import Interrupter
from gradscope.inspect.debuggee.signals import noting_handlers

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals there")


def run(function):
    """Call a function on a program's thread; raise here what it raises."""
    errors = []

    def program():
        interrupter = Interrupter()
        try:
            with noting_handlers(interrupter), interrupter:
                function()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=program)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()
    for error in errors:
        raise error


def test_handlers_are_noted_and_those_of_the_process_stay():
    numbers = signal.SIGUSR1, signal.SIGINT
    before = [signal.getsignal(number) for number in numbers]

    def program():
        assert signal.signal(signal.SIGINT, signal.SIG_IGN) is signal.default_int_handler
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
        assert signal.signal(signal.SIGUSR1, print) == before[0]
        assert signal.signal(signal.SIGUSR1, signal.SIG_DFL) is print
        assert (signal.set_wakeup_fd(7), signal.set_wakeup_fd(-1)) == (-1, 7)
        with pytest.raises(TypeError, match=r"must be signal\.SIG_IGN"):
            signal.signal(signal.SIGUSR1, "handler")

    run(program)
    assert [signal.getsignal(number) for number in numbers] == before


def test_a_program_can_signal_itself():
    heard = []

    def program():
        signal.signal(signal.SIGUSR1, lambda number, frame: heard.append((number, frame.f_code.co_name)))
        signal.raise_signal(signal.SIGUSR1)
        os.kill(os.getpid(), signal.SIGUSR1)
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        signal.raise_signal(signal.SIGUSR1)

    run(program)
    assert heard == [(signal.SIGUSR1, "program")] * 2


def test_other_threads_have_the_functions_of_the_process():
    def program():
        thread = threading.Thread(target=lambda: seen.append(signal.getsignal(signal.SIGUSR1)))
        signal.signal(signal.SIGUSR1, print)
        thread.start()
        thread.join()

    seen = []
    run(program)
    assert seen == [signal.getsignal(signal.SIGUSR1)]

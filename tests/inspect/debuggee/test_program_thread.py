"""The program's thread: a main thread to the program, interrupted from others, survived by its children."""

import concurrent.futures
import subprocess
import sys
import threading
import time

import pytest

from gradscope.inspect.debuggee.pause_gate import ProgramAborted
from gradscope.inspect.debuggee.program_thread import Interrupter, ProgramThread, ThreadFamily, replaced


class Worker:
    """A program thread that runs a function inside an interrupter."""

    def __init__(self, function):
        self.interrupter, self.inside, self.error = Interrupter(), threading.Event(), None
        self.thread = ProgramThread(lambda: self._run(function))
        self.thread.start()
        assert self.inside.wait(60)

    def _run(self, function):
        try:
            with self.interrupter:
                self.inside.set()
                function(self.interrupter)
        except BaseException as error:
            self.error = error

    def join(self):
        self.thread.join(10)
        assert not self.thread.is_alive()
        return self.error


def spin(interrupter):
    for _ in range(10**10):
        pass


@pytest.mark.parametrize("function", [spin, lambda interrupter: interrupter.sleep(60)], ids=["loop", "sleep"])
def test_the_exception_is_raised(function):
    worker = Worker(function)
    assert worker.interrupter.throw(ValueError)
    assert isinstance(worker.join(), ValueError)


def test_nobody_inside_hears_nothing():
    worker = Worker(lambda interrupter: None)
    assert worker.join() is None
    assert not worker.interrupter.throw(ValueError)


def test_an_exception_that_does_not_arrive_inside_does_not_arrive_outside():
    interrupter = Interrupter()
    for _ in range(200):
        try:
            with interrupter:
                interrupter.throw(ValueError)
        except ValueError:
            pass
        assert sum(range(50)) == 1225


TRACED_AFTERWARDS = """
import sys
from gradscope.inspect.debuggee.program_thread import Interrupter

interrupter = Interrupter()
for throws in (False, True):
    try:
        with interrupter:
            if throws:
                interrupter.throw(ValueError)
    except ValueError:
        pass
sys.setprofile(lambda *unused: None)
print((lambda: "called")())
"""


def test_what_is_traced_afterwards_runs():
    # In a process of its own, which can be ended if it hangs.
    run = subprocess.run(
        [sys.executable, "-c", TRACED_AFTERWARDS], capture_output=True, text=True, timeout=60, check=False
    )
    assert (run.stdout, run.stderr) == ("called\n", "")


THROWN_UNDER_A_PROFILER = """
import sys, threading
from gradscope.inspect.debuggee.program_thread import Interrupter

def sleep(interrupter, inside):
    try:
        with interrupter:
            inside.set()
            interrupter.sleep(1000)
    except ValueError:
        pass

sys.setprofile(lambda *unused: None)  # of this thread alone
for _ in range(50):
    interrupter, inside = Interrupter(), threading.Event()
    sleeper = threading.Thread(target=sleep, args=(interrupter, inside))
    sleeper.start()
    inside.wait()
    interrupter.throw(ValueError)
    sleeper.join()
print("awake")
"""


def test_a_sleeper_wakes_up_when_the_caller_is_profiled():
    run = subprocess.run(
        [sys.executable, "-c", THROWN_UNDER_A_PROFILER], capture_output=True, text=True, timeout=60, check=False
    )
    assert (run.stdout, run.stderr) == ("awake\n", "")


def test_end_insists():
    caught = []

    def stubborn(interrupter):
        for _ in range(2):
            try:
                interrupter.sleep(60)
            except BaseException as error:
                caught.append(type(error))
        interrupter.sleep(60)

    worker = Worker(stubborn)
    worker.interrupter.end()
    assert isinstance(worker.join(), ProgramAborted)
    assert caught == [ProgramAborted] * 2


def test_sleep_takes_its_time():
    start = time.monotonic()
    Interrupter().sleep(0.05)
    assert time.monotonic() - start >= 0.05


def test_a_program_thread_is_left_at_the_end_but_its_children_are_not():
    daemons = []
    thread = ProgramThread(lambda: daemons.append(threading.Thread().daemon))
    assert thread.daemon
    thread.start()
    thread.join(60)
    assert daemons == [False]


def test_the_family_is_gathered_and_waited_for():
    family, told, strangers = ThreadFamily(), [], []

    def grandchild():
        time.sleep(0.1)
        told.append("grandchild")

    def child():
        threading.Thread(target=grandchild).start()

    def program():
        with family.gathering():
            told.append(threading.current_thread() is threading.main_thread())
            threading.Thread(target=child).start()
            threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
            ready.set()
            go_on.wait(60)
            family.join()

    ready, go_on = threading.Event(), threading.Event()
    start, main = threading.Thread.start, threading.main_thread
    head = ProgramThread(program)
    head.start()
    ready.wait(60)
    strangers.append(threading.Thread(target=go_on.wait))
    strangers[0].start()
    assert threading.main_thread() is threading.current_thread()
    assert strangers[0] not in family.alive()
    go_on.set()
    head.join(10)
    assert told == [True, "grandchild"]
    assert (threading.Thread.start, threading.main_thread) == (start, main)


def test_an_aborted_thread_of_the_program_dies_silently(capsys):
    family = ThreadFamily()

    def aborted():
        raise ProgramAborted

    with family.gathering():
        thread = threading.Thread(target=aborted)
        thread.start()
        thread.join(60)
    assert capsys.readouterr().err == ""


def test_an_abort_that_arrives_in_a_destructor_is_not_reported_and_comes_again(capsys):
    class Slow:
        def __del__(self):
            inside.set()
            until = time.monotonic() + 60
            while time.monotonic() < until:
                pass

    def function(interrupter):
        with family.gathering():
            Slow()
            interrupter.sleep(30)

    family, inside = ThreadFamily(), threading.Event()
    worker = Worker(function)
    assert inside.wait(60)
    worker.interrupter.end(grace=0.01)
    worker.thread.join(60)
    assert type(worker.error) is ProgramAborted
    assert capsys.readouterr().err == ""


def test_what_somebody_else_replaced_stays():
    class Owner:
        value = 1

    with replaced(Owner, "value", 2):
        assert Owner.value == 2
    assert Owner.value == 1
    with replaced(Owner, "value", 2):
        Owner.value = 3
    assert Owner.value == 3


@pytest.mark.parametrize("kind", ["ThreadPoolExecutor", "ProcessPoolExecutor"])
def test_an_executor_that_nobody_has_shut_down_does_not_keep_the_program_from_ending(kind):
    family, kept = ThreadFamily(), []
    with family.gathering():
        kept.append(getattr(concurrent.futures, kind)(max_workers=1))
        assert kept[0].submit(abs, -1).result() == 1
        assert family.alive()
        family.join()
    assert family.alive() == []
    with pytest.raises(RuntimeError, match="shutdown"):
        kept[0].submit(abs, -1)


def test_an_executor_that_the_program_did_not_start_is_left_alone():
    family = ThreadFamily()
    with concurrent.futures.ThreadPoolExecutor(max_workers=1) as executor:
        assert executor.submit(abs, -1).result() == 1
        with family.gathering():
            thread = threading.Thread(target=time.sleep, args=(0.01,))
            thread.start()
            family.join()
        assert executor.submit(abs, -2).result() == 2

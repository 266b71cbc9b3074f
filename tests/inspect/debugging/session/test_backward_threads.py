"""Threads that run backwards, and which of them is followed."""

import _thread
import threading
from types import SimpleNamespace

from gradscope.inspect.debugging.session.backward_threads import BackwardThreads


def test_a_chosen_thread_that_has_ended_is_chosen_no_longer():
    threads, entered, leave = BackwardThreads(), threading.Event(), threading.Event()

    def work():
        threads.enter()
        entered.set()
        leave.wait(10)

    thread = threading.Thread(target=work)
    thread.start()
    assert entered.wait(10)
    threads.choose(1)
    threads.switch()
    mine = threads.enter()
    assert threads.followed is not mine
    leave.set()
    thread.join()
    assert threads.enter() is mine
    assert threads.followed is mine


def asked_on(start):
    """Return what `threads.mine()` says on another thread, with the threads."""
    threads, found, asked = BackwardThreads(), [], threading.Event()

    def ask():
        found.append(threads.mine())
        asked.set()

    caller = threads.enter()
    caller.views.append(SimpleNamespace(task=object()))
    start(ask)
    assert asked.wait(10)
    return found[0], caller


def test_a_thread_of_a_device_stands_for_the_one_that_waits_for_it():
    """PyTorch's engine starts such threads; those that Python's threading has not started are like them."""
    mine, caller = asked_on(lambda ask: _thread.start_new_thread(ask, ()))
    assert mine is caller


def test_another_thread_of_the_program_does_not():
    mine, _ = asked_on(lambda ask: threading.Thread(target=ask).start())
    assert mine is None

"""Threads that run backwards, and which of them is followed."""

import threading

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

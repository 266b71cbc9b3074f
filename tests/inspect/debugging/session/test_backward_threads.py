"""Threads that run backwards, and which of them is followed."""

import threading

from gradscope.inspect.debugging.session.backward_threads import Lanes


def test_a_chosen_thread_that_has_ended_is_chosen_no_longer():
    lanes, entered, leave = Lanes(), threading.Event(), threading.Event()

    def work():
        lanes.enter()
        entered.set()
        leave.wait(10)

    thread = threading.Thread(target=work)
    thread.start()
    assert entered.wait(10)
    lanes.choose(1)
    lanes.switch()
    mine = lanes.enter()
    assert lanes.followed is not mine
    leave.set()
    thread.join()
    assert lanes.enter() is mine
    assert lanes.followed is mine

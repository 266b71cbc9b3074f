"""Waiting for a change, and being interrupted in it."""

from __future__ import annotations

import sys
import threading

import pytest

from gradscope.inspect.debuggee import waiters
from gradscope.inspect.debuggee.waiters import Waiters


def interrupted_at(line, function):
    """Call a function and raise KeyboardInterrupt as it comes to its so-manieth line; return what it returns."""
    passed = 0

    def trace(frame, event, arg):
        nonlocal passed
        if frame.f_code.co_filename not in (waiters.__file__, threading.__file__):
            return None
        if event == "line":
            passed += 1
            if passed == line:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return function()
    finally:
        sys.settrace(before)


@pytest.mark.parametrize("line", range(1, 40))
def test_an_interrupt_at_any_line_comes_out_and_others_can_wait(line):
    waiting = Waiters()
    answers = iter([False, False, True])

    def ready():
        waiting.wake()
        return next(answers)

    try:
        assert interrupted_at(line, lambda: waiting.wait(ready, timeout=60)) is True
    except KeyboardInterrupt:
        pass
    waiting.wake()
    assert waiting.wait(lambda: True)


def test_a_waiter_sees_a_change_at_once():
    waiting, changed, seen = Waiters(), threading.Event(), []
    thread = threading.Thread(target=lambda: seen.append(waiting.wait(changed.is_set, timeout=30)))
    thread.start()
    changed.set()
    waiting.wake()
    thread.join(30)
    assert seen == [True]


def test_two_wakes_are_one():
    waiting = Waiters()
    answers = iter([False, True])

    def ready():
        waiting.wake()
        waiting.wake()
        return next(answers)

    assert waiting.wait(ready)


def test_nothing_comes_in_time():
    assert not Waiters().wait(lambda: False, timeout=0.01)

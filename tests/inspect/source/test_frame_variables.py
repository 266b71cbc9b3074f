"""Variables of frames: looked at, and set, without a trace in the program."""

import sys
import threading
import weakref

import pytest

from gradscope.inspect.source.frame_variables import run_in, variables_of


class Thing:
    pass


def test_looking_at_variables_keeps_none_alive():
    thing = Thing()
    gone = weakref.ref(thing)
    assert variables_of(sys._getframe())["thing"] is thing
    del thing
    assert gone() is None


def test_looking_at_variables_leaves_the_programs_own_look_alone():
    thing = Thing()
    mine = locals()
    variables_of(sys._getframe())
    assert mine["thing"] is thing


@pytest.mark.parametrize("kind", ["trace", "profile"])
def test_looking_at_variables_from_a_trace_function_deletes_none(kind):
    seen = []

    def look(frame, event, arg):
        if frame.f_code is work.__code__:
            seen.append(variables_of(frame))
            return look
        return None

    def work(one):
        other = len([one])
        return one + other

    before = getattr(sys, f"get{kind}")()
    getattr(sys, f"set{kind}")(look)
    try:
        result = work(1)
    finally:
        getattr(sys, f"set{kind}")(before)
    assert result == 2
    assert seen[-1] == {"one": 1, "other": 1}


def test_looking_at_another_threads_variables_while_its_trace_function_is_at_work():
    frames, looked, results = [], threading.Event(), []

    def trace(frame, event, arg):
        if frame.f_code is not work.__code__:
            return None
        if event == "line" and not frames:
            frames.append(frame)
            looked.wait(10)
        return trace

    def work(one):
        other = one
        results.append(one + other)

    def traced():
        sys.settrace(trace)
        work(1)

    thread = threading.Thread(target=traced)
    thread.start()
    while not frames:
        thread.join(0.001)
    assert variables_of(frames[0]) == {"one": 1, "results": results}
    looked.set()
    thread.join()
    assert results == [2]


def test_code_run_in_a_function_sets_its_variables():
    number = 1
    run_in(sys._getframe(), compile("number += 1", "here", "single"))
    assert number == 2


def test_code_that_fails_has_done_what_came_before():
    number = 1
    with pytest.raises(ZeroDivisionError):
        run_in(sys._getframe(), compile("number = 2; 1 / 0", "here", "exec"))
    assert number == 2


def test_code_run_in_a_function_keeps_none_of_its_variables_alive():
    thing, other = Thing(), Thing()
    gone = weakref.ref(thing)
    run_in(sys._getframe(), compile("other = None", "here", "exec"))
    assert other is None
    del thing
    assert gone() is None

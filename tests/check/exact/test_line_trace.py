import sys
import threading

import pytest

from gradscope.check.exact.line_trace import LineTrace


@pytest.fixture
def box():
    return {"value": 0}


def change(box):
    box["value"] += 1  # the line
    return box


def nested(box):
    return len(change(box))


def traced(box, run):
    """Return the sources of the lines after which the value was another."""
    found, before = [], [box["value"]]

    def look(line):
        if box["value"] != before[0]:
            before[0] = box["value"]
            found.append(line().source)

    trace = LineTrace(look)
    trace.start()
    try:
        run(box)
    finally:
        trace.stop()
    return found


def twice(box):
    change(box)
    box["value"] += 2
    _ = nested(box)


def by_a_library(box):
    items = [3, 1]
    items.sort(key=lambda item: box.update(value=box["value"] + item) or item)
    threading.Thread(target=box.clear)  # is not started
    box.update(value=9)


def test_changes_are_told_with_the_line_that_made_them(box):
    assert traced(box, twice) == ['box["value"] += 1  # the line', 'box["value"] += 2', 'box["value"] += 1  # the line']


def test_what_a_library_does_is_the_line_that_called_it(box):
    line = 'items.sort(key=lambda item: box.update(value=box["value"] + item) or item)'
    assert traced(box, by_a_library) == [line, line, "box.update(value=9)"]


def test_a_line_goes_on_when_what_it_has_called_returns(box):
    def run(box):
        box["value"] = [change(box)["value"], 5][1]

    assert traced(box, run) == ['box["value"] += 1  # the line', 'box["value"] = [change(box)["value"], 5][1]']


def test_a_trace_function_of_the_program_stays(box):
    def own(frame, event, argument):
        return None

    trace = LineTrace(lambda line: None)
    before = sys.gettrace()
    sys.settrace(own)
    try:
        trace.start()
        there = sys.gettrace()
        trace.stop()
        assert sys.gettrace() is there is own
    finally:
        sys.settrace(before)

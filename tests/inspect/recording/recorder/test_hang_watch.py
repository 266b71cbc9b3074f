"""What is noted of a rank that is silent, and of one that raises."""

from __future__ import annotations

import pytest

from gradscope.inspect.recording.recorder import hang_watch
from gradscope.inspect.recording.recorder.hang_watch import HangWatch, raised_text


@pytest.fixture
def scene(monkeypatch):
    """Return what was noted, and a dict of the time and the place that a watch sees."""
    noted, seen = [], {"time": 0.0, "place": "is at train.py:1"}
    monkeypatch.setattr(hang_watch.time, "monotonic", lambda: seen["time"])
    monkeypatch.setattr(hang_watch, "whereabouts", lambda: seen["place"])
    return noted, seen, HangWatch(noted.append, patience=2.0)


def test_a_place_is_noted_once_when_it_has_been_the_same_for_long_enough(scene):
    noted, seen, watch = scene
    for seen["time"] in (0.0, 1.0, 1.9):
        watch.quiet(5)
    assert noted == []
    seen["time"] = 2.0
    watch.quiet(5)
    for seen["time"] in (2.5, 9.0):
        watch.quiet(6)  # the note is an item too
    assert noted == ["is at train.py:1"]


def test_who_goes_on_or_moves_is_waited_for_anew(scene):
    noted, seen, watch = scene
    for seen["time"], taken in ((0.0, 5), (1.9, 6), (3.8, 7)):
        watch.quiet(taken)
    assert noted == []
    seen.update(place="waits in all_reduce, called at train.py:2", time=5.0)
    watch.quiet(7)
    seen["time"] = 7.0
    watch.quiet(7)
    assert noted == ["waits in all_reduce, called at train.py:2"]


def test_the_same_place_is_noted_again_after_the_program_has_gone_on(scene):
    noted, seen, watch = scene
    for seen["time"], taken in ((0.0, 5), (2.0, 5), (3.0, 8), (5.0, 8)):
        watch.quiet(taken)
    assert noted == ["is at train.py:1"] * 2


def test_an_exception_has_one_line_and_its_place():
    with pytest.raises(ZeroDivisionError) as caught:
        1 / 0
    line = caught.tb.tb_lineno
    assert raised_text(caught.value) == f"ZeroDivisionError: division by zero, at test_hang_watch.py:{line}"
    assert raised_text(RuntimeError("one\ntwo")) == "RuntimeError: one"
    assert raised_text(RuntimeError()) == "RuntimeError: no message"

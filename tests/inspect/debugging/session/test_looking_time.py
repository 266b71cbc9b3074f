"""How long a program is let alone follows from what looking costs."""

import itertools

import pytest

from gradscope.inspect.debugging.session.looking_time import LookingTime


def iterations(plain, looked, count):
    """Return how many of so many iterations are looked at: each takes so many seconds."""
    now = 0.0
    looking = LookingTime(lambda: now)
    at, looks, whole = 0, True, False
    for _ in range(count):
        if not looks:
            looks, whole = looking.passes(), False
        at += looks
        now += looked if looks and whole else plain
        if looks:
            looks, whole = not looking.ended(), True
    return at


@pytest.mark.parametrize("looked", [2, 5, 20])
def test_looking_costs_a_tenth_of_the_time(looked):
    """An iteration takes one second, of those that are looked at every other its forward pass is not."""
    at = iterations(1, looked, 10_000)
    assert 0.02 < at * (looked - 1) / 10_000 < 0.2


def test_a_program_that_is_looked_at_for_next_to_nothing_is_looked_at_always():
    assert iterations(1, 1.05, 1000) == 999, "one is let alone, to see what it takes"


def test_the_first_iterations_are_looked_at():
    looking = LookingTime(itertools.count().__next__)
    assert [looking.ended(), looking.ended()] == [False, True]


def test_a_pause_is_no_iteration():
    now = 0
    looking = LookingTime(lambda: now)
    looking.ended()
    now = 1
    looking.ended()
    looking.passes()
    now = 2
    assert looking.passes(), "an iteration takes a second"
    looking.ended()
    looking.interrupted()
    now = 3600
    assert not looking.ended(), "the hour that somebody looked tells nothing of the program"

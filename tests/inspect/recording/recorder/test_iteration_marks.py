"""What an iteration is."""

import pytest

from gradscope.inspect.recording.recorder.iteration_marks import IterationCounter


def run(program):
    """Return the iteration of each backward; `program` is a string: b a backward, other letters an optimizer's step."""
    counter, numbers = IterationCounter(), []
    for what in program:
        if what == "b":
            numbers.append(counter.task_started(len(numbers)))
            continue
        moved = counter.stepped(what)
        if moved is not None:
            begin, number = moved
            numbers[begin:] = [number] * (len(numbers) - begin)
    return numbers


@pytest.mark.parametrize(
    ("program", "iterations"),
    [
        ("bAbAbA", [0, 1, 2]),
        ("bbb", [0, 1, 2]),
        ("bbAbbAbbA", [0, 0, 1, 1, 2, 2]),
        ("bAbBbAbBbAbB", [0, 0, 1, 1, 2, 2]),
        ("bABbAB", [0, 1]),
        ("bAbBbAbAbAbBbA", [0, 0, 1, 1, 1, 1, 2]),
        ("bAb", [0, 1]),
        ("AbA", [0]),
        ("", []),
    ],
    ids=[
        "one optimizer",
        "none",
        "accumulation",
        "two optimizers",
        "two at once",
        "one more often",
        "cut off",
        "step first",
        "nothing",
    ],
)
def test_iteration_marks(program, iterations):
    assert run(program) == iterations


def test_by_hand_nothing_else_decides():
    counter = IterationCounter()
    assert counter.begin() == 0
    assert [counter.task_started(0), counter.task_started(1)] == [0, 0]
    assert counter.stepped("A") is None
    assert counter.begin() == 1
    assert counter.task_started(2) == 1

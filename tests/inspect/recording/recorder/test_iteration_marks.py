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
        ("bAbAbA", [1, 2, 3]),
        ("bbb", [1, 2, 3]),
        ("bbAbbAbbA", [1, 1, 2, 2, 3, 3]),
        ("bAbBbAbBbAbB", [1, 1, 2, 2, 3, 3]),
        ("bABbAB", [1, 2]),
        ("bAbBbAbAbAbBbA", [1, 1, 2, 2, 2, 2, 3]),
        ("bAb", [1, 2]),
        ("AbA", [1]),
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
    assert counter.begin() == 1
    assert [counter.task_started(0), counter.task_started(1)] == [1, 1]
    assert counter.stepped("A") is None
    assert counter.begin() == 2
    assert counter.task_started(2) == 2

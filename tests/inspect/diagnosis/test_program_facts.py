"""A fact has one watch, which hears the program from beginning to end."""

import pytest

import gradscope as gs
from gradscope.inspect.adapters import NativeAdapter, Observer
from gradscope.inspect.diagnosis.program_facts import EXAMINATION, UPDATES, Fact, WatchedProgram


class Backwards(Observer):
    """Counts backward passes."""

    def __init__(self):
        self.count = 0
        self.closed = False

    def task_started(self, task):
        self.count += 1

    def close(self):
        self.closed = True


COUNT = Fact("count", lambda program: Backwards(), lambda watch: watch.count, backward=True)


def test_a_watch_hears_what_happens_while_the_program_is_open():
    program = WatchedProgram(NativeAdapter(), [COUNT])
    w = gs.ones(2, requires_grad=True)
    w.sum().backward()
    program.open()
    w.sum().backward()
    program.close()
    w.sum().backward()
    assert program.known() == {"count": 1}
    assert program.watch_of(COUNT).closed


def test_a_fact_has_one_watch():
    program = WatchedProgram(NativeAdapter(), [UPDATES])
    assert program.watch_of(UPDATES) is program.watch_of(UPDATES)
    assert list(program.known()) == [EXAMINATION.name, UPDATES.name]  # which needs the names of the other


def test_a_name_is_that_of_one_fact():
    program = WatchedProgram(NativeAdapter(), [COUNT])
    with pytest.raises(ValueError, match="two facts are called 'count'"):
        program.watch_of(Fact("count", lambda program: None, lambda watch: None))

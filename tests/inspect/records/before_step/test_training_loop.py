"""A rank has left its training loop where it stands outside of the loop around its backward and its step."""

from __future__ import annotations

import linecache
import sys

import pytest

from gradscope.inspect.records.before_step.training_loop import TrainingLoop

PROGRAM = """\
def update():
    for optimizer in range(1):
        loop.steps(frame())


def train():
    for batch in range(2):
        loop.backward_begins(frame())
        wait("in the loop")
        update()
    wait("behind it")


def validate():
    wait("another function")


for epoch in range(2):
    train()
    validate()
wait("the end")
"""


def run(program, name, source=True):
    """Run a program that tells where it waits; return whether it had left its loop there."""
    loop, found = TrainingLoop(), []

    def wait(where):
        found.append((where, loop.is_left_at(sys._getframe(1))))

    if source:
        linecache.cache[name] = (len(program), None, program.splitlines(keepends=True), name)
    exec(compile(program, name, "exec"), {"loop": loop, "frame": lambda: sys._getframe(1), "wait": wait})
    return found


def test_a_program_has_left_its_loop_at_lines_and_in_functions_outside_of_it():
    found = run(PROGRAM, "/a/trains.py")
    assert found[:2] == [("in the loop", False)] * 2
    assert dict(found[2:]) == {
        "in the loop": False, "behind it": True, "another function": True, "the end": True,
    }  # fmt: skip


@pytest.mark.parametrize("source", [True, False])
def test_where_there_is_no_loop_none_is_left(source):
    program = "loop.backward_begins(frame())\nloop.steps(frame())\nwait('after')\n" if source else PROGRAM
    assert not any(left for _, left in run(program, f"/a/no_loop{source}.py", source))


def test_before_the_first_step_and_at_the_end_nothing_is_left():
    loop = TrainingLoop()
    assert not loop.is_left_at(sys._getframe())
    assert not loop.is_left_at(None)

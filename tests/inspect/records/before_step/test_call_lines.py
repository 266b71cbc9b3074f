"""The lines at which modules are called are those of the program."""

from __future__ import annotations

import functools
import importlib
import sys

from gradscope.inspect.adapters import Observer, adapter_for
from gradscope.inspect.records.before_step.call_lines import CallLines, own_line
from gradscope.inspect.records.before_step.step_looks import StepLooker
from gradscope.inspect.records.module_tracking import Tracker


class Follower(Observer):
    """Passes on what happens; with no function of this file between, which would count as the program's."""

    def __init__(self, lines):
        self.module_entered = lines.module_entered
        self.module_left = lines._tracker.module_left
        if isinstance(lines, StepLooker):
            self.task_started = functools.partial(lines.backward_started, inside=False)


def followed(fw, program, model):
    """Return what notes the lines of a program, after that has run."""
    adapter = adapter_for(next(iter(model.parameters())))
    lines = CallLines(adapter, Tracker(adapter))
    with adapter.observe(Follower(lines), forward=True, backward=False):
        program()
    return lines


def line_of(function, offset):
    return f"{__file__}:{function.__code__.co_firstlineno + offset}"


def test_each_module_has_the_line_that_called_it_first(fw):
    model = fw.nn.Sequential(fw.nn.Linear(2, 3), fw.nn.ReLU())
    head = fw.nn.Linear(3, 1)

    def program():
        made = model(fw.ones(1, 2))
        made = model(fw.ones(1, 2))
        head(made)

    lines = followed(fw, program, model)
    found = {path: line for path, line in lines.by_path().items() if "Linear" not in path}
    assert {found[path] for path in ("model", "model.0")} == {line_of(program, 1)}
    assert (found["head"], lines.forward, lines.known) == (line_of(program, 3), line_of(program, 3), 3)


def test_a_loss_is_no_forward(fw):
    model, loss = fw.nn.Linear(2, 3), fw.nn.MSELoss()

    def program():
        made = model(fw.ones(1, 2))
        loss(made, fw.zeros(1, 3))

    lines = followed(fw, program, model)
    assert (lines.forward, lines.known) == (line_of(program, 1), 1)


def test_a_module_that_is_gone_is_not_named(fw):
    model = fw.nn.Linear(2, 3)
    lines = followed(fw, lambda: fw.nn.Linear(2, 3)(fw.ones(1, 2)), model)
    assert lines.by_path() == {}


def test_the_own_line_is_that_of_the_program_before_a_package():
    space = {"own_line": own_line}
    trainer = "def call():\n    return own_line()"
    exec(compile(trainer, "/venv/lib/python3.11/site-packages/trainer/loop.py", "exec"), space)
    told, here = space["call"](), sys._getframe().f_lineno
    assert told == f"{__file__}:{here}"


def test_a_step_has_its_lines_and_those_of_its_backwards(fw):
    model = fw.nn.Linear(2, 3)
    optimizer = fw.optim.SGD(model.parameters(), lr=0.5)
    adapter = adapter_for(model.weight)
    looker = StepLooker(adapter, Tracker(adapter))
    looks = []

    def program():
        made = model(fw.ones(4, 2))
        made.sum().backward()
        looks.append(looker.look(optimizer))

    with adapter.observe(Follower(looker), forward=True, backward=True):
        program()
    (look,) = looks
    (backward,) = look.passes
    assert (backward.forward, backward.called) == (line_of(program, 1), line_of(program, 2))
    assert look.line == line_of(program, 3)
    assert {held.called for held in look.tensors} == {line_of(program, 1)}


def test_modules_that_a_re_entrant_checkpoint_calls_are_known(fw):
    checkpoint = importlib.import_module(f"{fw.__name__}.utils.checkpoint").checkpoint
    inner, model = fw.nn.Linear(2, 3), fw.nn.Sequential(fw.nn.Linear(2, 2), fw.nn.Linear(3, 1))

    def program():
        made = checkpoint(inner, model[0](fw.ones(1, 2)), use_reentrant=True)
        model[1](checkpoint(fw.relu, made, use_reentrant=False))

    lines = followed(fw, program, model)
    assert lines.checkpointed() == {path for path in lines.by_path() if path.startswith("inner")}

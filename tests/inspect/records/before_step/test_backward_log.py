"""Which parameters the backwards before a step reached."""

from __future__ import annotations

import gradscope as gs
from gradscope.inspect.adapters import NativeAdapter, Observer
from gradscope.inspect.records.before_step.backward_log import BackwardLog


class Follower(Observer):
    """Tells a log of backwards."""

    def __init__(self, log):
        self.log, self.running = log, []

    def task_started(self, task):
        self.log.started(task, inside=bool(self.running))
        self.running.append(task)

    def task_finished(self, task):
        self.running.remove(task)


def followed(run, *leaves, optimizer=0):
    """Return, of each backward of a program, whether it had a way to each of its leaves."""
    adapter = NativeAdapter()
    log = BackwardLog(adapter)
    names = {id(leaf): str(number) for number, leaf in enumerate(leaves)}
    with adapter.observe(Follower(log), forward=False, backward=True):
        run(log, names)
    tensors = [(place, identity, name) for place, (identity, name) in enumerate(names.items())]
    return [backward.unreached for backward in log.before_step(optimizer, tensors, lambda: names)]


def test_each_backward_since_the_last_step_is_told():
    a, b = (gs.ones(2, requires_grad=True) for _ in range(2))

    def run(log, names):
        (a * b).sum().backward()
        log.before_step(0, [], lambda: names)
        for leaf in (a, b, a):
            leaf.sum().backward()

    assert followed(run, a, b) == [(1,), (0,), (1,)]
    assert followed(run, a, b, optimizer=1) == [(), (1,), (0,), (1,)]  # which has not stepped yet


def test_what_runs_inside_of_a_backward_is_part_of_it():
    a, b = (gs.ones(2, requires_grad=True) for _ in range(2))

    def inner(grad):
        with gs.enable_grad():
            b.sum().backward()

    def run(log, names):
        y = a * 2
        y.register_hook(inner)
        y.sum().backward()
        assert log.count == 1

    assert followed(run, a, b) == [()]


def test_of_many_the_newest_are_told():
    a = gs.ones(2, requires_grad=True)
    assert len(followed(lambda log, names: [a.sum().backward() for _ in range(50)], a)) == 16


def test_a_leaf_that_stands_for_a_parameter_goes_by_its_name():
    part, whole, other = (gs.ones(2, requires_grad=True) for _ in range(3))
    adapter = NativeAdapter()
    log = BackwardLog(adapter)
    with adapter.observe(Follower(log), forward=False, backward=True):
        whole.sum().backward()
    tensors = [(0, id(part), "weight"), (1, id(other), "bias")]
    names = {id(part): "weight", id(whole): "weight", id(other): "bias"}
    (backward,) = log.before_step(0, tensors, lambda: names)
    assert backward.unreached == (1,)

"""An iteration that a program skips is told from evaluation, and from a forward whose backward is yet to come."""

from __future__ import annotations

import functools
import sys

import pytest

from gradscope.inspect.adapters import Observer, adapter_for
from gradscope.inspect.recording.recorder.hang_watch import raised_frame
from gradscope.inspect.records.before_step.step_looks import StepLooker
from gradscope.inspect.records.module_tracking import Tracker

NAN = float("nan")


class Follower(Observer):
    """Passes on what happens; with no function of this file between, which would count as the program's."""

    def __init__(self, looker):
        self.module_entered = looker.module_entered
        self.module_left = looker._tracker.module_left
        self.task_started = functools.partial(looker.backward_started, inside=False)


class Loop:
    """A training loop that skips what is not finite, seen by a looker."""

    def __init__(self, fw):
        self.fw = fw
        self.model = fw.nn.Linear(2, 3)
        self.optimizer = fw.optim.SGD(self.model.parameters(), lr=0.1)
        self.adapter = adapter_for(self.model.weight)
        self.looker = StepLooker(self.adapter, Tracker(self.adapter))
        self.looks = []
        self.stands = []

    def train(self, *factors):
        """Train with a batch for each factor; look where it stands after those that are skipped."""
        for factor in factors:
            loss = self.model(self.fw.ones(4, 2) * factor).sum()
            if not loss.isfinite():
                self.stands.append(self.looker.skipped(sys._getframe()))
                continue
            loss.backward()
            self.looks.append(self.looker.look(self.optimizer))

    def evaluate(self):
        """Call the model on another line."""
        return self.model(self.fw.ones(4, 2))

    def run(self, program):
        with self.adapter.observe(Follower(self.looker), forward=True, backward=True):
            program()
        return self

    def line(self, after):
        """Return a line of the loop, by its distance from its `def`."""
        return f"{__file__}:{Loop.train.__code__.co_firstlineno + after}"


@pytest.fixture
def loop(fw):
    return Loop(fw)


def test_a_skipped_iteration_is_told_before_the_next_step_with_its_loss(loop):
    loop.run(lambda: loop.train(1, 1, NAN, 1))
    assert [len(look.skipped) for look in loop.looks] == [0, 0, 1]
    (skip,) = loop.looks[-1].skipped
    assert (skip.step, skip.stepped, skip.forward, skip.loss) == (2, loop.line(8), loop.line(3), "nan")


def test_one_that_is_skipped_before_the_first_step_is_told_by_the_backward_after_it(loop):
    loop.run(lambda: loop.train(NAN, NAN, 1))
    assert [(skip.step, skip.forward) for skip in loop.looks[0].skipped] == [(0, loop.line(3))] * 2


def test_an_infinite_loss_is_told_too(loop):
    loop.run(lambda: loop.train(1, float("inf"), 1))
    assert loop.looks[-1].skipped[0].loss in ("inf", "-inf", "nan")


def test_evaluation_in_training_mode_is_no_skipped_iteration(loop):
    def program():
        loop.evaluate()
        for _ in range(3):
            loop.train(1)
            loop.evaluate()
            loop.evaluate()

    loop.run(program)
    assert [look.skipped for look in loop.looks] == [[], [], []]
    assert loop.looker.account().skips == 0


def test_a_model_in_evaluation_mode_is_not_trained(loop):
    def program():
        loop.train(1)
        loop.model.eval()
        loop.train(NAN)
        loop.model.train()
        loop.train(1)

    assert [look.skipped for look in loop.run(program).looks] == [[], []]


def loss_of(loop, model):
    """Return a loss; one line calls all models."""
    return model(loop.fw.ones(4, 2)).sum()


def test_a_model_beside_that_the_same_line_evaluates_is_not_trained(loop):
    average = loop.fw.nn.Linear(2, 3)

    def program():
        for _ in range(3):
            loss_of(loop, average)
            loss_of(loop, loop.model).backward()
            loop.looks.append(loop.looker.look(loop.optimizer))
            loss_of(loop, average)

    assert [look.skipped for look in loop.run(program).looks] == [[], [], []]
    assert loop.looker.account().skips == 0


def test_a_forward_that_records_nothing_is_no_skipped_iteration(loop):
    def program():
        for _ in range(3):
            with loop.fw.no_grad():
                loss_of(loop, loop.model)
                loss_of(loop, loop.model)
            loss = loss_of(loop, loop.model)
            with loop.fw.no_grad():
                loss_of(loop, loop.model)
            loss.backward()
            loop.looks.append(loop.looker.look(loop.optimizer))
        with loop.fw.no_grad():
            loss_of(loop, loop.model)

    assert [look.skipped for look in loop.run(program).looks] == [[], [], []]
    assert loop.looker.account().skips == 0


def test_at_the_end_the_last_forward_is_one_that_no_backward_follows(loop):
    loop.run(lambda: loop.train(1, 1, NAN))
    account = loop.looker.account()
    assert (account.step, account.stepped, account.skips) == (2, loop.line(8), 1)
    assert account.skipped[0].forward == loop.line(3)


def test_where_it_stands_only_a_loss_that_is_not_finite_tells(loop):
    told = []

    def hook(grad):
        told.append(loop.looker.skipped(sys._getframe()))

    def program():
        loop.train(1, NAN)
        loss = loop.model(loop.fw.ones(4, 2)).sum()
        told.append(loop.looker.skipped(sys._getframe()))
        loss.backward()

    loop.run(program)
    assert [skip.loss for skip in loop.stands[-1]] == ["nan"]
    assert len(told[0]) == 1  # the one that train() has skipped, and not the one that is about to be used


def test_the_function_that_returned_runs_no_backward_any_more(loop):
    def program():
        loop.train(1, NAN)
        (skip,) = loop.looker.skipped(sys._getframe())
        assert (skip.forward, skip.loss) == (loop.line(3), "")

    loop.run(program)


def test_of_a_forward_that_still_runs_nothing_is_said(loop):
    told = []
    loop.run(lambda: loop.train(1))
    loop.model.register_forward_hook(lambda *_: told.append(loop.looker.skipped(sys._getframe())))
    loop.run(lambda: loop.train(1))
    assert told == [[]]


def test_a_forward_that_an_error_has_left_is_no_skipped_iteration(loop):
    """As where another rank has gone, and DistributedDataParallel finds out in its forward."""

    def fail(*_):
        raise ConnectionError

    loop.run(lambda: loop.train(1))
    loop.model.register_forward_hook(fail)
    with pytest.raises(ConnectionError) as caught:
        loop.run(lambda: loop.train(1))
    assert loop.looker.skipped(raised_frame(caught.value)) == []


def test_of_many_the_newest_are_kept_and_all_are_counted(loop):
    loop.run(lambda: loop.train(1, *[NAN] * 40, 1, NAN))
    assert len(loop.looks[-1].skipped) == 16
    account = loop.looker.account()
    assert (len(account.skipped), account.skips) == (16, 41)


def test_it_is_said_in_a_sentence(loop):
    loop.run(lambda: loop.train(1, NAN, 1))
    (skip,) = loop.looks[-1].skipped
    name = __file__.rpartition("/")[2]
    told = skip.text()
    assert told.startswith("skipped an iteration after step 1 (")
    assert f"{name}:{loop.line(3).rpartition(':')[2]}, whose loss was nan" in told
    assert skip._replace(step=0, loss="").text().startswith("skipped an iteration before its first step: no backward")

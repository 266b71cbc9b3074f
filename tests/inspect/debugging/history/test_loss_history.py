"""Losses over time, by the variable of which backward() is called."""

from __future__ import annotations

import gradscope as gs
from gradscope.inspect import Debugger

from ...sessions import wait


def test_losses_of_all_backwards_are_kept_also_of_those_that_run_free():
    w = gs.ones(4, requires_grad=True)

    def train():
        for factor in (3.0, 2.0, 0.5):
            loss = (w * factor).sum()
            loss.backward()
        several = w * 2
        several.backward(gs.ones(4))
        (w * 2).sum().backward()

    session = Debugger.for_call(train)
    session.start()
    wait(session)
    assert session.losses() == (12.0,)
    session.cont()
    wait(session)
    assert session.losses() == (12.0, 8.0, 2.0)
    session.back()
    assert (session.task_index, session.losses()) == (1, (12.0,))


def test_losses_end_with_that_of_the_backward_that_is_shown_or_there_are_none():
    w = gs.ones(4, requires_grad=True)

    def train():
        loss = (w * 3.0).sum()
        loss.backward()
        (w * 2).sum().backward()

    session = Debugger.for_call(train)
    session.start()
    wait(session)
    session.next_backward()
    wait(session)
    assert (session.task_index, session.losses()) == (2, ())
    session.cont()
    wait(session)


def test_losses_of_pytorch(torch):
    w = torch.ones(4, requires_grad=True)

    def train():
        loss = (w * 2).sum()
        loss.backward()

    session = Debugger.for_call(train)
    session.start()
    wait(session)
    assert session.losses() == (8.0,)
    session.cont()
    wait(session)


def test_no_code_of_the_program_runs_to_find_a_loss():
    class Trainer:
        def __getattribute__(self, name):
            if name == "__dict__":
                raise AssertionError("the program was asked")
            return object.__getattribute__(self, name)

    trainer = Trainer()
    trainer.loss = gs.ones(1, requires_grad=True) * 5

    def train():
        trainer.loss.backward()

    session = Debugger.for_call(train)
    session.start()
    wait(session)
    assert session.losses() == (5.0,)
    session.cont()
    assert wait(session) == "finished"

"""What a program that has ended still tells of one parameter."""

from __future__ import annotations

import pytest

from gradscope.inspect import SessionError

from ...sessions import debugging, wait


@pytest.fixture(params=["gradscope", "torch"])
def ended(request):
    """Return a function that runs a program which leaves one of everything, looks at it first or not, and ends it."""
    library = request.getfixturevalue("torch") if request.param == "torch" else pytest.importorskip("gradscope")

    class Net(library.nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.lost = library.nn.Linear(3, 2), library.nn.Linear(3, 2)
            self.dead, self.rare = library.nn.Linear(2, 1), library.nn.Linear(3, 2)
            self.body.bias.requires_grad_(False)

        def forward(self, x, rarely):
            h = self.body(x) + self.lost(x).detach()
            if rarely:
                h = h + self.rare(x)
            return h.sum() + 0.0 * self.dead(h).sum()

    def run():
        net = Net()
        for step in range(3):
            net(library.ones(4, 3), step < 2).backward()
            net.zero_grad()

    with debugging(run) as session:

        def end(looked=True):
            session.start()
            wait(session)
            if looked:
                assert session.findings()
            session.cont()
            assert wait(session) == "finished"
            return session.why_no_grad

        yield end


@pytest.fixture
def answers(ended):
    """Return what ``why`` says of a name."""
    return ended()


def test_what_the_last_backward_brought_is_told(answers):
    assert str(answers("body.weight")) == "`body.weight`: the last backward brought it a gradient, of norm 9.798"
    assert answers("dead.bias").reason == "zero"
    assert "zero everywhere in the last backward" in str(answers("dead.bias, loss"))


def test_a_parameter_that_was_cut_off_has_the_line_that_cuts(answers):
    told = answers("lost.weight")
    assert told.reason == "not reached"
    assert ".detach()" in str(told)
    assert "self.lost(x).detach()" in told.location.source


def test_a_frozen_parameter_is_told_and_how_it_thaws(answers):
    assert str(answers("body.bias")) == (
        "`body.bias`: frozen: its requires_grad is False\n"
        "  Call requires_grad_(True) on it before the forward pass, if it is to be trained."
    )


def test_a_parameter_that_only_earlier_backwards_reached_is_no_lost_one(answers):
    assert str(answers("rare.bias")).startswith("`rare.bias`: the last backward did not reach it; the latest that")


def test_of_a_module_all_parameters_are_told(answers):
    assert [one.name for one in answers("lost").parameters] == ["lost.weight", "lost.bias"]


def test_a_name_that_is_none_is_refused_with_some_that_are(answers):
    with pytest.raises(SessionError, match=r"called 'head'\nKnown are body\.weight, body\.bias, "):
        answers("head")


def test_where_nobody_has_looked_at_the_graph_it_is_told_how_to_learn_the_line(ended):
    told = str(ended(looked=False)("lost.bias"))
    assert told.startswith("`lost.bias`: not reached: no backward has brought it a gradient\n  ")
    assert told.endswith("`restart`, and ask at its first stop: the line that cuts it off is looked for there.")

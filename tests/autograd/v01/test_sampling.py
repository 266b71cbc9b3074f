"""Which tensors draw by stochastic functions."""

from __future__ import annotations

import gradscope as gs
from gradscope import autograd
from gradscope.autograd import Variable, legacy


def test_later_programs_draw_as_ever():
    probs = gs.tensor([0.5, 0.5], requires_grad=True)
    assert probs.multinomial(1).grad_fn is None
    assert probs.bernoulli().grad_fn.name() == "BernoulliBackward0"
    assert gs.tensor([0.0, 1.0]).multinomial().grad_fn is None
    with legacy.set_stochastic_sampling():
        assert isinstance(probs.multinomial(2, True).creator, legacy.Multinomial)
        assert isinstance(probs.bernoulli().creator, legacy.Bernoulli)
        with gs.no_grad():
            assert probs.bernoulli().creator is None
    assert probs.bernoulli().grad_fn.name() == "BernoulliBackward0"


def test_a_variable_draws_by_stochastic_functions():
    probs = Variable(gs.tensor([0.25, 0.75]), requires_grad=True)
    drawn = [
        probs.multinomial(3, with_replacement=True),
        probs.multinomial(num_samples=1),
        probs.multinomial(2),
        probs.bernoulli(),
        gs.normal(probs, 0.5),
        gs.normal(probs, probs),
    ]
    names = ["Multinomial", "Multinomial", "Multinomial", "Bernoulli", "Normal", "Normal"]
    assert [draw.creator.name() for draw in drawn] == names
    assert [draw.numel() for draw in drawn[:3]] == [3, 1, 2]
    for draw in drawn:
        draw.reinforce(1.0)
    autograd.backward(drawn, [None] * len(drawn))
    assert probs.grad.isfinite().all()
    assert probs.grad[0] != 0


def test_a_variable_of_constants_draws_without_a_node():
    probs = Variable(gs.tensor([0.25, 0.75]))
    assert probs.multinomial(1).creator is None
    assert probs.bernoulli().creator is None

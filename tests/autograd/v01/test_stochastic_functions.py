"""Stochastic functions: programs that draw and are told a reward."""

from __future__ import annotations

import math

import pytest

import gradscope as gs
from gradscope import autograd
from gradscope.autograd import Variable, legacy


def leaf(*values):
    return Variable(gs.tensor(list(values) or [1.0, 2.0, 3.0]), requires_grad=True)


def test_a_reinforce_program():
    gs.manual_seed(0)
    weights = leaf(0.1, 0.2, 0.3)
    probs = gs.softmax(weights, 0)
    action = probs.multinomial()
    assert (action.dtype, tuple(action.shape), action.requires_grad) == (gs.int64, (1,), False)
    assert isinstance(action.creator, legacy.Multinomial)
    action.reinforce(2.0)
    autograd.backward([action], [None])
    expected = 2.0 * probs.detach()
    expected[action.item()] -= 2.0
    assert weights.grad.tolist() == pytest.approx(expected.tolist(), abs=1e-4)


def test_an_actor_critic_program():
    gs.manual_seed(0)
    weights, value = leaf(0.1, 0.2, 0.3), leaf(1.0)
    actions = [gs.softmax(weights, 0).multinomial() for _ in range(3)]
    for action in actions:
        action.reinforce(0.5)
    loss = (value - 2.0).pow(2).sum()
    autograd.backward([loss, *actions], [gs.ones(()), *(None for _ in actions)])
    assert value.grad.tolist() == [-2.0]
    assert weights.grad.sum().item() == pytest.approx(0.0, abs=1e-4)


def test_multinomial_takes_weights_rows_and_repeated_draws():
    weights = Variable(gs.tensor([[1.0, 0.0], [2.0, 6.0]]), requires_grad=True)
    drawn = legacy.multinomial(weights, 4, True)
    drawn.reinforce(gs.ones(2, 4))
    autograd.backward([drawn], [None])
    counts = [drawn[1].tolist().count(k) for k in (0, 1)]
    assert weights.grad[0].tolist() == pytest.approx([-4.0, 0.0], rel=1e-4)
    assert weights.grad[1].tolist() == pytest.approx([-counts[0] / 0.25, -counts[1] / 0.75], rel=1e-4)


def test_bernoulli():
    probs = leaf(0.25, 0.75, 0.5)
    drawn = legacy.bernoulli(probs)
    drawn.reinforce(gs.tensor([1.0, 2.0, 3.0]))
    drawn.backward()
    x = drawn.tolist()
    expected = [r * (p - d) / (p * (1 - p)) for r, p, d in zip([1.0, 2.0, 3.0], [0.25, 0.75, 0.5], x, strict=True)]
    assert probs.grad.tolist() == pytest.approx(expected, rel=1e-4)


def log_density(x, m, s):
    return -((x - m) ** 2) / (2 * s * s) - math.log(s)


def test_normal_with_a_deviation_for_each():
    means, deviations = leaf(0.0, 1.0), leaf(1.0, 2.0)
    drawn = legacy.normal(means, deviations)
    drawn.reinforce(3.0)
    autograd.backward([drawn], [None])
    step = 1e-5
    for i, x in enumerate(drawn.tolist()):
        m, s = means[i].item(), deviations[i].item()
        of_mean = (log_density(x, m + step, s) - log_density(x, m - step, s)) / (2 * step)
        of_deviation = (log_density(x, m, s + step) - log_density(x, m, s - step)) / (2 * step)
        assert means.grad[i].item() == pytest.approx(-3 * of_mean, rel=1e-3)
        assert deviations.grad[i].item() == pytest.approx(-3 * of_deviation, rel=1e-3)


def test_normal_with_one_deviation():
    means = leaf(0.0, 1.0)
    drawn = legacy.normal(means, 2.0)
    drawn.reinforce(1.0)
    autograd.backward([drawn], [None])
    assert means.grad.tolist() == pytest.approx(((means.detach() - drawn) / 4).tolist(), rel=1e-4)
    with pytest.raises(RuntimeError, match="requires specifying a common stddev, or per-sample stddev"):
        legacy.Normal()(leaf())


def test_a_draw_without_a_reward():
    action = gs.softmax(leaf(), 0).multinomial()
    with pytest.raises(RuntimeError, match="differentiating stochastic functions requires providing a reward"):
        autograd.backward([action], [None])


def test_a_reward_reaches_through_what_is_computed_from_the_draw():
    probs, w = leaf(0.5, 0.5), leaf(1.0, 1.0)
    drawn = legacy.bernoulli(probs)
    loss = (drawn * w).sum()
    drawn.reinforce(1.0)
    loss.backward()
    assert w.grad.tolist() == drawn.tolist()
    assert probs.grad.tolist() == pytest.approx([(0.5 - d) / 0.25 for d in drawn.tolist()], rel=1e-4)


def test_a_draw_in_the_graph_without_a_reward():
    probs, w = leaf(0.5, 0.5), leaf(1.0, 1.0)
    loss = (legacy.bernoulli(probs) * w).sum()
    with pytest.raises(RuntimeError, match="requires providing a reward"):
        loss.backward()


def test_wrong_rewards():
    drawn = legacy.bernoulli(leaf(0.5, 0.5))
    with pytest.raises(ValueError, match=r"got reward of size \[3\], but expected a tensor of size \[2\]"):
        drawn.reinforce(gs.ones(3))
    with pytest.raises(TypeError, match="the reward must be a number or a tensor"):
        drawn.reinforce("good")
    drawn.reinforce(1.0)
    with pytest.raises(RuntimeError, match="you can only reinforce a stochastic Function once"):
        drawn.reinforce(1.0)
    with pytest.raises(RuntimeError, match="reinforce\\(\\) can be only called on outputs of stochastic functions"):
        leaf().reinforce(1.0)

"""Which operators make a gradient smaller or larger."""

import math

import pytest

from gradscope.inspect.adapters import adapter_for
from gradscope.inspect.diagnosis.flow.amplification import GainVisitor
from gradscope.inspect.diagnosis.flow.backward_replay import BackwardReplay


def towards(loss, leaf):
    adapter = adapter_for(loss)
    visitor = GainVisitor(adapter)
    BackwardReplay(adapter, loss).run(visitor.visit)
    return visitor.towards(leaf)


def test_the_operators_of_one_line_count_together(fw):
    w = fw.ones(4, requires_grad=True)
    x = w * 1
    for _ in range(3):
        x = x * 0.5
    (gain, *_) = towards(x.sum(), w)
    assert (gain.node, gain.times, round(gain.factor, 6)) == ("MulBackward0", 3, 0.5)


def test_smallest_first(fw):
    w = fw.ones(4, requires_grad=True)
    x = (w * 1).exp() * 100
    x = x * 0.001
    gains = towards(x.sum(), w)
    factors = [gain.factor**gain.times for gain in gains]
    assert factors == sorted(factors)
    assert math.isclose(math.prod(factors), 0.1 * math.e, rel_tol=1e-5)


def test_a_way_that_does_not_lead_to_the_leaf_does_not_count(fw):
    w, v = fw.ones(4, requires_grad=True), fw.ones(4, requires_grad=True)
    near, far = w * 2, (v * 3) * 7
    gains = towards((near * 5 + far).sum(), w)
    assert all(gain.factor < 6 for gain in gains)


def test_the_operator_that_uses_a_part_of_the_leaf_does_not_count(fw):
    w, x = fw.ones(2, 3, 4, requires_grad=True), fw.ones(10, 4)
    gains = towards((x.matmul(w[0].t()) * 0.5).sum(), w)
    assert [gain.node for gain in gains] == ["MulBackward0", "SumBackward0"]


def test_a_leaf_without_a_gradient(fw):
    w, v = fw.ones(4, requires_grad=True), fw.ones(4, requires_grad=True)
    assert towards((w * 2).sum(), v) == []


@pytest.mark.parametrize("name", ["gradscope", pytest.param("torch", marks=pytest.mark.torch)])
def test_a_gradient_that_a_hook_writes_on_its_way_is_measured_again(name):
    framework = pytest.importorskip(name)
    gradient = framework.ones(4)
    visitor = GainVisitor(adapter_for(gradient))
    for write, size in ((lambda: None, 5.0), (lambda: gradient.mul_(2), 2.0)):
        visitor._sent[7, 0] = visitor._state(gradient), 5.0
        write()
        assert visitor._arrived(7, 0, gradient) == size

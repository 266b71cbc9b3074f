"""The norms of the latest gradients."""

import weakref

import numpy
import pytest

import gradscope as gs
import gradscope.inspect as gi
from gradscope.inspect.adapters.recent_norms import RecentNorms


def test_the_latest_are_remembered_and_not_kept_alive():
    recent = RecentNorms()
    grads = [numpy.ones(2) for _ in range(80)]
    for number, grad in enumerate(grads):
        recent.note(grad, float(number))
    assert [recent.of(grad) for grad in grads[-2:]] == [78.0, 79.0]
    assert recent.of(grads[0]) is None
    alive = weakref.ref(grads.pop())
    del grad
    assert alive() is None


@pytest.mark.parametrize("lib", ["gradscope", pytest.param("torch", marks=pytest.mark.torch)])
@pytest.mark.parametrize("in_place", [False, True])
def test_norms_in_passing_are_those_of_each_node(lib, in_place):
    """What one node has made is given to the next, summed with others, or to one whose hook changes it."""
    lib = gs if lib == "gradscope" else pytest.importorskip(lib)
    first, second = lib.nn.Linear(40, 30), lib.nn.Linear(30, 20)
    inputs = lib.ones(10, 40)

    def step():
        for parameter in (*first.parameters(), *second.parameters()):
            parameter.grad = None
        hidden = first(inputs)
        hidden.register_hook(lambda grad: grad.mul_(3) if in_place else grad * 3)
        last = second(hidden.tanh())
        last.register_hook(lambda grad: grad.mul_(2) if in_place else grad * 2)
        ((last**2).mean() + hidden.exp().mean()).backward()

    def norms(*, recorded):
        session = gi.Debugger.for_call(step)
        session.record_always = recorded
        session.cont()
        session.wait(30)
        assert session.error is None
        return [record.norm for record in session.backward_records(1)]

    assert norms(recorded=False) == pytest.approx(norms(recorded=True), rel=1e-5)

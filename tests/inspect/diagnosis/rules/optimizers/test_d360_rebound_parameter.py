"""Steps of a program's own that are lost, and those that are not."""

import gradscope.inspect as gi


def found_in(fw, step, make=lambda fw: fw.ones(3, requires_grad=True)):
    """Return the codes of what is found where `step` takes four steps of a parameter."""
    w = make(fw)
    with gi.Doctor() as doctor:
        for _ in range(4):
            (w * fw.arange(3.0) - 1).square().sum().backward()
            w = step(w)
    return [symptom.code for symptom in doctor.diagnosis.symptoms]


def test_a_lost_step_without_no_grad_is_found(fw):
    def step(w):
        kept = w
        w = w - 0.1 * w.grad
        kept.grad = None
        return kept

    assert found_in(fw, step) == ["D360"]


def test_a_sum_with_the_negative_gradient_is_found(fw):
    def step(w):
        kept = w
        with fw.no_grad():
            w = -0.1 * w.grad + w
        kept.grad = None
        return kept

    assert found_in(fw, step) == ["D360"]


def test_a_new_leaf_is_healthy(fw):
    def step(w):
        with fw.no_grad():
            w = w - 0.1 * w.grad
        return w.requires_grad_()

    assert found_in(fw, step) == []


def test_a_look_ahead_beside_a_step_is_healthy(fw):
    def step(w):
        kept = w
        with fw.no_grad():
            w = w - 0.2 * w.grad
            assert w.sum() < kept.sum() + 10
            kept -= 0.1 * kept.grad
        kept.grad = None
        return kept

    assert found_in(fw, step) == []

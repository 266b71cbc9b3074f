"""At which node a backward has failed."""

import pytest

import gradscope.inspect as gi
from gradscope.inspect.adapters import adapter_for
from gradscope.inspect.diagnosis.functions.failed_backward import failed_backward
from tests.inspect.diagnosis.lines import line


def failure(loss):
    try:
        loss.backward()
    except RuntimeError as error:
        return failed_backward(adapter_for(loss), error)
    raise AssertionError("it ran")


def function(fw, gradients):
    class Broken(fw.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale):
            return x * scale

        @staticmethod
        def backward(ctx, grad):
            return gradients(grad)  # HERE: returned

    return Broken


def test_too_few_gradients(fw):
    x = fw.ones(3, requires_grad=True)
    with gi.track():
        loss = function(fw, lambda grad: grad).apply(x, 2.0).sum()  # HERE: used
    found = failure(loss)
    assert found.text.startswith("Broken.backward returned an incorrect number of gradients (expected 2, got 1) at ")
    assert (found.location.lineno, found.recorded.lineno) == (line(__file__, "returned"), line(__file__, "used"))
    assert found.help == "forward() takes x, scale: return as many, None for what has no gradient."
    assert found.certain


def test_a_gradient_of_another_shape(fw):
    x = fw.ones(3, requires_grad=True)
    loss = function(fw, lambda grad: (fw.ones(2), None)).apply(x, 2.0).sum()
    found = failure(loss)
    assert "Broken.backward returned an invalid gradient at index 0" in found.text
    assert found.location.lineno == line(__file__, "returned")
    assert "the shape of its input" in found.help


def test_no_return_statement(fw):
    class Forgotten(fw.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale):
            return x * scale

        @staticmethod
        def backward(ctx, grad):
            grad * 2

    found = failure(Forgotten.apply(fw.ones(3, requires_grad=True), 2.0).sum())
    assert "(expected 2, got 1); it has no return statement" in found.text


def test_an_error_of_its_own_says_only_where(fw):
    def raising(grad):
        raise RuntimeError("no such luck")

    x = fw.ones(3, requires_grad=True)
    with gi.track():
        loss = function(fw, raising).apply(x, 2.0).sum()  # HERE: raising
    found = failure(loss)
    assert found.text.startswith("the backward failed at BrokenBackward, recorded at ")
    assert (found.recorded.lineno, found.certain) == (line(__file__, "raising"), False)


def test_the_doctor_tells_of_it(fw):
    with gi.Doctor() as doctor:
        loss = function(fw, lambda grad: grad).apply(fw.ones(3, requires_grad=True), 2.0).sum()
        with pytest.raises(RuntimeError) as raised:
            loss.backward()
        assert doctor.explain(raised.value)
    (symptom,) = doctor.diagnosis.symptoms
    assert (symptom.kind, symptom.location.lineno) == ("failed", line(__file__, "returned"))

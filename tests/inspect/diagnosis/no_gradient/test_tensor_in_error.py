"""Which tensor an error is about."""

import pytest

import gradscope.inspect as gi
from gradscope.inspect.adapters import adapter_for
from gradscope.inspect.diagnosis.no_gradient.tensor_in_error import gradients_of_none, leaves_in, loss_without_graph
from tests.inspect.diagnosis.lines import line


def raised(function, *arguments):
    try:
        function(*arguments)
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


@pytest.mark.parametrize(
    "start",
    [
        lambda fw, loss: loss.backward(),
        lambda fw, loss: fw.autograd.backward(loss),
        lambda fw, loss: fw.autograd.backward([loss]),
        lambda fw, loss: fw.autograd.grad(loss, [fw.ones(1, requires_grad=True)]),
    ],
    ids=["method", "function", "list", "grad"],
)
def test_the_loss_and_the_line_that_asked(fw, start):
    loss = fw.ones(())

    def ask():
        start(fw, loss)  # HERE: asked

    found = loss_without_graph(adapter_for(loss), raised(ask))
    assert found.loss is loss
    assert found.location.source.startswith("lambda fw, loss: ")
    assert [frame.f_code.co_name for frame in found.frames[:2]] == ["<lambda>", "ask"]


def test_other_errors_are_not_about_a_graph(fw):
    adapter = adapter_for(fw.ones(1))
    assert loss_without_graph(adapter, ValueError("no data")) is None
    assert loss_without_graph(adapter, raised((fw.ones(2, requires_grad=True) * 2).backward)) is None


def test_leaves_among_variables(fw):
    def inner(w):
        raise ValueError(w)

    weight, data = fw.ones(2, requires_grad=True), fw.ones(2)
    error = raised(inner, weight)
    frame = error.__traceback__.tb_next.tb_frame
    assert data is not None
    assert [(name, leaf is weight) for name, leaf in leaves_in(adapter_for(data), [frame])] == [("w", True)]


@pytest.mark.filterwarnings("ignore:The .grad attribute")
def test_a_weight_that_became_a_result(fw):
    def train():
        weight = fw.ones(2, requires_grad=True)
        for _ in range(2):
            (weight * weight).sum().backward()
            weight = weight - 0.1 * weight.grad  # HERE: replaced

    with gi.Doctor() as doctor:
        assert doctor.explain(raised(train))
    (symptom,) = doctor.diagnosis.symptoms
    assert symptom.location.lineno == line(__file__, "replaced")
    assert "`weight`: replaced: it is the result of SubBackward0" in symptom.text


def test_an_attribute_without_a_gradient(fw):
    class Model:
        def __init__(self):
            self.weight = fw.ones(2, requires_grad=True)

        def clear(self):
            self.weight.grad.zero_()

    model = Model()
    (found,) = gradients_of_none(adapter_for(model.weight), raised(model.clear))
    assert (found[0], found[1] is model.weight) == ("self.weight", True)


def test_none_that_is_no_gradient(fw):
    def other():
        return None + fw.ones(2).sum().item()

    assert gradients_of_none(adapter_for(fw.ones(1)), raised(other)) == []


def test_leaves_of_a_program_without_modules(fw):
    def train():
        weight = fw.ones(3, requires_grad=True)
        loss = (weight * 2).argmax().float()  # HERE: argmax
        loss.backward()

    with gi.Doctor() as doctor:
        assert doctor.explain(raised(train))
    (symptom,) = doctor.diagnosis.symptoms
    assert "`weight`: not reached: argmax" in symptom.text
    assert symptom.location.lineno == line(__file__, "argmax")

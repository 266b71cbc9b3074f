"""Reference cycles through the graph."""

import gc

import pytest

import gradscope.inspect as gi
from gradscope.inspect.adapters import adapter_for
from gradscope.inspect.diagnosis.memory.reference_cycles import have_graphs, kept_own_outputs
from tests.inspect.diagnosis.lines import line


def functions(fw):
    class KeepsOutput(fw.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            result = x.exp()
            ctx.result = result  # HERE: stored
            return result

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.result

    class KeepsInput(fw.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.x = x
            return x * x

        @staticmethod
        def backward(ctx, grad):
            return 2 * grad * ctx.x

    return KeepsOutput, KeepsInput


def test_a_function_that_keeps_its_result(fw):
    keeps_output, _ = functions(fw)
    y = keeps_output.apply(fw.ones(2, requires_grad=True))
    (found,) = kept_own_outputs(adapter_for(y), y.grad_fn)
    assert found.text.startswith("`result` on the ctx of KeepsOutput is its own result")
    assert (found.location.filename, found.location.lineno) == (__file__, line(__file__, "stored"))
    assert "save_for_backward" in found.help


def test_inputs_and_other_nodes_make_none(fw):
    _, keeps_input = functions(fw)
    y = keeps_input.apply(fw.ones(2, requires_grad=True))
    adapter = adapter_for(y)
    assert kept_own_outputs(adapter, y.grad_fn) == kept_own_outputs(adapter, y.exp().grad_fn) == []


def test_the_doctor_tells_of_it_once(fw):
    keeps_output, _ = functions(fw)
    model = fw.nn.Linear(3, 2)
    with gi.Doctor() as doctor:
        for _ in range(3):
            keeps_output.apply(model(fw.ones(1, 3))).sum().backward()
    assert [s.kind for s in doctor.diagnosis.symptoms if s.kind == "cycle"] == ["cycle"]


@pytest.mark.filterwarnings("ignore:Using backward")
def test_gradients_with_a_graph(fw):
    model = fw.nn.Linear(3, 1)
    adapter = adapter_for(model.weight)
    (model(fw.ones(1, 3)) ** 2).sum().backward()
    assert not have_graphs(adapter)
    model.zero_grad()
    (model(fw.ones(1, 3)) ** 2).sum().backward(create_graph=True)
    assert have_graphs(adapter)
    model.zero_grad()


@pytest.mark.filterwarnings("ignore:Using backward")
def test_growth_names_the_backward_that_ties_them(fw):
    def trial():
        model = fw.nn.Linear(3, 1)
        (model(fw.ones(1, 3)) ** 2).sum().backward(create_graph=True)  # HERE: tied

    collecting = gc.isenabled()
    gc.disable()
    try:
        with gi.growth() as watch:
            for _ in range(6):
                trial()
    finally:
        if collecting:
            gc.enable()
    found = watch.result
    assert (found.kind, found.keepers) == ("kept graphs", ())
    assert found.location.lineno == line(__file__, "tied")
    assert "autograd.grad(create_graph=True)" in str(found)

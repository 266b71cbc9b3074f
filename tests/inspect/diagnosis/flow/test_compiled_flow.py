"""Gradients that vanish, or become zero, inside of what torch.compile has compiled."""

import pytest

torch = pytest.importorskip("torch")

import gradscope.inspect as gi  # noqa: E402

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(torch.__version__ < "2.8", reason="PyTorch 2.4 keeps no graph of what it has compiled"),
]


class Chain(torch.nn.Module):
    """Layers, each with a function behind it."""

    def __init__(self, function, layers=1, bias=0.0):
        super().__init__()
        torch.manual_seed(0)
        self.function = function
        self.layers = torch.nn.ModuleList([torch.nn.Linear(8, 8) for _ in range(layers)])
        with torch.no_grad():
            self.layers[0].bias.fill_(bias)
        self.head = torch.nn.Linear(8, 2)

    def forward(self, x):
        """Return what is compiled."""
        for layer in self.layers:
            x = self.function(layer(x))  # HERE
        return self.head(x)


def found_in(model):
    """Return what is found where a model is compiled, and learns from one batch."""
    torch.compiler.reset()
    with gi.Doctor() as doctor:
        compiled = torch.compile(model, backend="aot_eager")
        (compiled(torch.randn(6, 8)) - 1).square().mean().backward()
    return doctor.diagnosis


def test_a_dead_rectifier_is_the_cause_of_a_zero_gradient():
    diagnosis = found_in(Chain(torch.relu, bias=-100.0))
    (symptom,) = diagnosis.symptoms
    assert symptom.code == "D316"
    assert "the ReLU is not active for any of its 48 inputs" in symptom.text
    assert symptom.location.source == "x = self.function(layer(x))  # HERE"
    (unseen,) = diagnosis.unseen
    assert unseen.startswith("the forward pass of what torch.compile has compiled (")


def test_the_function_that_makes_it_vanish_is_named():
    (symptom,) = found_in(Chain(torch.sigmoid, layers=9)).symptoms
    assert symptom.code == "D314"
    assert "sigmoid inside of what is compiled at " in symptom.text
    assert "multiplies them 9 times, by 0.24 each" in symptom.text


def test_of_a_healthy_one_nothing_is_said():
    assert found_in(Chain(torch.nn.functional.gelu, layers=3)).symptoms == ()


def test_modules_of_pytorch_have_no_line_of_the_program():
    layers = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    with torch.no_grad():
        layers[0].bias.fill_(-100.0)
    diagnosis = found_in(layers)
    (symptom,) = diagnosis.symptoms
    assert "the ReLU in `1` is not active" in symptom.text
    assert symptom.location is None
    assert diagnosis.unseen == (
        "the forward pass of what torch.compile has compiled (3 calls in modules of PyTorch's own)",
    )

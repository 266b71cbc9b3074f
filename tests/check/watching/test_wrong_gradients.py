import math

import pytest

import gradscope as gs
from gradscope.check import Sanitizer
from gradscope.check.watching.wrong_gradients import WrongGradient, largest_first


@pytest.fixture(params=["gradscope", pytest.param("torch", marks=pytest.mark.torch)])
def lib(request):
    """A framework: gradscope's own, or PyTorch."""
    return gs if request.param == "gradscope" else pytest.importorskip("torch")


def differences(run):
    """Return how wrong the gradients are that a function meets, by name, and what could not be measured."""
    with Sanitizer(keep_going=True) as sanitizer:
        run()
    return {wrong.name: wrong.difference for wrong in sanitizer.gradients}, sanitizer.unseen


def test_a_difference_is_that_of_the_gradient_with_what_is_there(lib):
    """Beside the same program with a silent write, and without the option: it has the wrong gradients itself."""

    def gradients(spoil):
        lib.manual_seed(0)
        model = lib.nn.Sequential(lib.nn.Linear(3, 4), lib.nn.Tanh(), lib.nn.Linear(4, 2), lib.nn.Softmax(1))
        inputs = lib.ones(5, 3) + lib.nn.functional.one_hot(lib.arange(5) % 3, 3)
        hidden = model[1](model[0](inputs))
        loss = (model[2](hidden) ** 2).sum() + hidden.mean()
        if spoil:
            model[2].weight.data.mul_(3)
            hidden.data.add_(0.25)
        loss.backward()
        return {f"model.{name}": p.grad.double() for name, p in model.named_parameters()}

    right, wrong = gradients(False), gradients(True)
    told, unseen = differences(lambda: gradients(True))
    expected = {name: ((wrong[name] - right[name]).norm() / right[name].norm()).item() for name in right}
    assert told == pytest.approx({name: value for name, value in expected.items() if value}, rel=1e-4)
    assert len(told) == 3  # the bias of the last layer is not concerned
    assert unseen == ()


def test_what_a_node_broadcasts_is_added_up(lib):
    def run():
        bias = lib.ones(3, requires_grad=True)
        product = (bias.exp() + lib.zeros(4, 3)) * lib.ones(4, 3)
        with lib.no_grad():
            scale = lib.full((4, 3), 2.0)
        loss = (product * scale).sum()
        scale.mul_(3)
        loss.backward()

    assert differences(run) == ({"bias": pytest.approx(2.0)}, ())


def test_a_gradient_of_zero_is_wrong_without_bounds(lib):
    def run():
        x, mask = lib.ones(3, requires_grad=True), lib.zeros(3)
        loss = (x * mask).sum()
        mask.add_(1)
        loss.backward()

    assert differences(run) == ({"x": math.inf}, ())


def test_the_programs_own_code_runs_once_and_is_told_of(lib):
    calls = []

    class Doubled(lib.autograd.Function):
        @staticmethod
        def forward(ctx, value):
            return value * 2

        @staticmethod
        def backward(ctx, grad):
            calls.append(None)
            return grad * 2

    def run():
        x, factor = lib.ones(3, requires_grad=True), lib.ones(3)
        loss = (Doubled.apply(x) * factor).sum()
        factor.add_(1)
        loss.backward()
        assert x.grad.tolist() == [2.0] * 3

    told, unseen = differences(run)
    assert told == {}
    assert unseen == (
        "how wrong gradients would be behind DoubledBackward, which is the program's own code, which runs once",
    )
    assert len(calls) == 1


def test_what_cannot_run_with_what_is_there_is_told_of(lib):
    def run():
        x = lib.ones(3, requires_grad=True)
        loss = (x * x).sum()
        x.data = lib.ones(2)
        with pytest.raises(RuntimeError):
            loss.backward()

    told, _ = differences(run)
    assert told == {}


def test_what_is_no_number_stands_first():
    gradients = [WrongGradient(name, (), "float32", float(name), None) for name in ("1", "nan", "inf", "2")]
    assert [wrong.name for wrong in largest_first(gradients)] in (["nan", "inf", "2", "1"], ["inf", "nan", "2", "1"])

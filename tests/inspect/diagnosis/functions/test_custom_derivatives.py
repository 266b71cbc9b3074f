"""Whether the backward of a custom Function is the derivative of its forward."""

import random
import subprocess
import sys
from xml.etree import ElementTree

import numpy
import pytest

import gradscope.inspect as gi
from tests.inspect.diagnosis.lines import line


def function(fw, forward, backward, name="Tried"):
    body = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type(name, (fw.autograd.Function,), body)


def square(ctx, x):
    ctx.save_for_backward(x)
    return x * x


def half_of_it(ctx, grad):
    (x,) = ctx.saved_tensors
    return grad * x  # HERE: wrong


def all_of_it(ctx, grad):
    (x,) = ctx.saved_tensors
    return 2 * grad * x


def found(fw, forward, backward, *args):
    with gi.functions() as watch:
        function(fw, forward, backward).apply(*args)
    (one,) = watch.result.checked
    return one


def leaf(fw, *shape):
    fw.manual_seed(0)
    return fw.randn(*shape).requires_grad_()


def test_a_wrong_factor_is_found_with_the_line_of_the_backward(fw):
    one = found(fw, square, half_of_it, leaf(fw, 3))
    assert one.verdict == "wrong"
    assert one.location.lineno == line(__file__, "wrong") - 2
    told, measured = (float(text.split()[0].rstrip(",")) for text in (
        one.text.partition("gradient ")[2], one.text.partition("differences ")[2],
    ))  # fmt: skip
    assert measured == pytest.approx(2 * told, rel=1e-4)
    assert one.called.filename == __file__


def test_a_right_backward_is_right(fw):
    assert found(fw, square, all_of_it, leaf(fw, 3)).verdict == "right"


def test_several_inputs_and_results_and_what_is_no_tensor(fw):
    def forward(ctx, x, weight, factor):
        ctx.save_for_backward(x, weight)
        ctx.factor = factor
        return (x @ weight) * factor, x.sum()

    def backward(ctx, grad, grad_of_sum):
        x, weight = ctx.saved_tensors
        return grad @ weight.T * ctx.factor + grad_of_sum, x.T @ grad * ctx.factor, None

    def swapped(ctx, grad, grad_of_sum):
        first, second, _ = backward(ctx, grad, grad_of_sum)
        return second, first, None

    square_ones = leaf(fw, 3, 3), fw.ones(3, 3, requires_grad=True)
    assert found(fw, forward, backward, *square_ones, 3.0).verdict == "right"
    assert "input 0" in found(fw, forward, swapped, *square_ones, 3.0).text


@pytest.mark.parametrize(
    ("forward", "backward"),
    [
        (lambda ctx, x: x.round(), lambda ctx, grad: grad),  # straight-through
        (lambda ctx, x: x.view_as(x), lambda ctx, grad: -grad),  # reversal
        (lambda ctx, x: (x > 0).to(x.dtype), lambda ctx, grad: grad * 0.5),  # a spike with a surrogate
    ],
)
def test_a_gradient_that_is_chosen_is_no_finding(fw, forward, backward):
    one = found(fw, forward, backward, leaf(fw, 3))
    assert one.verdict == "chosen"
    with gi.functions() as watch:
        function(fw, forward, backward).apply(leaf(fw, 3))
    assert not watch.result


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_where_a_result_happens_to_be_its_input(fw, value):
    one = found(fw, square, lambda ctx, grad: grad * 3, fw.full((3,), value, requires_grad=True))
    assert one.verdict == "wrong"


def test_what_draws_random_numbers_is_not_judged(fw):
    def forward(ctx, x):
        mask = (fw.rand(*x.shape) > 0.5).to(x.dtype)
        ctx.save_for_backward(mask)
        return x * mask

    one = found(fw, forward, lambda ctx, grad: grad * ctx.saved_tensors[0], leaf(fw, 50))
    assert (one.verdict, "another result each time" in one.text) == ("unknown", True)


def test_what_gives_no_numbers_is_not_judged(fw):
    one = found(fw, lambda ctx, x: x.log(), lambda ctx, grad: grad, fw.zeros(3, requires_grad=True))
    assert one.text.endswith("was not checked: its forward gives NaN or Inf there")


def test_a_function_for_one_dtype_is_checked_in_it(fw):
    def forward(ctx, x):
        if x.dtype != fw.float32:
            raise TypeError("float32 only")
        return square(ctx, x)

    assert found(fw, forward, all_of_it, leaf(fw, 3)).verdict == "right"
    assert found(fw, forward, half_of_it, leaf(fw, 3)).verdict == "wrong"


def test_what_cannot_be_run_again_is_said(fw):
    calls = []

    def once(ctx, x):
        calls.append(x)
        if len(calls) > 1:
            raise ValueError("the queue is empty")
        return x * 2

    one = found(fw, once, lambda ctx, grad: grad * 2, leaf(fw, 3))
    assert one.text.endswith("was not checked: run again it raised ValueError: the queue is empty")


def test_a_function_that_writes_its_input(fw):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(3)

    assert found(fw, forward, lambda ctx, grad: grad * 3, leaf(fw, 3) * 1).verdict == "right"
    assert found(fw, forward, lambda ctx, grad: grad, leaf(fw, 3) * 1).verdict == "wrong"


def test_the_program_computes_what_it_computes_without(fw):
    def train():
        fw.manual_seed(0)
        weight = fw.randn(4).requires_grad_()
        tried = function(fw, square, half_of_it)
        for _ in range(3):
            loss = (tried.apply(weight) * fw.rand(4)).sum()
            loss.backward()
            with fw.no_grad():
                weight -= 0.1 * weight.grad
        return numpy.array(weight.detach().numpy())

    plain = train()
    with gi.functions() as watch:
        watched = train()
    assert plain.tobytes() == watched.tobytes()
    assert [found.verdict for found in watch.result.checked] == ["wrong"]


def test_inputs_that_need_no_gradient_and_large_ones_are_left_alone(fw):
    with gi.functions() as watch:
        function(fw, square, half_of_it).apply(fw.ones(3))
        function(fw, square, half_of_it).apply(fw.ones(1 << 21, requires_grad=True))
    assert str(watch.result) == "No custom Function has run with an input that requires grad."


_SCRIPT = """
import {framework} as fw

class Square(fw.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x

x = fw.ones(3, requires_grad=True)
Square.apply(x).sum().backward()
print(x.grad.tolist())
"""


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--functions",)])
def test_the_doctor_tells(fw, tmp_path, options):
    script = tmp_path / "train.py"
    script.write_text(_SCRIPT.format(framework=fw.__name__))
    command = [sys.executable, "-m", "gradscope", "doctor"]
    run = subprocess.run([*command, *options, script], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "D304 wrong gradient (likely): Square.backward" in run.stdout
    assert "train.py:11)" in run.stdout
    assert "1 finding in 1 backward pass." in run.stdout


def diagnosed(fw, forward, backward, *others):
    """Return the names of the wrong Functions after a block of the doctor, and in it."""
    with gi.Doctor() as doctor:
        function(fw, forward, backward).apply(leaf(fw, 3), *others).sum().backward()
        inside = doctor.diagnosis.functions
    assert inside == ()
    return [found.name for found in doctor.diagnosis.functions]


def test_a_program_that_goes_on_does_not_notice_the_check(fw, capsys):
    ran = []

    def noisy(ctx, x):
        ran.append(print("forward"))
        fw.rand(1), random.random(), numpy.random.rand()  # noqa: NPY002 - what programs do
        return square(ctx, x)

    def states():
        return fw.get_rng_state().tolist(), random.getstate(), numpy.random.get_state()[1].tolist()  # noqa: NPY002 - the same

    with gi.Doctor() as doctor:
        function(fw, noisy, half_of_it).apply(leaf(fw, 3)).sum().backward()
    assert capsys.readouterr().out == "forward\n"
    before = states()
    assert len(doctor.diagnosis.functions) == 1
    assert (states(), capsys.readouterr()) == (before, ("", ""))
    assert len(ran) > 1


def test_without_being_asked_to_no_function_runs_again_that_may_change_what_it_was_given(fw):
    def counted(ctx, x, calls):
        calls.append(1)
        return square(ctx, x)

    calls = []
    assert diagnosed(fw, counted, lambda ctx, grad: (half_of_it(ctx, grad), None), calls) == []
    assert calls == [1]


def test_one_direction_for_all_inputs_tells_right_from_wrong(fw):
    def product(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    def right(ctx, grad):
        x, y = ctx.saved_tensors
        return grad * y, grad * x

    def crossed(ctx, grad):
        x, y = ctx.saved_tensors
        return grad * x, grad * y

    assert diagnosed(fw, product, right, 100 * leaf(fw, 3) + 1) == []
    assert len(diagnosed(fw, product, crossed, 100 * leaf(fw, 3) + 1)) == 1


def test_in_a_notebook_the_verdict_stands_with_its_lines(fw):
    def texts(checked):
        return [text for text in ElementTree.fromstring(checked._repr_html_()).itertext() if text.strip()]

    x = leaf(fw, 3)
    with gi.functions() as watch:
        function(fw, square, half_of_it, name="<Wrong>").apply(x).sum().backward()
    (wrong,) = watch.result.checked
    told = texts(wrong)
    assert told[:3] == ["<Wrong>", " · ", "wrong"]
    assert told[-1] == str(wrong)
    assert wrong.location.source in told
    assert wrong.called.source in told
    assert "color: #d32f2f" in wrong._repr_html_()
    unknown = gi.CheckedFunction("Other", "unknown", "It could not be run again.", None, None)
    assert texts(unknown) == ["Other", " · unknown", "It could not be run again."]
    assert "color" not in unknown._repr_html_()

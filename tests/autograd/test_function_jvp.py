"""User-defined functions in forward mode: Function.jvp; as in PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

import gradscope as gs
from tests.autograd.compare import Programs, custom

program = Programs()


def dual(m: Any, *values: float) -> Any:
    """Return a dual tensor whose tangent is its value."""
    tensor = m.tensor(list(values), dtype=m.float64)
    return m.autograd.forward_ad.make_dual(tensor, tensor.clone())


def tangent(m: Any, tensor: Any) -> Any:
    """Return the tangent of a tensor."""
    return m.autograd.forward_ad.unpack_dual(tensor).tangent


def with_jvp(m: Any, jvp: Any, forward: Any = None) -> Any:
    """Return a Function with this jvp; it doubles unless `forward` says otherwise."""
    return custom(m, forward or (lambda ctx, x: x * 2), lambda ctx, grad: grad * 2, jvp=jvp)


# --- what jvp is given ------------------------------------------------------------------------------------------------


@program(returns=[[[6.0], [1.0], [0.0], None, [1.0], [2.0], None, True], [18.0]])
def jvp_gets_tangents_and_what_was_saved(m):
    seen = []

    def forward(ctx, x, y, factor):
        ctx.save_for_forward(x, y)
        ctx.factor = factor
        return x * y * factor

    def jvp(ctx, dx, dy, dfactor):
        x, y = ctx.saved_tensors
        seen.extend([dx, dy, dfactor, x, y, tangent(m, x), m.is_grad_enabled()])
        return dx * y * ctx.factor + dy * x * ctx.factor

    f = with_jvp(m, jvp, forward)
    with m.autograd.forward_ad.dual_level():
        first = tangent(m, f.apply(dual(m, 1.0), m.tensor([2.0], dtype=m.float64), 3))
        facts = [first, *seen]
        return [facts, tangent(m, f.apply(dual(m, 1.0), dual(m, 3.0), 3))]


@program(returns=[[1.0], None, [1.0]])
def missing_tangents_need_not_be_zeros(m):
    seen = []

    def forward(ctx, x, y):
        ctx.set_materialize_grads(False)
        return x + y

    def jvp(ctx, dx, dy):
        seen.extend([dx, dy])
        return dx

    with m.autograd.forward_ad.dual_level():
        y = with_jvp(m, jvp, forward).apply(dual(m, 1.0), m.ones(1, dtype=m.float64))
        return [*seen, tangent(m, y)]


@program(returns=[None, None, "FBackward", [2.7183], [2.7183]])
def beside_a_setup_context(m):
    seen = []
    x = m.tensor([1.0], requires_grad=True)

    def forward(x):
        seen.extend([tangent(m, x), tangent(m, x * 2)])
        return x.exp()

    def setup_context(ctx, inputs, output):
        ctx.save_for_forward(output)
        ctx.save_for_backward(output)

    def jvp(ctx, dx):
        (result,) = ctx.saved_tensors
        seen.append(result.grad_fn.name())
        return dx * result

    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0]

    f = custom(m, forward, backward, setup_context=setup_context, jvp=jvp)
    with m.autograd.forward_ad.dual_level():
        y = f.apply(m.autograd.forward_ad.make_dual(x, m.ones(1)))
        return [*seen, tangent(m, y), m.autograd.grad(tangent(m, y), x)[0]]


@program(returns=[[12.0], [1.0], [12.0], []])
def its_backward_sees_tangents(m):
    seen = []

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        seen.append(tangent(m, x))
        return 3 * x**2 * grad

    def jvp(ctx, dx):
        kept.append(list(ctx.saved_tensors))
        return dx

    kept: list[Any] = []
    x = m.tensor([2.0], requires_grad=True)
    with m.autograd.forward_ad.dual_level():
        d = m.autograd.forward_ad.make_dual(x, m.ones(1))
        (g,) = m.autograd.grad(custom(m, forward, backward, jvp=jvp).apply(d), d)
        return [g, *seen, tangent(m, g), kept[0]]


@program(returns=[[2.0], None, [3.0]])
def several_outputs(m):
    def forward(ctx, x):
        return x * 2, m.tensor([1]), x * 3

    with m.autograd.forward_ad.dual_level():
        outputs = with_jvp(m, lambda ctx, dx: (dx * 2, None, dx * 3), forward).apply(dual(m, 1.0))
        return [tangent(m, output) for output in outputs]


@program(returns=[True, [2.0]])
def without_dual_arguments_jvp_is_not_called(m):
    f = with_jvp(m, lambda ctx, dx: 1 / 0)
    with m.autograd.forward_ad.dual_level():
        y = f.apply(m.ones(1))
        return [tangent(m, y) is None, y]


# --- what jvp may return ----------------------------------------------------------------------------------------------


@program(raises=(NotImplementedError, "You must implement the jvp function for custom autograd.Function to use it"))
def a_function_without_jvp(m):
    f = custom(m, lambda ctx, x: x * 2, lambda ctx, grad: grad * 2)
    with m.autograd.forward_ad.dual_level():
        f.apply(dual(m, 1.0))


@program(raises=(RuntimeError, "returned an invalid number of forward gradients (expected 1 but got 2)"))
def too_many_tangents(m):
    with m.autograd.forward_ad.dual_level():
        with_jvp(m, lambda ctx, dx: (dx, dx)).apply(dual(m, 1.0))


@program(raises=(RuntimeError, "expected Variable or None (got int) for grad output 0."))
def a_number_for_a_tangent(m):
    with m.autograd.forward_ad.dual_level():
        with_jvp(m, lambda ctx, dx: 3).apply(dual(m, 1.0))


@program(raises=(RuntimeError, "Trying to set a forward gradient that has a different size than that of the original"))
def a_tangent_of_another_shape(m):
    with m.autograd.forward_ad.dual_level():
        with_jvp(m, lambda ctx, dx: dx.sum()).apply(dual(m, 1.0, 2.0))


@program(raises=(RuntimeError, "Function's jvp returned a gradient at position 0, but"))
def a_tangent_for_a_constant(m):
    def forward(ctx, x):
        y = x * 2
        ctx.mark_non_differentiable(y)
        return y

    with m.autograd.forward_ad.dual_level():
        with_jvp(m, lambda ctx, dx: dx, forward).apply(dual(m, 1.0))


@program(returns=[None])
def no_tangent_for_a_constant(m):
    def forward(ctx, x):
        y = x * 2
        ctx.mark_non_differentiable(y)
        return y

    with m.autograd.forward_ad.dual_level():
        return [tangent(m, with_jvp(m, lambda ctx, dx: None, forward).apply(dual(m, 1.0)))]


@program(raises=(RuntimeError, "forward is returning a view (or an input as-is) but the jvp is not returning a view."))
def a_view_whose_tangent_is_none(m):
    with m.autograd.forward_ad.dual_level():
        with_jvp(m, lambda ctx, dx: dx.clone(), lambda ctx, x: x.view_as(x)).apply(dual(m, 1.0))


@program(raises=(RuntimeError, "forward is returning a view (or an input as-is) but the jvp is not returning a view."))
def an_argument_returned_as_it_is(m):
    with m.autograd.forward_ad.dual_level():
        with_jvp(m, lambda ctx, dx: dx, lambda ctx, x: x).apply(dual(m, 1.0))


@program(returns=[[1.0, 2.0]])
def a_view_of_a_tangent(m):
    with m.autograd.forward_ad.dual_level():
        y = with_jvp(m, lambda ctx, dx: dx.view_as(dx), lambda ctx, x: x.view_as(x)).apply(dual(m, 1.0, 2.0))
        return [tangent(m, y)]


def doubled_in_place(ctx, x):
    ctx.mark_dirty(x)
    return x.mul_(2)


@program(returns=[[2.0, 4.0], [2.0, 4.0]])
def a_tangent_written_in_place(m):
    with m.autograd.forward_ad.dual_level():
        x = dual(m, 1.0, 2.0)
        y = with_jvp(m, lambda ctx, dx: dx.mul_(2), doubled_in_place).apply(x)
        return [tangent(m, y), tangent(m, x)]


@program(raises=(RuntimeError, "An inplace custom Function is not modifying the forward mode gradients inplace."))
def a_tangent_that_should_have_been_written(m):
    with m.autograd.forward_ad.dual_level():
        with_jvp(m, lambda ctx, dx: dx * 2, doubled_in_place).apply(dual(m, 1.0))


@program(returns=[[5.0], [0.0, 5.0]])
def an_argument_without_tangent_written_in_place(m):
    def forward(ctx, x, y):
        ctx.mark_dirty(x)
        return x.copy_(y)

    with m.autograd.forward_ad.dual_level():
        base = m.zeros(2, dtype=m.float64)
        y = with_jvp(m, lambda ctx, dx, dy: dx.copy_(dy), forward).apply(base[1:], dual(m, 5.0))
        return [tangent(m, y), tangent(m, base)]


def test_a_missing_tangent_is_named():
    with gs.autograd.forward_ad.dual_level():
        with pytest.raises(RuntimeError, match=r"jvp returned None at position 0.*\n.*FBackward: return zeros"):
            with_jvp(gs, lambda ctx, dx: None).apply(dual(gs, 1.0))


def test_functions_of_the_first_style_have_no_jvp():
    class Double(gs.autograd.Function):
        def forward(self, x):
            return x * 2

    with gs.autograd.forward_ad.dual_level():
        with pytest.raises(NotImplementedError, match="You must implement the jvp function"):
            Double()(dual(gs, 1.0))


def test_forward_mode_is_on_again_after_an_error_in_forward_or_jvp():
    def fail(ctx, x):
        raise ValueError("no")

    with gs.autograd.forward_ad.dual_level():
        x = dual(gs, 1.0)
        for function in (with_jvp(gs, None, fail), with_jvp(gs, fail)):
            with pytest.raises(ValueError, match="no"):
                function.apply(x)
            assert tangent(gs, x * 2).tolist() == [2.0]


def test_a_complex_gradient_of_a_real_argument_is_refused():
    function = custom(gs, lambda ctx, x: x * 2, lambda ctx, grad: grad * (1 + 1j))
    x = gs.ones(1, requires_grad=True)
    for create_graph in (False, True):
        with pytest.raises(
            RuntimeError, match=r"FBackward returned a complex gradient .* for argument 0, which is real"
        ):
            gs.autograd.grad(function.apply(x).sum(), x, create_graph=create_graph)


@pytest.mark.parametrize(("run", "returns", "raises"), program.found)
def test_program(run, returns, raises):
    program.check(gs, run, returns, raises)


@pytest.mark.torch
@pytest.mark.parametrize(("run", "returns", "raises"), program.found)
def test_program_in_torch(run, returns, raises, torch):
    program.check(torch, run, returns, raises)

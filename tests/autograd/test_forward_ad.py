"""Forward mode: dual levels, what carries a tangent, writes, mixed modes; as in PyTorch."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope.autograd import forward_ad
from gradscope.autograd.forward_ad import dual_level, make_dual, set_fwd_grad_enabled, unpack_dual
from gradscope.runtime import events, state
from gradscope.runtime.tensor import tangents
from tests.autograd.compare import Programs, leaf

program = Programs()


@pytest.fixture(autouse=True)
def _levels_are_left():
    """A test leaves no level open."""
    yield
    left = tangents.level is not None
    if left:
        tangents.leave()
    assert not left, "a dual level is left open"


def ad(m: Any) -> Any:
    """Return the module of forward mode."""
    return m.autograd.forward_ad


def dual(m: Any, values: list[Any], tangent: list[Any]) -> Any:
    """Return a dual tensor of float64."""
    return ad(m).make_dual(m.tensor(values, dtype=m.float64), m.tensor(tangent, dtype=m.float64))


def tangent(m: Any, tensor: Any) -> Any:
    """Return the tangent of a tensor."""
    return ad(m).unpack_dual(tensor).tangent


# --- levels -----------------------------------------------------------------------------------------------------------


@program(returns=[[2.0, 4.0], [1.0, 2.0], "UnpackedDualTensor", ["primal", "tangent"], 0])
def a_dual_tensor_is_a_value_and_a_tangent(m):
    with ad(m).dual_level() as level:
        unpacked = ad(m).unpack_dual(dual(m, [2.0, 4.0], [1.0, 2.0]))
    return [*unpacked, type(unpacked).__name__, list(unpacked._fields), level]


@program(raises=(RuntimeError, "Nested forward mode AD is not supported at the moment"))
def levels_do_not_nest(m):
    with ad(m).dual_level(), ad(m).dual_level():
        pass


@program(raises=(RuntimeError, "Dual level must be a positive number"))
def there_must_be_a_level_to_leave(m):
    ad(m).exit_dual_level()


@program(raises=(RuntimeError, "Trying to exit a forward AD level that was not the last one"))
def only_the_open_level_can_be_left(m):
    ad(m).enter_dual_level()
    try:
        ad(m).exit_dual_level(level=3)
    finally:
        ad(m).exit_dual_level()


@program(raises=(RuntimeError, "Trying to create a dual Tensor for forward AD but no level exists"))
def dual_tensors_live_in_a_level(m):
    ad(m).make_dual(m.ones(2), m.ones(2))


@program(returns=[[2.0, 2.0], None, None])
def tangents_are_dropped_at_the_end_of_the_level(m):
    with ad(m).dual_level():
        x = ad(m).make_dual(m.ones(2), m.ones(2))
        y = x * 2
    outside = ad(m).unpack_dual(y)
    with ad(m).dual_level():
        return [outside.primal, outside.tangent, tangent(m, x)]


@program(returns=[[3.0]])
def a_level_is_a_decorator(m):
    @ad(m).dual_level()
    def run():
        return tangent(m, dual(m, [1.0], [1.0]) * 3)

    return [run()]


@program(returns=[None, None, [2.0]])
def forward_mode_can_be_switched_off(m):
    with ad(m).dual_level():
        x = dual(m, [1.0], [1.0])
        with ad(m)._set_fwd_grad_enabled(False):
            y = x * 2
            hidden = tangent(m, x)
        return [hidden, tangent(m, y), tangent(m, x * 2)]


# --- make_dual and unpack_dual ----------------------------------------------------------------------------------------


@program(raises=(RuntimeError, "Trying to set a forward gradient that has a different size than that of the original"))
def a_tangent_has_the_shape_of_its_tensor(m):
    with ad(m).dual_level():
        ad(m).make_dual(m.ones(2), m.ones(1))


@program(raises=(ValueError, "Expected primal to be floating point or complex, but got"))
def integers_have_no_tangent(m):
    with ad(m).dual_level():
        ad(m).make_dual(m.tensor([1, 2]), m.ones(2))


@program(raises=(ValueError, "Expected tangent to be floating point or complex, but got"))
def integers_are_no_tangents(m):
    with ad(m).dual_level():
        ad(m).make_dual(m.ones(2), m.tensor([1, 2]))


@program(raises=(RuntimeError, "Making a dual Tensor based on a Tensor that already has a forward gradient"))
def a_dual_tensor_is_not_made_dual_again(m):
    with ad(m).dual_level():
        ad(m).make_dual(dual(m, [1.0], [1.0]), m.ones(1))


@program(raises=(RuntimeError, "Setting a forward grad that itself has a forward gradient"))
def a_tangent_has_no_tangent(m):
    with ad(m).dual_level():
        ad(m).make_dual(m.ones(1), dual(m, [1.0], [1.0]))


@program(returns=[True, True, False, True, "ViewBackward0", None])
def the_tangent_is_carried_as_it_is(m):
    x, v = leaf(m), m.ones(3)
    with ad(m).dual_level():
        y = ad(m).make_dual(x, v)
        primal, carried = ad(m).unpack_dual(y)
        return [carried is v, y._base is x, primal is x, primal._base is x, y.grad_fn, tangent(m, primal)]


@program(returns=[False, [3, 1], [[0.0, 2.0, 4.0], [1.0, 3.0, 5.0]]])
def a_tangent_of_other_strides_is_copied(m):
    with ad(m).dual_level():
        v = m.arange(6.0).reshape(3, 2).t()
        carried = tangent(m, ad(m).make_dual(m.ones(2, 3), v))
        return [carried is v, list(carried.stride()), carried]


@program(returns=[[1.0], None, [3], None])
def what_is_no_dual_tensor_has_no_tangent(m):
    with ad(m).dual_level():
        return [*ad(m).unpack_dual(m.ones(1)), *ad(m).unpack_dual(m.tensor([3]))]


@program(
    returns=[
        "tensor([1., 1.], tangent=tensor([1., 1.]))",
        "tensor([2., 2.], tangent=tensor([2., 2.]))",
        "tensor([1., 1.])",
    ]
)
def a_tangent_is_printed(m):
    with ad(m).dual_level():
        x = ad(m).make_dual(m.ones(2), m.ones(2))
        inside = [repr(x), repr(x * 2)]
    return [*inside, repr(x)]


def test_what_is_no_tensor_is_refused():
    with dual_level():
        with pytest.raises(TypeError, match="argument 'primal' must be Tensor, not list"):
            make_dual([1.0], gs.ones(1))  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="argument 'tangent' must be Tensor, not float"):
            make_dual(gs.ones(1), 1.0)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="argument 'tensor' must be Tensor, not int"):
            unpack_dual(3)  # type: ignore[arg-type]
        with pytest.raises(RuntimeError, match=r"Expected the tangent of a real tensor to be real.*\nUse tangent.real"):
            make_dual(gs.ones(1), gs.tensor([1j]))


# --- operators --------------------------------------------------------------------------------------------------------


@program(returns=[None, None, None, [0.0, 0.0], [0.0, 0.0], 3.0, None, None])
def what_has_no_derivative_has_no_tangent(m):
    with ad(m).dual_level():
        x = dual(m, [2.0, 5.0], [1.0, 3.0])
        found = [x.argmax(), x.long(), x > 2, x.sign(), x.floor(), x.max(0)[0], x.max(0)[1], m.zeros_like(x)]
        return [tangent(m, y) for y in found]


@program(returns=[None, None, [1.0], [2.0]])
def detach_drops_the_tangent_and_clone_keeps_it(m):
    with ad(m).dual_level():
        x = dual(m, [1.0], [1.0])
        found = [tangent(m, x.detach()), tangent(m, x.data), tangent(m, x.clone())]
        y = x * 2
        kept = tangent(m, y)
        y.detach_()
        assert tangent(m, y) is None
        return [*found, kept]


@program(returns=[[2.0, 6.0], None])
def no_grad_does_not_stop_forward_mode_but_inference_mode_does(m):
    with ad(m).dual_level():
        with m.no_grad():
            first = tangent(m, dual(m, [1.0, 1.0], [1.0, 3.0]) * 2)
        with m.inference_mode():
            return [first, tangent(m, dual(m, [1.0, 1.0], [1.0, 3.0]) * 2)]


@program(raises=(NotImplementedError, "Trying to use forward AD with mul_out that does not support it"))
def out_forms_have_no_tangent(m):
    with ad(m).dual_level():
        m.mul(dual(m, [1.0], [1.0]), 2, out=m.empty(1, dtype=m.float64))


@program(raises=(NotImplementedError, "that does not support it"))
def an_operator_without_derivative_refuses(m):
    with ad(m).dual_level():
        dual(m, [1.0], [1.0]) // 2


@program(returns=[[[2.0, 10.0]], 3.5355, 2.0, [[2.0, 3.0]]])
def complex_tensors(m):
    with ad(m).dual_level():
        z = ad(m).make_dual(m.tensor([1.0 + 1.0j]), m.tensor([2.0 + 3.0j]))
        square = tangent(m, z * z)
        parts = [[-float(square.real[0]), float(square.imag[0])]]
        return [
            parts,
            float(tangent(m, z.abs())[0]),
            float(tangent(m, z.real)[0]),
            tangent(m, m.view_as_real(z)),
        ]


def mlp(m, x, w):
    hidden = m.nn.functional.linear(x, w, x[0, :2])
    return m.nn.functional.gelu(hidden) @ hidden.t()


def network(m, x, w):
    F = m.nn.functional
    image = x.reshape(1, 1, 4, 5)
    y = F.conv2d(image, w.reshape(1, 1, 2, 5).transpose(2, 3)[..., :2, :], padding=1)
    return F.max_pool2d(y, 2).exp().sum((2, 3)) + F.layer_norm(x, (5,)).sum()


def selections(m, x, w):
    rows = m.cat([x, w], 0)[[0, 2, 5]]
    picked = m.where(rows > 0, rows.sin(), rows**2)
    return m.stack([picked.softmax(-1).max(1)[0], picked.logsumexp(1), picked[:, 1].cumsum(0)])


def writes(m, x, w):
    y = m.zeros(6, 5, dtype=m.float64)
    y[1:5] = x
    y[0].copy_(w[1])
    y[:2].mul_(y[2:4])
    y.view(-1)[::7].exp_()
    y.t()[2].add_(w[0, 0])
    return y


def losses(m, x, w):
    F = m.nn.functional
    target = m.tensor([0, 2, 4, 1])
    return m.stack([F.cross_entropy(x, target), F.mse_loss(x[:2], w), F.smooth_l1_loss(x[2:], w), (x @ w.t()).norm()])


NETWORKS = [mlp, network, selections, writes, losses]


def inputs(m: Any, generator: Any) -> list[Any]:
    """Return two inputs and their tangents."""
    shapes = ((4, 5), (2, 5), (4, 5), (2, 5))
    return [m.tensor(generator.uniform(-1, 1, shape).tolist(), dtype=m.float64) for shape in shapes]


def along(m: Any, function: Any, x: Any, w: Any, dx: Any, dw: Any) -> Any:
    """Return the tangent of a function of two dual tensors."""
    with ad(m).dual_level():
        return tangent(m, function(m, ad(m).make_dual(x, dx), ad(m).make_dual(w, dw))).detach()


@pytest.mark.parametrize("function", NETWORKS, ids=lambda f: f.__name__)
def test_programs_agree_with_finite_differences(function):
    x, w, dx, dw = inputs(gs, numpy.random.default_rng(3))
    eps = 1e-6
    expected = (function(gs, x + eps * dx, w + eps * dw) - function(gs, x - eps * dx, w - eps * dw)) / (2 * eps)
    numpy.testing.assert_allclose(along(gs, function, x, w, dx, dw)._array, expected._array, rtol=1e-6, atol=1e-7)


@pytest.mark.torch
@pytest.mark.parametrize("function", NETWORKS, ids=lambda f: f.__name__)
def test_programs_agree_with_torch(torch, function):
    ours = along(gs, function, *inputs(gs, numpy.random.default_rng(3)))
    theirs = along(torch, function, *inputs(torch, numpy.random.default_rng(3)))
    numpy.testing.assert_allclose(ours._array, theirs.numpy(), rtol=1e-9, atol=1e-11)


def test_a_new_output_has_a_tangent_of_its_own():
    """Adding a number passes the tangent on: a write to the sum must not reach that of the operand."""
    with dual_level():
        x = make_dual(gs.ones(2), gs.tensor([1.0, 3.0]))
        y = x + 1
        y.mul_(10)
        assert unpack_dual(x).tangent.tolist() == [1.0, 3.0]
        assert unpack_dual(y).tangent.tolist() == [10.0, 30.0]


# --- views and writes -------------------------------------------------------------------------------------------------


@program(returns=[[[3.0, 3.0], [1.0, 1.0]], [3.0, 3.0], True])
def the_tangent_of_a_view_is_a_view_of_the_tangent(m):
    with ad(m).dual_level():
        x = ad(m).make_dual(m.ones(2, 2), m.ones(2, 2))
        row = x[0]
        row.mul_(3)
        return [tangent(m, x), tangent(m, row), tangent(m, row)._is_view()]


@program(returns=[[[5.0, 7.0], [0.0, 0.0]], [5.0, 7.0], [[1.0, 1.0], [0.0, 0.0]]])
def a_write_through_a_view_gives_the_base_a_tangent(m):
    with ad(m).dual_level():
        x = m.zeros(2, 2, dtype=m.float64)
        row = x[0]
        row.add_(dual(m, [1.0, 1.0], [5.0, 7.0]))
        return [tangent(m, x), tangent(m, row), x]


@program(returns=[[1.0, 2.0], [[3.0, 4.0]]])
def a_view_from_before_sees_the_tangent_of_its_base(m):
    with ad(m).dual_level():
        x = m.zeros(2, 2, dtype=m.float64)
        row, rest = x[0], x[1:]
        x.add_(dual(m, [[1.0, 1.0], [1.0, 1.0]], [[1.0, 2.0], [3.0, 4.0]]))
        return [tangent(m, row), tangent(m, rest)]


@program(returns=[[2.0, 6.0], True, [2.0, 6.0]])
def a_write_writes_the_tangent_in_place(m):
    with ad(m).dual_level():
        v = m.tensor([1.0, 3.0])
        x = ad(m).make_dual(m.ones(2), v)
        x.mul_(2)
        return [tangent(m, x), tangent(m, x) is v, v]


@program(returns=[[1.0, 3.0], [0.0, 0.0], [0.0, 3.0], [0.0, 0.0], [0.0, 0.0], [2.0, 0.0]])
def writes_of_and_into_dual_tensors(m):
    with ad(m).dual_level():

        def fresh():
            return dual(m, [3.0, 3.0], [1.0, 3.0])

        x = m.ones(2, dtype=m.float64)
        x.mul_(fresh())
        found = [tangent(m, x) / 1, tangent(m, fresh().zero_())]
        y = fresh()
        y[0] = 5
        z = fresh()
        z.copy_(m.ones(2))
        w = fresh()
        w.normal_()
        s = m.zeros(2, dtype=m.float64)
        s[0] = dual(m, 1.0, 2.0)
        return [*found, tangent(m, y), tangent(m, z), tangent(m, w), tangent(m, s)]


@program(raises=(RuntimeError, "a leaf Variable that requires grad is being used in an in-place operation"))
def a_tangent_that_requires_grad_is_not_written(m):
    v = leaf(m, 1.0, 0.5)
    with ad(m).dual_level():
        ad(m).make_dual(m.ones(2), v).mul_(2)


@pytest.mark.parametrize("factor", [lambda x: x, lambda x: x.view_as(x)], ids=["itself", "a view of it"])
def test_a_tensor_multiplied_by_itself_in_place(factor):
    """PyTorch 2.13 reads the second factor after the write, and doubles the tangent."""
    with dual_level():
        x = dual(gs, [3.0, 5.0], [2.0, 6.0])
        x.mul_(factor(x))
        assert unpack_dual(x).tangent.tolist() == [12.0, 60.0]


def test_the_unpacked_primal_stays_without_tangent_when_its_base_gets_one():
    with dual_level():
        x = gs.ones(2)
        primal = unpack_dual(make_dual(x, gs.ones(2))).primal
        x.mul_(make_dual(gs.ones(2), gs.ones(2)))
        assert unpack_dual(x).tangent.tolist() == [1.0, 1.0]
        assert unpack_dual(primal).tangent is None


# --- with backward ----------------------------------------------------------------------------------------------------


@program(returns=[True, [6.0, 6.0], None])
def reverse_over_forward(m):
    x = m.tensor([1.0, 2.0], requires_grad=True)
    with ad(m).dual_level():
        y = (ad(m).make_dual(x, m.tensor([1.0, 0.5])) ** 3).sum()
        slope = tangent(m, y)
        (g,) = m.autograd.grad(slope, x)
        return [slope.requires_grad, g, tangent(m, g)]


@program(returns=[[2.7183, 3.6945], [2.7183, 7.3891]])
def reverse_over_forward_through_a_write(m):
    x = m.tensor([1.0, 2.0], requires_grad=True)
    v = m.tensor([1.0, 0.5], requires_grad=True)
    with ad(m).dual_level():
        y = (ad(m).make_dual(x, v) * 1).exp_()
        return m.autograd.grad(tangent(m, y).sum(), [x, v])


@program(returns=[[3.0, 12.0], [6.0, 6.0], False, [6.0, 6.0]])
def forward_over_reverse(m):
    x = m.tensor([1.0, 2.0], requires_grad=True)
    with ad(m).dual_level():
        d = ad(m).make_dual(x, m.tensor([1.0, 0.5]))
        y = (d**3).sum()
        (by_dual,) = m.autograd.grad(y, d, retain_graph=True)
        (by_leaf,) = m.autograd.grad(y, x)
        return [by_dual, tangent(m, by_dual), by_dual.requires_grad, tangent(m, by_leaf)]


@program(returns=[[2.7183, 3.6945], True, [2.7183, 3.6945]])
def forward_over_reverse_recorded(m):
    x = m.tensor([1.0, 2.0], requires_grad=True)
    with ad(m).dual_level():
        d = ad(m).make_dual(x, m.tensor([1.0, 0.5]))
        (g,) = m.autograd.grad(d.exp().sum(), d, create_graph=True)
        return [tangent(m, g), tangent(m, g).requires_grad, m.autograd.grad(tangent(m, g).sum(), x)[0]]


@program(returns=[[5.4366, 22.1672], None])
def backward_accumulates_without_tangent(m):
    x = m.tensor([1.0, 2.0], requires_grad=True)
    with ad(m).dual_level():
        d = ad(m).make_dual(x, m.tensor([1.0, 0.5]))
        (d.exp() * d).sum().backward()
        return [x.grad, tangent(m, x.grad)]


@program(returns=[[2.0, 2.0], [[6.0, 18.0]]])
def gradients_and_hooks_see_tangents(m):
    x = m.tensor([1.0, 2.0], requires_grad=True)
    seen = []
    with ad(m).dual_level():
        (g,) = m.autograd.grad(x * x, x, ad(m).make_dual(m.ones(2), m.tensor([1.0, 0.5])))
        d = ad(m).make_dual(m.ones(2, requires_grad=True), m.tensor([1.0, 3.0]))
        d.register_hook(lambda grad: seen.append(tangent(m, grad)))
        (d * d * d).sum().backward()
        return [tangent(m, g), seen]


@program(returns=[[0.0, 0.0, 2.7183, 3.6945], [2.7183, 7.3891]])
def a_result_saved_by_a_write_through_a_view_keeps_its_tangent(m):
    x = m.tensor([1.0, 2.0], requires_grad=True)
    with ad(m).dual_level():
        d = ad(m).make_dual(x, m.tensor([1.0, 0.5]))
        y = m.zeros(4)
        y[2:] = d
        y[2:].exp_()
        (g,) = m.autograd.grad(y.sum(), d)
        return [m.cat([m.zeros(2), tangent(m, g)]), g]


def test_the_hessian_vector_product_of_a_module():
    generator = numpy.random.default_rng(5)
    module = gs.nn.Sequential(gs.nn.Linear(3, 4), gs.nn.Tanh(), gs.nn.LayerNorm(4), gs.nn.Linear(4, 1)).double()
    for parameter in module.parameters():
        parameter.data = gs.from_numpy(generator.uniform(-1, 1, tuple(parameter.shape)))
    x, v = (gs.from_numpy(generator.uniform(-1, 1, (2, 3))) for _ in range(2))

    def loss(x):
        return module(x).sum()

    with dual_level():
        d = make_dual(x.clone().requires_grad_(), v)
        (g,) = gs.autograd.grad(loss(d), d)
        found = unpack_dual(g).tangent
    _, expected = gs.autograd.functional.hvp(loss, x, v)
    numpy.testing.assert_allclose(found._array, expected._array, rtol=1e-9, atol=1e-12)


# --- the runtime around it --------------------------------------------------------------------------------------------


def test_a_level_costs_nothing_when_it_is_left():
    assert not state.special
    with dual_level():
        assert state.special
    assert not state.special


def test_the_end_of_a_level_frees_its_tangents():
    with dual_level():
        x = make_dual(gs.ones(2, requires_grad=True), gs.ones(2))
        y = x.exp()
        reference = weakref.ref(unpack_dual(y).tangent)
        assert reference() is not None
    gc.disable()
    try:
        assert reference() is None, "the graph of a tangent is held after its level"
    finally:
        gc.enable()


@pytest.mark.parametrize("requires_grad", [False, True])
def test_tangents_go_by_reference_count(requires_grad):
    gc.collect()
    gc.disable()
    try:
        with dual_level():
            x = make_dual(gs.ones(2, 2, requires_grad=requires_grad), gs.ones(2, 2))
            y = (x @ x * 2)[0]
            y = gs.cat([y, y.exp_()]).softmax(0)
            references = [weakref.ref(x), weakref.ref(y), weakref.ref(unpack_dual(x).tangent)]
            if requires_grad:
                references.append(weakref.ref(gs.autograd.grad(y.sum(), x)[0]))
            del x, y
        assert [reference() for reference in references] == [None] * len(references)
    finally:
        gc.enable()


def test_listeners_hear_of_the_program_not_of_its_tangents():
    def heard(x):
        names = []
        kinds = (events.OperatorRecorded, events.GraphTaskStarted, events.NodeEntered, events.TensorSaved)
        with events.subscribe(lambda event: names.append(type(event).__name__), *kinds):
            (gs.tanh(x) * 2).sum()
        return names

    with dual_level():
        x = make_dual(gs.ones(2, requires_grad=True), gs.ones(2))
        assert heard(x) == heard(gs.ones(2, requires_grad=True))


def test_saved_tensor_hooks_do_not_see_what_tangents_save():
    packed = []
    x = gs.ones(2, requires_grad=True)

    def pack(tensor):
        packed.append(tensor)
        return tensor

    with dual_level(), gs.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        y = gs.sin(make_dual(x, gs.ones(2)))
        assert unpack_dual(y).tangent.tolist() == pytest.approx([0.5403, 0.5403], abs=1e-4)
    assert len(packed) == 1


def test_a_packed_result_keeps_its_tangent():
    x = gs.tensor([1.0, 2.0], requires_grad=True)
    with dual_level(), gs.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        d = make_dual(x, gs.tensor([1.0, 0.5]))
        (g,) = gs.autograd.grad(d.exp().sum(), d)
        assert unpack_dual(g).tangent.tolist() == pytest.approx([2.7183, 3.6945], abs=1e-4)


def test_a_level_belongs_to_the_process_and_the_switch_to_the_thread():
    found = []
    with dual_level():
        x = make_dual(gs.ones(1), gs.ones(1))
        with set_fwd_grad_enabled(False):
            thread = threading.Thread(target=lambda: found.append(unpack_dual(x * 2).tangent))
            thread.start()
            thread.join()
            assert unpack_dual(x).tangent is None
    assert found[0].tolist() == [2.0]


def test_the_switch_is_a_decorator():
    @set_fwd_grad_enabled(False)
    def hidden(x):
        return unpack_dual(x).tangent

    with dual_level():
        x = make_dual(gs.ones(1), gs.ones(1))
        assert hidden(x) is None
        assert unpack_dual(x).tangent is not None


def test_an_error_inside_leaves_forward_mode_usable():
    with dual_level():
        x = make_dual(gs.ones(2), gs.ones(2))
        with pytest.raises(RuntimeError):
            x + gs.ones(3)
        with pytest.raises(RuntimeError):
            x.add_(gs.ones(3))
        assert unpack_dual(x * 3).tangent.tolist() == [3.0, 3.0]


def test_the_names_of_the_module():
    assert gs.autograd.forward_ad is forward_ad
    assert all(hasattr(forward_ad, name) for name in forward_ad.__all__)


# --- both runtimes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("run", "returns", "raises"), program.found)
def test_program(run, returns, raises):
    program.check(gs, run, returns, raises)


@pytest.mark.torch
@pytest.mark.parametrize(("run", "returns", "raises"), program.found)
def test_program_in_torch(run, returns, raises, torch):
    program.check(torch, run, returns, raises)

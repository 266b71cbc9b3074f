"""backward() and grad(): arguments, accumulation, re-entrance, threads, long chains; as in PyTorch."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest

import gradscope as gs
from tests.autograd.compare import Programs, custom, leaf
from tests.pytorch_versions import require_pytorch

program = Programs()


# --- what is asked for ------------------------------------------------------------------------------------------------


@program(returns=[4.0, 4.0, 10.0])
def several_roots(m):
    x = leaf(m)
    a, b = x * 2, (x * x).sum()
    m.autograd.backward([a, b], [m.tensor([1.0, 0.0, 2.0]), None])
    return x.grad


@program(returns=[[2.0, 16.0, 54.0], None, [2.0, 8.0, 18.0]])
def only_inputs_accumulate(m):
    x, y = leaf(m), leaf(m)
    z = x * y
    (z * z).sum().backward(inputs=[x, z])
    return x.grad, y.grad, z.grad


@program(returns=[[1.0, 2.0, 3.0], None])
def one_input_not_in_a_list(m):
    x, y = leaf(m), leaf(m)
    (x * y).sum().backward(inputs=x)
    return x.grad, y.grad


@program(raises=(RuntimeError, "`inputs` argument to `backward()` cannot be empty."))
def no_inputs(m):
    leaf(m).sum().backward(inputs=[])


@program(returns=[[2.0, 8.0, 18.0], [2.0, 16.0, 54.0], [2.0, 16.0, 54.0], 1.0, None])
def gradients_of_leaves_and_non_leaves(m):
    x, w = leaf(m), leaf(m)
    y = x * w
    z = (y * y).sum()
    result = m.autograd.grad(z, [y, x, w, z])
    return [*result, x.grad]


@program(raises=(RuntimeError, "appears to not have been used in the graph. Set allow_unused=True"))
def an_unused_input(m):
    x, y = leaf(m), leaf(m)
    m.autograd.grad(x.sum(), [x, y])


@program(returns=[[[1.0, 1.0, 1.0], None], [[1.0, 1.0, 1.0], [0.0, 0.0]]])
def an_unused_input_allowed(m):
    x, y = leaf(m), leaf(m, 1.0, 2.0)
    first = m.autograd.grad(x.sum(), [x, y], allow_unused=True)
    second = m.autograd.grad(x.sum(), [x, y], materialize_grads=True)
    return first, second


@program(raises=(ValueError, "Expected allow_unused to be True or not passed when materialize_grads=True"))
def materializing_and_refusing(m):
    x = leaf(m)
    m.autograd.grad(x.sum(), x, allow_unused=False, materialize_grads=True)


@program(raises=(RuntimeError, "One of the differentiated Tensors does not require grad"))
def a_gradient_of_what_requires_none(m):
    x = leaf(m)
    m.autograd.grad((x * 2).sum(), m.ones(3))


@program(returns=[[[2.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 6.0]]])
def batched_gradients(m):
    x = leaf(m)
    y = x * x
    return m.autograd.grad(y, x, grad_outputs=m.eye(3), is_grads_batched=True)


@program(raises=(IndexError, ""))
def a_batch_of_no_gradients(m):
    x = leaf(m)
    m.autograd.grad(x * x, x, grad_outputs=m.zeros(0, 3), is_grads_batched=True)


@program(returns=[None, [None]])
def no_roots(m):
    return m.autograd.backward([]), m.autograd.grad([], [leaf(m)], allow_unused=True)


@program(raises=(RuntimeError, "appears to not have been used in the graph. Set allow_unused=True"))
def no_outputs_to_differentiate(m):
    m.autograd.grad([], [leaf(m)])


@program(raises=(RuntimeError, "grad can be implicitly created only for scalar outputs"))
def a_root_that_is_no_scalar(m):
    leaf(m).mul(2).backward()


@program(raises=(RuntimeError, "element 0 of tensors does not require grad and does not have a grad_fn"))
def a_root_without_history(m):
    m.ones(()).backward()


@program(raises=(RuntimeError, "Mismatch in shape: grad_output[0] has a shape of"))
def a_seed_of_the_wrong_shape(m):
    (leaf(m) * 2).backward(m.ones(2))


@program(raises=(TypeError, "gradients can be either Tensors or None, but got"))
def a_seed_that_is_a_number(m):
    m.autograd.backward([(leaf(m) * 2).sum()], [2.0])


@program(returns=[2.0, 3.0, 4.0])
def a_leaf_as_root(m):
    x = leaf(m)
    x.backward(m.tensor([1.0, 2.0, 3.0]))
    x.sum().backward()
    return x.grad


@program(returns=[False, False, [1.0, 1.0, 1.0]])
def a_seed_is_never_aliased(m):
    x, y = leaf(m), leaf(m)
    seed = m.ones(3)
    (x + y).backward(seed)
    return x.grad.data_ptr() == seed.data_ptr(), x.grad.data_ptr() == y.grad.data_ptr(), x.grad


@program(raises=(RuntimeError, "`inputs` argument to `grad()` cannot be empty."), since="2.13")
def grad_of_nothing(m):
    m.autograd.grad(leaf(m).sum(), [])


@program(raises=(RuntimeError, "all inputs have to be Tensors or GradientEdges, but got str"))
def grad_of_a_name(m):
    m.autograd.grad(leaf(m).sum(), "x")


@program(returns=[[[2.0], [4.0]], [0.0]])
def batched_gradients_are_materialized(m):
    x, unused = leaf(m, 1.0), leaf(m, 1.0)
    seeds = m.tensor([[1.0], [2.0]])
    return m.autograd.grad(x * 2, [x, unused], seeds, is_grads_batched=True, materialize_grads=True)


def test_backward_starts_from_tensors():
    with pytest.raises(TypeError, match="all outputs have to be Tensors or GradientEdges, but number 0 is str"):
        gs.autograd.backward("loss")


# --- the graph afterwards ---------------------------------------------------------------------------------------------


@program(raises=(RuntimeError, "Trying to backward through the graph a second time"))
def a_second_time(m):
    y = leaf(m).exp().sum()
    y.backward()
    y.backward()


@program(returns=[4.0, 4.0, 4.0])
def a_second_time_where_nothing_was_saved(m):
    x = leaf(m)
    y = (x + x).sum()
    y.backward()
    y.backward()
    return x.grad


@program(returns=[4.0, 8.0, 12.0])
def retaining_the_graph(m):
    x = leaf(m)
    y = x.exp().mul(0).add(x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    return x.grad


@program(returns=["freed", [[2.0, 4.0, 6.0]]])
def grad_frees_only_what_it_ran(m):
    x, w = leaf(m), leaf(m)
    a = x * x
    b = w * w
    y = (a + b).sum()
    m.autograd.grad(y, x)
    try:
        m.autograd.grad(a.sum(), x)
    except RuntimeError:
        first = "freed"
    return first, m.autograd.grad(b.sum(), w)


@program(returns=[[3.0, 12.0, 27.0], [6.0, 12.0, 18.0], [6.0, 6.0, 6.0], True, False])
def create_graph(m):
    x = leaf(m)
    y = (x * x * x).sum()
    (first,) = m.autograd.grad(y, x, create_graph=True)
    (second,) = m.autograd.grad(first.sum(), x, create_graph=True)
    (third,) = m.autograd.grad(second.sum(), x)
    return first, second, third, first.requires_grad, third.requires_grad


@program(returns=[True, [2.0, 2.0, 2.0]])
def backward_with_create_graph(m):
    x = leaf(m)
    (x * x).sum().backward(create_graph=True)
    requires = x.grad.requires_grad
    (gradient,) = m.autograd.grad(x.grad.sum(), x)
    x.grad = None
    return requires, gradient


@program(returns=[[3.0, 2.0, 1153.0], [0.5, 0.0625, 384.0]])
def a_penalty_on_the_gradient(m):
    x, w = leaf(m), leaf(m, 0.5, 0.25, 2.0)
    (gradient,) = m.autograd.grad((w * x).pow(2).sum(), x, create_graph=True)
    (gradient.pow(2).sum() + w.sum()).backward()
    return w.grad, x.grad


# --- accumulation -----------------------------------------------------------------------------------------------------


@program(returns=[True, [5.0, 5.0, 5.0], 1])
def accumulating_in_place(m):
    x = leaf(m)
    (x * 2).sum().backward()
    kept = x.grad
    (x * 3).sum().backward()
    return x.grad is kept, kept, kept._version


@program(returns=[False, [2.0, 2.0, 2.0], [4.0, 6.0, 8.0]])
def accumulating_out_of_place_under_create_graph(m):
    x = leaf(m)
    (x * 2).sum().backward()
    kept = x.grad
    (x * x).sum().backward(create_graph=True)
    same, after = x.grad is kept, x.grad.detach().clone()
    x.grad = None
    return same, kept, after


@program(returns=[[1, 3], [1, 3], [[1.0, 2.0], [1.0, 2.0], [1.0, 2.0]]])
def a_gradient_takes_the_strides_of_the_leaf(m):
    x = m.ones(2, 3).t().detach().requires_grad_()
    (x * m.tensor([1.0, 2.0])).sum().backward()
    return x.stride(), x.grad.stride(), x.grad


@program(returns=[[2.0, 3.0, 4.0], [1]])
def a_gradient_of_an_expanded_seed_is_a_tensor_of_its_own(m):
    x = leaf(m)
    x.sum().backward()
    x.grad.add_(m.tensor([1.0, 2.0, 3.0]))
    return x.grad, x.grad.stride()


@program(returns=[True, [11.0, 21.0, 31.0]])
def assigned_gradients(m):
    x = leaf(m)
    mine = m.tensor([10.0, 20.0, 30.0])
    x.grad = mine
    x.sum().backward()
    return x.grad is mine, mine


@program(raises=(RuntimeError, "attempting to assign a gradient of size"))
def an_assigned_gradient_of_the_wrong_size(m):
    leaf(m).grad = m.ones(2)


@program(returns=["float32", [1.0, 1.0, 1.0]])
def what_a_seed_is_cast_to(m):
    x = leaf(m)
    y = x.double()
    y.backward(m.ones(3, dtype=m.float64))
    return x.grad.dtype, x.grad


@program(returns=[8.0, 92.0, 432.0])
def diamonds_and_repeated_inputs(m):
    x = leaf(m)
    y = x * x
    z = y * y + y
    (z * x).sum().backward()
    return x.grad


# --- re-entrance, callbacks, threads ----------------------------------------------------------------------------------


@program(returns=[2.0, 4.0, 6.0])
def backward_inside_backward(m):
    def forward(ctx, x):
        with m.enable_grad():
            ctx.x = x.detach().requires_grad_()
            ctx.y = ctx.x * ctx.x
        return ctx.y.detach()

    def backward(ctx, g):
        with m.enable_grad():
            ctx.y.sum().backward()
        return ctx.x.grad * g

    x = leaf(m)
    custom(m, forward, backward).apply(x).sum().backward()
    return x.grad


def nested(m, depth):
    order = []

    def backward(ctx, g):
        order.append(ctx.depth)
        if ctx.depth:
            with m.enable_grad():
                x = leaf(m)
                F.apply(x, ctx.depth - 1).sum().backward()
            return x.grad * g, None
        return g, None

    def forward(ctx, x, depth):
        ctx.depth = depth
        return x * 1

    F = custom(m, forward, backward)
    x = leaf(m)
    F.apply(x, depth).sum().backward()
    return len(order), order[0], order[-1], x.grad


@program(returns=[301, 300, 0, [1.0, 1.0, 1.0]])
def backward_300_deep(m):
    return nested(m, 300)


@program(raises=(ValueError, "deep down"))
def an_error_300_deep(m):
    def backward(ctx, g):
        if not ctx.depth:
            raise ValueError("deep down")
        with m.enable_grad():
            F.apply(leaf(m), ctx.depth - 1).sum().backward()
        return g, None

    def forward(ctx, x, depth):
        ctx.depth = depth
        return x * 1

    F = custom(m, forward, backward)
    F.apply(leaf(m), 300).sum().backward()


@program(returns=["hook", ["callback", [6.0, 6.0, 6.0]], "returned"])
def callbacks_run_at_the_end(m):
    log = []
    x = leaf(m)
    queue = m.autograd.Variable._execution_engine.queue_callback

    def hook(g):
        queue(lambda: log.append(("callback", x.grad.tolist())))
        log.append("hook")

    y = x * 2
    y.register_hook(hook)
    (y * 3).sum().backward()
    log.append("returned")
    return log


@program(raises=(RuntimeError, "Final callbacks can only be installed during backward pass."))
def a_callback_outside_of_backward(m):
    m.autograd.Variable._execution_engine.queue_callback(lambda: None)


@program(returns=[400.0, 400.0, 400.0])
def threads_share_a_leaf(m):
    x = leaf(m)
    threads = [threading.Thread(target=lambda: [(x * 2).sum().backward() for _ in range(50)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return x.grad


@program(returns=[16.0, 32.0, 48.0])
def threads_share_a_graph(m):
    x = leaf(m)
    y = (x * x).sum()
    threads = [threading.Thread(target=lambda: y.backward(retain_graph=True)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return x.grad


@program(returns=[[1.0, 2.0, 3.0], True, [4.0, 5.0, 6.0]])
def a_failed_backward_leaves_the_runtime_usable(m):
    def fail(ctx, g):
        raise ValueError("of the user")

    x, w = leaf(m), leaf(m)
    y = (custom(m, lambda ctx, x: x * 2, fail).apply(x) + w * 3).sum()
    try:
        y.backward()
    except ValueError:
        pass
    before = w.grad
    (x * w).sum().backward()
    return x.grad, m.is_grad_enabled(), before is None or before.tolist()


# --- a root that leads to no input ---


@program(returns=[[], True])
def a_root_that_is_named_twice_is_passed_over(m):
    x, other, log = leaf(m), leaf(m), []
    x.register_hook(lambda g: log.append("leaf"))
    m.autograd.backward([x, x], [m.ones(3), m.ones(3)], inputs=[other])
    return log, x.grad is None


# --- long chains ------------------------------------------------------------------------------------------------------


@program(returns=1.0)
def a_chain_of_200_000(m):
    x = m.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(200_000):
        y = y + 1
    y.backward()
    result = x.grad.item()
    del y
    return result


@program(returns=1.0)
def a_chain_of_functions(m):
    F = custom(m, lambda ctx, x: x * 1, lambda ctx, g: g)
    x = m.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(5_000):
        y = F.apply(y)
    y.backward()
    return x.grad


@pytest.mark.parametrize(("run", "returns", "raises"), program.found)
def test_program(run, returns, raises):
    program.check(gs, run, returns, raises)


@pytest.mark.torch
@pytest.mark.parametrize(("run", "returns", "raises"), program.found)
def test_program_in_torch(run, returns, raises, torch):
    program.check(torch, run, returns, raises)


# --- gradscope's own --------------------------------------------------------------------------------------------------


def test_a_graph_is_freed_without_the_collector():
    gc.collect()
    gc.disable()
    try:
        x = leaf(gs)
        y = (x * x).exp()
        gone = weakref.ref(y.grad_fn), weakref.ref(y)
        y.sum().backward()
        del y
        assert [reference() for reference in gone] == [None, None]
    finally:
        gc.enable()


def test_a_written_view_frees_what_it_saved():
    x = leaf(gs) * 1
    x[:2].exp_()
    (saved,) = x.grad_fn.saved_tensors_info()
    x.sum().backward()
    assert saved.released


def test_an_error_names_its_node_once():
    def fail(ctx, g):
        raise ValueError("of the user")

    y = custom(gs, lambda ctx, x: x * 2, fail).apply(leaf(gs)).sum()
    with pytest.raises(ValueError, match="of the user") as caught:
        y.backward()
    assert caught.value.__notes__ == ["while running FBackward in backward"]


def test_an_operand_that_has_another_shape_than_when_it_was_saved_is_named():
    x = gs.tensor([[0.0, 3.0, -0.5]], requires_grad=True)
    y = x.amax(dim=1)
    x.data = gs.tensor([1.0])
    with pytest.raises(
        RuntimeError, match=r"AmaxBackward0 cannot .* 'self' of shape \[1, 3\].* shape \[1\] since"
    ) as caught:
        y.sum().backward()
    assert isinstance(caught.value.__cause__, IndexError)


def test_the_history_of_a_saved_tensor_that_detach_cut_off_is_missed():
    x = gs.tensor([2.0], requires_grad=True)
    y = x * 3
    z = y * y
    y.detach_()
    assert gs.autograd.grad(z.sum(), x, retain_graph=True)[0].tolist() == [36.0]
    with pytest.raises(RuntimeError, match=r"detached in-place.* of MulBackward0, of shape \[1\]"):
        gs.autograd.grad(z.sum(), x, create_graph=True)


def test_create_graph_says_that_it_makes_a_cycle():
    x = leaf(gs)
    with pytest.warns(UserWarning, match="create_graph=True will create a reference cycle"):
        (x * x).sum().backward(create_graph=True)
    x.grad = None


@pytest.mark.torch
def test_zeros_in_place_of_a_missing_gradient_require_grad_in_a_graph(torch: object) -> None:
    require_pytorch(torch, "2.13")
    for lib in (gs, torch):
        for create_graph in (True, False):
            x, unused = lib.ones(2, requires_grad=True), lib.ones(2, requires_grad=True)  # type: ignore[attr-defined]
            found = lib.autograd.grad(  # type: ignore[attr-defined]
                x.sum(), (x, unused), create_graph=create_graph, materialize_grads=True
            )
            assert [g.requires_grad for g in found] == [False, create_graph]


class First(gs.autograd.Function):
    """Brings its second argument no gradient."""

    @staticmethod
    def forward(ctx, x, y):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2, None


@pytest.mark.parametrize("create_graph", [False, True])
def test_what_has_no_derivative_refuses_where_no_gradient_arrives_too(create_graph):
    x = gs.tensor([0.5, -1.25], requires_grad=True)
    result = First.apply(x, x // x).sum()
    with pytest.raises(RuntimeError, match="derivative for aten::floor_divide is not implemented"):
        gs.autograd.grad(result, x, create_graph=create_graph)

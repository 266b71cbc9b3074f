"""User-defined functions: what PyTorch does, and what only gradscope says."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

import gradscope as gs
from gradscope.autograd.function import once_differentiable
from gradscope.runtime import events
from tests.autograd.compare import Programs, custom, leaf

program = Programs()

FREED = "Trying to backward through the graph a second time"


def double(m, **more):
    return custom(m, lambda ctx, x: x * 2, lambda ctx, g: g * 2, name="Double", **more)


# --- results and history ----------------------------------------------------------------------------------------------


@program(returns=[[2.0, 4.0, 6.0], "DoubleBackward", "DoubleBackward", True, False, 0, [2.0, 2.0, 2.0]])
def forward_and_backward(m):
    x = leaf(m)
    y = double(m).apply(x)
    y.sum().backward()
    return y, y.grad_fn, type(y.grad_fn).__name__, y.requires_grad, y.is_leaf, y.output_nr, x.grad


@program(returns=[True, True, True])
def the_context_is_the_node(m):
    seen = []
    F = custom(m, lambda ctx, x: (seen.append(ctx), x * 2)[1], lambda ctx, g: (seen.append(ctx), g)[1])
    y = F.apply(leaf(m))
    y.sum().backward()
    return seen[0] is y.grad_fn, seen[1] is y.grad_fn, isinstance(y.grad_fn, m.autograd.graph.Node)


@program(returns=[[3], 4.0, [4.0, 4.0, 4.0]])
def attributes_of_the_context(m):
    def forward(ctx, x, scale):
        ctx.shape, ctx.dtype, ctx.kind, ctx.name, ctx.scale = x.shape, x.dtype, "kind", "mine", scale
        return x * scale

    def backward(ctx, g):
        assert (ctx.shape, ctx.kind, ctx.name) == ((3,), "kind", "mine")
        return g * ctx.scale, None

    x = leaf(m)
    y = custom(m, forward, backward).apply(x, 4.0)
    y.sum().backward()
    return list(y.grad_fn.shape), y.grad_fn.scale, x.grad


@program(returns=[[3.0, 6.0, 9.0], [5.0, 10.0, 15.0], [8.0, 8.0, 8.0], [2, False]], since="2.13")
def setup_context_and_default_arguments(m):
    def setup(ctx, inputs, output):
        ctx.scale = inputs[1]
        ctx.facts = (len(inputs), output.requires_grad)

    F = custom(m, lambda x, scale=3.0: x * scale, lambda ctx, g: (g * ctx.scale, None), setup_context=setup)
    x = leaf(m)
    y, z = F.apply(x), F.apply(x, scale=5.0)
    (y + z).sum().backward()
    return y, z, x.grad, y.grad_fn.facts


@program(returns=[[True, False, False], [False, True, False], [True, False, False]])
def needs_input_grad(m):
    seen = []
    F = custom(
        m, lambda ctx, *args: (seen.append(ctx.needs_input_grad), args[0] * 2)[1], lambda ctx, g: (g, None, None)
    )
    F.apply(leaf(m), 3, m.ones(3))
    F.apply(m.ones(3), leaf(m), "text")
    with m.no_grad():
        F.apply(leaf(m), 3, m.ones(3))
    return seen


@program(returns=["MulBackward0", "AccumulateGrad", None])
def next_functions_are_of_tensors_only(m):
    F = custom(m, lambda ctx, a, n, b, c: a * b, lambda ctx, g: (g, None, g, None))
    a = leaf(m)
    y = F.apply(a * 1, 2, a, m.ones(3))
    return [edge[0] and edge[0].name() for edge in y.grad_fn.next_functions]


@program(returns=[0, 1, True, [3.0, 3.0, 3.0]])
def several_outputs(m):
    F = custom(m, lambda ctx, x: (x * 2, x * 3), lambda ctx, g, h: g * 2 + h * 3)
    x = leaf(m)
    y, z = F.apply(x)
    z.sum().backward()
    return y.output_nr, z.output_nr, y.grad_fn is z.grad_fn, x.grad


@program(returns=[[3, None, "text"], [[False, True, True, True]]])
def outputs_that_are_no_tensors(m):
    seen = []
    F = custom(
        m, lambda ctx, x: (x * 2, 3, None, "text"), lambda ctx, *g: (seen.append([t is None for t in g]), g[0])[1]
    )
    y, *others = F.apply(leaf(m))
    y.sum().backward()
    return others, seen


@program(returns=[False, None, [["int64", [0, 0, 0]]]])
def integer_outputs_have_no_gradient(m):
    seen = []
    F = custom(m, lambda ctx, x: (x * 2, (x * 2).long()), lambda ctx, g, h: (seen.append((h.dtype, h.tolist())), g)[1])
    y, i = F.apply(leaf(m))
    y.sum().backward()
    return i.requires_grad, i.grad_fn, seen


@program(returns=[False, None, False, None])
def nothing_requires_grad(m):
    F = double(m)
    with m.no_grad():
        hidden = F.apply(leaf(m))
    plain = F.apply(m.ones(2))
    return hidden.requires_grad, hidden.grad_fn, plain.requires_grad, plain.grad_fn


@program(returns=[2.0, 3.0, 4.0])
def forward_is_not_recorded(m):
    F = custom(m, lambda ctx, x: x + (0 if (x * 2).requires_grad else 1), lambda ctx, g: g)
    return F.apply(leaf(m))


@program(returns=[[[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]], [[1.0, 1.0, 1.0], None]])
def undefined_gradients_are_zeros_unless_asked(m):
    seen = []

    def two(materialize):
        def forward(ctx, x):
            ctx.set_materialize_grads(materialize)
            return x * 2, x * 3

        return custom(m, forward, lambda ctx, g, h: (seen.append((g, h)), g)[1])

    for materialize in (True, False):
        two(materialize).apply(leaf(m))[0].sum().backward()
    return seen


@program(returns=[[[0.0, 0.0, 0.0]], [0.0, 0.0, 0.0]])
def a_node_runs_though_no_gradient_arrives(m):
    seen = []
    inner = custom(m, lambda ctx, x: x * 2, lambda ctx, g: (seen.append(g), g)[1])
    nothing = custom(m, lambda ctx, x: x * 2, lambda ctx, g: None)
    x = leaf(m)
    nothing.apply(inner.apply(x)).sum().backward()
    return seen, x.grad


@program(returns=[False, None, [[0.0, 0.0, 0.0]]])
def non_differentiable_outputs(m):
    def forward(ctx, x):
        y, z = x * 2, x * 3
        ctx.mark_non_differentiable(z)
        return y, z

    seen = []
    F = custom(m, forward, lambda ctx, g, h: (seen.append(h), g)[1])
    y, z = F.apply(leaf(m))
    y.sum().backward()
    return z.requires_grad, z.grad_fn, seen


@program(returns=[True, False, "FBackward"])
def a_captured_leaf_returned_gets_the_node(m):
    w = leaf(m)
    y = custom(m, lambda ctx, x: w, lambda ctx, g: g).apply(leaf(m))
    return y is w, w.is_leaf, w.grad_fn


@program(returns=[1.0, 1.0, 1.0])
def trailing_none_gradients_are_tolerated(m):
    x = leaf(m)
    custom(m, lambda ctx, x: x * 2, lambda ctx, g: (g, None, None)).apply(x).sum().backward()
    return x.grad


@program(returns=[6.0])
def gradients_are_summed_to_the_shape_of_the_input(m):
    x = leaf(m, 2.0)
    custom(m, lambda ctx, x: x.expand(3) * 2, lambda ctx, g: g * 2).apply(x).sum().backward()
    return x.grad


@program(returns=[2.0, 2.0, 2.0])
def vjp_is_another_name_of_backward(m):
    x = leaf(m)
    custom(m, lambda ctx, x: x * 2, vjp=lambda ctx, g: g * 2).apply(x).sum().backward()
    return x.grad


@program(returns=[1.0, 1.0, 1.0], since="2.13")
def boxed_gradients(m):
    x = leaf(m)
    F = custom(m, lambda ctx, x: x * 2, lambda ctx, grads: grads.pop() * (1 + len(grads)), boxed_grads_call=True)
    F.apply(x).sum().backward()
    return x.grad


@program(
    returns=[
        [["tensor", [1.0, 1.0, 1.0]], ["pre", [1.0, 1.0, 1.0]], ["post", [20.0, 20.0, 20.0], [10.0, 10.0, 10.0]]],
        [20.0, 20.0, 20.0],
    ]
)
def hooks_of_the_node(m):
    log = []
    x = leaf(m)
    y = double(m).apply(x)
    y.register_hook(lambda g: log.append(("tensor", g.tolist())))
    y.grad_fn.register_prehook(lambda gs: (log.append(("pre", gs[0].tolist())), (gs[0] * 10,))[1])
    y.grad_fn.register_hook(lambda i, o: log.append(("post", i[0].tolist(), o[0].tolist())))
    y.sum().backward()
    return log, x.grad


@program(returns=[True, False])
def a_hook_is_given_one_tensor_for_a_gradient_that_is_passed_on(m):
    same = []
    for backward in (lambda ctx, g: g, lambda ctx, g: g * 2):
        y = custom(m, lambda ctx, x: x * 2, backward).apply(leaf(m))
        y.grad_fn.register_hook(lambda i, o: same.append(i[0] is o[0]))
        y.sum().backward()
    return same


# --- what is saved ----------------------------------------------------------------------------------------------------


def square(m, seen=None):
    def forward(ctx, x):
        y = x * x
        ctx.save_for_backward(x, None, y)
        return y

    def backward(ctx, g):
        x, nothing, y = ctx.saved_tensors
        assert nothing is None
        if seen is not None:
            seen.append((x, y))
        return g * x * 2

    return custom(m, forward, backward, name="Square")


@program(returns=[True, False, True, 3, [2.0, 4.0, 6.0]])
def saved_tensors(m):
    seen = []
    x = leaf(m)
    y = square(m, seen).apply(x)
    raw = y.grad_fn._raw_saved_tensors
    node_before = y.grad_fn
    y.sum().backward()
    saved_x, saved_y = seen[0]
    return saved_x is x, saved_y is y, saved_y.grad_fn is node_before, len(raw), x.grad


@program(raises=(RuntimeError, FREED))
def saved_tensors_are_freed(m):
    y = square(m).apply(leaf(m))
    node = y.grad_fn
    y.sum().backward()
    node.saved_tensors


@program(raises=(RuntimeError, FREED))
def raw_saved_tensors_are_freed(m):
    y = square(m).apply(leaf(m))
    node = y.grad_fn
    y.sum().backward()
    node._raw_saved_tensors


@program(raises=(RuntimeError, FREED))
def backward_twice(m):
    y = square(m).apply(leaf(m)).sum()
    y.backward()
    y.backward()


@program(returns=[4.0, 8.0, 12.0])
def backward_twice_retaining(m):
    x = leaf(m)
    y = square(m).apply(x).sum()
    y.backward(retain_graph=True)
    y.backward()
    return x.grad


@program(returns=[4.0, 4.0, 4.0])
def backward_twice_saving_nothing(m):
    x = leaf(m)
    y = double(m).apply(x).sum()
    y.backward()
    y.backward()
    return x.grad


@program(raises=(RuntimeError, "modified by an inplace operation"))
def a_saved_input_modified(m):
    a = leaf(m) * 1
    y = square(m).apply(a)
    a.add_(1)
    y.sum().backward()


@program(raises=(RuntimeError, "is at version 1; expected version 0 instead"))
def a_saved_output_modified(m):
    y = square(m).apply(leaf(m))
    y.mul_(2)
    y.sum().backward()


@program(raises=(TypeError, "save_for_backward can only save variables, but argument 1 is of type int"))
def saving_a_number(m):
    custom(m, lambda ctx, x: ctx.save_for_backward(x, 3) or x * 2).apply(leaf(m))


@program(returns=0, since="2.13")
def nothing_is_saved_when_nothing_is_recorded(m):
    seen = []
    F = custom(m, lambda ctx, x: (seen.append(ctx), ctx.save_for_backward(x), x * 2)[2])
    F.apply(m.ones(2))
    return len(seen[0].saved_tensors)


@program(returns=[["pack", "pack", "unpack", "unpack"], [20.0, 40.0, 60.0]])
def saved_tensors_hooks_apply(m):
    log = []
    x = leaf(m)

    def pack(tensor):
        log.append("pack")
        return tensor.detach() * 10

    with m.autograd.graph.saved_tensors_hooks(pack, lambda packed: (log.append("unpack"), packed)[1]):
        y = square(m).apply(x)
    y.sum().backward()
    return log, x.grad


@program(
    raises=(RuntimeError, "saved_tensors can only be accessed once when clear_saved_tensors_on_access=True"),
    since="2.13",
)
def saved_tensors_cleared_on_access(m):
    def backward(ctx, g):
        assert len(ctx.saved_tensors) == 1
        return ctx.saved_tensors[0] * g

    F = custom(m, lambda ctx, x: ctx.save_for_backward(x) or x * 2, backward, clear_saved_tensors_on_access=True)
    F.apply(leaf(m)).sum().backward()


# --- double backward --------------------------------------------------------------------------------------------------


@program(returns=[[2.0, 4.0, 6.0], True, [2.0, 2.0, 2.0]])
def double_backward_through_a_saved_input(m):
    x = leaf(m)
    (first,) = m.autograd.grad(square(m).apply(x).sum(), x, create_graph=True)
    (second,) = m.autograd.grad(first.sum(), x)
    return first, first.requires_grad, second


@program(returns=[[2.7183, 7.3891, 20.0855], [2.7183, 7.3891, 20.0855], [2.7183, 7.3891, 20.0855]])
def double_backward_through_a_saved_output(m):
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    F = custom(m, forward, lambda ctx, g: g * ctx.saved_tensors[0])
    x = leaf(m)
    (first,) = m.autograd.grad(F.apply(x).sum(), x, create_graph=True)
    (second,) = m.autograd.grad(first.sum(), x, create_graph=True)
    (third,) = m.autograd.grad(second.sum(), x)
    return first, second, third


@program(returns=[[1.0, 2.0, 3.0], "InnerBackward", [7.0, 7.0, 7.0]])
def backward_of_backward_is_a_function_too(m):
    Inner = custom(m, lambda ctx, g, x: ctx.save_for_backward(x) or g * x, lambda ctx, h: (None, h * 7), name="Inner")
    Outer = custom(
        m, lambda ctx, x: ctx.save_for_backward(x) or x * x, lambda ctx, g: Inner.apply(g, ctx.saved_tensors[0])
    )
    x = leaf(m)
    (first,) = m.autograd.grad(Outer.apply(x).sum(), x, create_graph=True)
    (second,) = m.autograd.grad(first.sum(), x)
    return first, first.grad_fn, second


# --- views and in-place -----------------------------------------------------------------------------------------------

IDENTITY = "This view was created inside a custom Function (or because an input was returned as-is)"


def identity(m):
    return custom(m, lambda ctx, x: x, lambda ctx, g: g * 3, name="Identity")


@program(returns=[False, True, True, "IdentityBackward", [3.0, 3.0, 3.0]])
def an_input_returned_is_a_view(m):
    x = leaf(m)
    y = identity(m).apply(x)
    y.sum().backward()
    return y is x, y._is_view(), y._base is x, y.grad_fn.name(), x.grad


@program(raises=(RuntimeError, IDENTITY))
def an_input_returned_cannot_be_written(m):
    identity(m).apply(leaf(m) * 1).add_(1)


@program(returns=[False, False, False, False, True, False])
def an_input_returned_under_no_grad(m):
    x = leaf(m)
    with m.no_grad():
        y = identity(m).apply(x)
    plain = m.ones(3)
    z = identity(m).apply(plain)
    return y is x, y.requires_grad, y._is_view(), z is plain, z._is_view(), z.requires_grad


@program(returns=[True, True, "FBackward", [2.0, 2.0, 2.0]])
def a_view_of_an_input(m):
    x = leaf(m)
    y = custom(m, lambda ctx, x: x.view(3, 1), lambda ctx, g: g.view(3) * 2).apply(x)
    y.sum().backward()
    return y._is_view(), y._base is x, y.grad_fn.name(), x.grad


@program(raises=(RuntimeError, IDENTITY))
def a_view_of_an_input_cannot_be_written(m):
    custom(m, lambda ctx, x: x.view(3, 1), lambda ctx, g: g).apply(leaf(m) * 1).mul_(2)


@program(raises=(RuntimeError, "is the output of a function that returns multiple views"))
def several_views_cannot_be_written(m):
    a, _ = custom(m, lambda ctx, x: (x[:1], x[1:]), lambda ctx, g, h: m.cat([g, h])).apply(leaf(m) * 1)
    a.mul_(2)


@program(returns=[False, False, True, None])
def a_non_differentiable_input_returned(m):
    x = leaf(m)
    y = custom(m, lambda ctx, x: ctx.mark_non_differentiable(x) or x, lambda ctx, g: g).apply(x)
    return y is x, y.requires_grad, x.requires_grad, y.grad_fn


def inplace_double(m, outputs=1):
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x if outputs == 1 else (x, x * 2)

    return custom(m, forward, lambda ctx, g, *_: g * 2, name="InplaceDouble")


@program(returns=[True, [2.0, 4.0, 6.0], 2, "InplaceDoubleBackward", "MulBackward0", [2.0, 2.0, 2.0]])
def in_place(m):
    x = leaf(m)
    a = x * 1
    b = inplace_double(m).apply(a)
    b.sum().backward()
    return b is a, a, a._version, a.grad_fn, a.grad_fn.next_functions[0][0], x.grad


@program(returns=[True, [2.0, 4.0, 3.0], 2, "AsStridedBackward0", "CopySlices", [2.0, 2.0, 1.0]])
def in_place_on_a_view(m):
    x = leaf(m)
    a = x * 1
    v = a[:2]
    w = inplace_double(m).apply(v)
    result = w is v, a, a._version, v.grad_fn, a.grad_fn
    a.sum().backward()
    return *result, x.grad


@program(returns=[[[2.0, 2.0, 2.0]], [1.0, 1.0, 1.0], True])
def in_place_moves_retain_grad(m):
    log = []
    x = leaf(m)
    a = x * 1
    a.retain_grad()
    a.register_hook(lambda g: log.append(g.tolist()))
    inplace_double(m).apply(a)
    a.sum().backward()
    return log, a.grad, a.retains_grad


@program(raises=(RuntimeError, "a leaf Variable that requires grad has been used in an in-place operation."))
def in_place_on_a_leaf(m):
    inplace_double(m).apply(leaf(m))


@program(
    raises=(RuntimeError, "a view of a leaf Variable that requires grad is being used in an in-place operation."),
    since="2.8",
)
def in_place_on_a_view_of_a_leaf(m):
    inplace_double(m).apply(leaf(m)[:2])


@program(raises=(RuntimeError, "your Function cannot return more than one Tensor"))
def in_place_on_a_view_with_two_outputs(m):
    inplace_double(m, 2).apply((leaf(m) * 1)[:2])


@program(raises=(RuntimeError, "Some elements marked as dirty during the forward method were not returned as output."))
def in_place_and_not_returned(m):
    custom(m, lambda ctx, x: ctx.mark_dirty(x) or x.clone(), lambda ctx, g: g).apply(leaf(m) * 1)


# --- wrong calls ------------------------------------------------------------------------------------------------------


@program(raises=(RuntimeError, "function FBackward returned an incorrect number of gradients (expected 1, got 2)"))
def too_many_gradients(m):
    custom(m, lambda ctx, x: x * 2, lambda ctx, g: (g, g)).apply(leaf(m)).sum().backward()


@program(raises=(RuntimeError, "function FBackward returned an incorrect number of gradients (expected 2, got 1)"))
def too_few_gradients(m):
    custom(m, lambda ctx, x, n: x * 2, lambda ctx, g: (g,)).apply(leaf(m), 2).sum().backward()


@program(raises=(RuntimeError, "function FBackward returned a gradient different than None at position 2, but the"))
def a_gradient_for_a_number(m):
    custom(m, lambda ctx, x, n: x * 2, lambda ctx, g: (g, g)).apply(leaf(m), 2).sum().backward()


@program(raises=(RuntimeError, "expected Variable or None (got int)"))
def a_gradient_that_is_a_number(m):
    custom(m, lambda ctx, x: x * 2, lambda ctx, g: 3).apply(leaf(m)).sum().backward()


@program(raises=(RuntimeError, "expected Variable or None (got list)"))
def gradients_in_a_list(m):
    custom(m, lambda ctx, x: x * 2, lambda ctx, g: [g]).apply(leaf(m)).sum().backward()


@program(
    raises=(
        RuntimeError,
        "Function FBackward returned an invalid gradient at index 0 - got [2] but expected shape compatible with [3]",
    )
)
def a_gradient_of_the_wrong_shape(m):
    custom(m, lambda ctx, x: x * 2, lambda ctx, g: g[:2]).apply(leaf(m)).sum().backward()


@program(raises=(RuntimeError, "mark_dirty can only accept variables, but argument"))
def marking_a_number_dirty(m):
    custom(m, lambda ctx, x: ctx.mark_dirty(3) or x * 2).apply(leaf(m))


@program(raises=(NotImplementedError, "You must implement either the backward or vjp method"))
def no_backward(m):
    custom(m, lambda ctx, x: x * 2).apply(leaf(m)).sum().backward()


@program(raises=(NotImplementedError, "You must implement the forward function for custom autograd.Function."))
def no_forward(m):
    m.autograd.Function.apply(leaf(m))


@program(raises=(RuntimeError, "Implementing both 'backward' and 'vjp' for a custom Function is not allowed."))
def backward_and_vjp(m):
    custom(m, lambda ctx, x: x * 2, lambda ctx, g: g, vjp=lambda ctx, g: g).apply(leaf(m)).sum().backward()


@program(raises=(TypeError, "unexpected keyword argument"), since="2.13")
def an_unknown_keyword(m):
    double(m).apply(leaf(m), scale=2)


@program(raises=(KeyError, "of the user"))
def an_error_of_the_user(m):
    def backward(ctx, g):
        raise KeyError("of the user")

    custom(m, lambda ctx, x: x * 2, backward).apply(leaf(m)).sum().backward()


@program(raises=(RuntimeError, "trying to differentiate twice a function that was marked with @once_differentiable"))
def once_differentiable_twice(m):
    once = __import__(m.__name__ + ".autograd.function", fromlist=["once_differentiable"]).once_differentiable
    F = custom(m, lambda ctx, x: x * x, once(lambda ctx, g: g * 2))
    x, seed = leaf(m), leaf(m)
    (first,) = m.autograd.grad(F.apply(x), x, grad_outputs=seed, create_graph=True)
    first.sum().backward()


@program(returns=[[2.0, 2.0, 2.0], False])
def once_differentiable_once(m):
    once = __import__(m.__name__ + ".autograd.function", fromlist=["once_differentiable"]).once_differentiable
    F = custom(m, lambda ctx, x: x * x, once(lambda ctx, g: g * 2))
    x = leaf(m)
    (first,) = m.autograd.grad(F.apply(x).sum(), x, create_graph=True)
    return first, first.requires_grad


def _adding(m):
    def forward(ctx, x, constant=False):
        x.add_(1)
        ctx.mark_dirty(x)
        if constant:
            ctx.mark_non_differentiable(x)
        return x

    return custom(m, forward, lambda ctx, g: (g, None))


@program(returns=[[False, True, None, 2, [2.0, 3.0, 4.0]], [False, False, 2, True], [False, False, False, True]])
def an_input_written_where_nothing_is_recorded(m):
    x = leaf(m)
    part = (leaf(m) * 1)[:2]
    between = leaf(m) * 1
    with m.no_grad():
        y, z, w = _adding(m).apply(x), _adding(m).apply(between), _adding(m).apply(part)
    return (
        [y is x, x.requires_grad, x.grad_fn, x._version, x],
        [z is between, z.requires_grad, between._version, between.requires_grad],
        [w is part, w.requires_grad, w._is_view(), part.requires_grad],
    )


@program(returns=[False, False, True, True])
def an_input_written_and_without_a_gradient(m):
    x = leaf(m) * 1
    y = _adding(m).apply(x, True)
    return y is x, y.requires_grad, x.requires_grad, y.is_leaf


@pytest.mark.parametrize(("run", "returns", "raises"), program.found)
def test_program(run, returns, raises):
    program.check(gs, run, returns, raises)


@pytest.mark.torch
@pytest.mark.parametrize(("run", "returns", "raises"), program.found)
def test_program_in_torch(run, returns, raises, torch):
    program.check(torch, run, returns, raises)


# --- gradscope's own --------------------------------------------------------------------------------------------------


class Square(gs.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * x * 2


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("backward", [False, True])
def test_a_call_is_freed_without_the_collector(backward):
    """Saving outputs, marking and writing inputs leaves no reference cycle."""

    def forward(ctx, x):
        y = x.mul_(2)
        ctx.mark_dirty(y)
        ctx.save_for_backward(y)
        return y

    F = custom(gs, forward, lambda ctx, g: g * ctx.saved_tensors[0])
    y = F.apply(gs.ones(2, requires_grad=True) * 1)
    gone = weakref.ref(y), weakref.ref(y.grad_fn)
    if backward:
        y.sum().backward()
    del y
    assert [reference() for reference in gone] == [None, None]


def test_saved_tensors_are_seen_by_name():
    x = gs.ones(2, requires_grad=True)
    (saved,) = Square.apply(x).grad_fn.saved_tensors_info()
    assert (saved.name, saved.index, saved.shape, saved.saved_version, saved.is_output) == (
        "saved_tensors",
        0,
        (2,),
        0,
        False,
    )


def test_violation_carries_the_facts():
    a = gs.ones(2, requires_grad=True) * 1
    y = Square.apply(a)
    a.add_(1)
    with pytest.raises(gs.SavedTensorModifiedError) as caught:
        y.sum().backward()
    error = caught.value
    assert (error.operator, error.saved_name, error.saved_version, error.current_version) == (
        "SquareBackward",
        "saved_tensors",
        0,
        1,
    )


def test_freed_error_has_its_own_class():
    y = Square.apply(gs.ones(2, requires_grad=True)).sum()
    y.backward()
    with pytest.raises(gs.SavedTensorFreedError) as caught:
        y.backward()
    assert caught.value.node.name() == "SquareBackward"


def test_events_of_a_call():
    seen = []
    kinds = (events.OperatorRecorded, events.TensorSaved, events.TensorUnpacked, events.TensorReleased)
    x = gs.ones(2, requires_grad=True)
    with events.subscribe(seen.append, *kinds, call_sites=True):
        y = Square.apply(x)
        site = y.grad_fn.call_site
        y.sum().backward()
    of_node = [type(e).__name__ for e in seen if e.node is not None and e.node.name() == "SquareBackward"]
    assert of_node == ["TensorSaved", "OperatorRecorded", "TensorUnpacked", "TensorReleased"]
    assert site.user_frame().function == "test_events_of_a_call"


@pytest.mark.parametrize("name", ["edges", "seq", "extra"])
def test_the_graphs_own_attributes_are_protected(name):
    F = custom(gs, lambda ctx, x: setattr(ctx, name, 3), lambda ctx, g: g)
    with pytest.raises(AttributeError, match=f"ctx.{name} belongs to the backward graph"):
        F.apply(gs.ones(2, requires_grad=True))


def test_once_differentiable_hides_nothing_of_the_first_derivative():
    F = custom(gs, lambda ctx, x: x * x, once_differentiable(lambda ctx, g: g * 2))
    x = gs.ones(2, requires_grad=True)
    F.apply(x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_shared_storage_is_noticed_without_being_marked():
    F = custom(gs, lambda ctx, x: ctx.mark_shared_storage((x, x)) or x * 2, lambda ctx, g: g)
    with pytest.warns(FutureWarning, match="`mark_shared_storage` is deprecated"):
        F.apply(gs.ones(2, requires_grad=True))


def test_marking_dirty_what_is_no_input_warns():
    def forward(ctx, x):
        y = x * 2
        ctx.mark_dirty(y)
        return y

    with pytest.warns(UserWarning, match="received a tensor that was not an input"):
        custom(gs, forward, lambda ctx, g: g).apply(gs.ones(2, requires_grad=True))


def test_a_jvp_is_accepted_and_asked_for_only_by_forward_mode():
    x = gs.ones(2, requires_grad=True)
    F = custom(gs, lambda ctx, x: x * 2, lambda ctx, g: g * 2, jvp=lambda ctx, t: t * 2)
    F.apply(x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    with pytest.raises(NotImplementedError, match="You must implement the jvp function"):
        Square.jvp(None, x)


def test_grad_mode_survives_an_error_in_forward():
    def forward(ctx, x):
        raise ValueError("of the user")

    with pytest.raises(ValueError, match="of the user"):
        custom(gs, forward).apply(gs.ones(2, requires_grad=True))
    assert gs.is_grad_enabled()


def test_gradcheck_of_a_function():
    x = gs.tensor([0.3, -1.2], dtype=gs.float64, requires_grad=True)
    assert gs.autograd.gradcheck(Square.apply, (x,))
    assert gs.autograd.gradgradcheck(Square.apply, (x,))


def test_calling_the_node_runs_it_alone():
    y = double(gs).apply(leaf(gs))
    (grad,) = y.grad_fn(gs.ones(3))
    assert grad.tolist() == [2.0, 2.0, 2.0]


class _ExpInPlace(gs.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        x.exp_()
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        (result,) = ctx.saved_tensors
        return grad * result


def test_a_view_that_forward_has_written_may_be_saved() -> None:
    x = gs.tensor([0.2, 0.5], dtype=gs.float64, requires_grad=True)
    written = _ExpInPlace.apply((x * 1).view(2, 1))
    gone = weakref.ref(written.grad_fn)
    (first,) = gs.autograd.grad(written.pow(2).sum(), x, create_graph=True)
    (second,) = gs.autograd.grad(first.sum(), x)
    assert second.tolist() == pytest.approx((4 * (2 * x).exp()).tolist())
    del written, first, second
    assert gone() is None

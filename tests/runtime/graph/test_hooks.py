"""Hooks: their order, what they may change, how they are removed; as in PyTorch."""

from __future__ import annotations

import pytest

import gradscope as gs
from tests.autograd.compare import Programs, leaf

program = Programs()


def logger(log, name, result=None):
    def hook(*args):
        log.append(name)
        return result(*args) if result else None

    return hook


@program(
    returns=[
        ["tensor 1", ["tensor 2", [3.0, 3.0, 3.0], True], "pre", ["pre 2", [3.0, 3.0, 3.0]], "post"],
        [3.0, 3.0, 3.0],
        [6.0, 6.0, 6.0],
    ]
)
def order_at_a_non_leaf(m):
    log = []
    x = leaf(m)
    y = x * 2
    y.grad_fn.register_hook(logger(log, "post"))
    y.grad_fn.register_prehook(logger(log, "pre"))
    y.retain_grad()
    y.register_hook(logger(log, "tensor 1", lambda g: g * 3))
    y.register_hook(lambda g: log.append(("tensor 2", g.tolist(), y.grad is None)))
    y.grad_fn.register_prehook(lambda g: log.append(("pre 2", y.grad.tolist())))
    y.sum().backward()
    return log, y.grad, x.grad


@program(
    returns=[["tensor", ["node pre", True], ["post accumulate", True, [4.0, 4.0, 4.0]], "node post"], [4.0, 4.0, 4.0]]
)
def order_at_a_leaf(m):
    log = []
    x = leaf(m)
    node = m.autograd.graph.get_gradient_edge(x).node
    node.register_hook(logger(log, "node post"))
    node.register_prehook(lambda g: log.append(("node pre", x.grad is None)))
    x.register_post_accumulate_grad_hook(lambda t: log.append(("post accumulate", t is x, t.grad.tolist())))
    x.register_hook(lambda g: (log.append("tensor"), g * 2)[1])
    (x * 2).sum().backward()
    return log, x.grad


@program(
    returns=[
        ["tensor y", "tensor y", "pre y", "post y", "tensor x"],
        [[3.0, 3.0, 3.0]],
        [3.0, 3.0, 3.0],
        [[30.0, 30.0, 30.0]],
        None,
    ]
)
def order_with_capture(m):
    log = []
    x = leaf(m)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: (log.append("tensor y"), g * 3)[1])
    y.grad_fn.register_prehook(logger(log, "pre y"))
    y.grad_fn.register_hook(logger(log, "post y"))
    x.register_hook(lambda g: (log.append("tensor x"), g * 5)[1])
    x.register_post_accumulate_grad_hook(logger(log, "post accumulate x"))
    node = m.autograd.graph.get_gradient_edge(x).node
    node.register_prehook(logger(log, "pre x"))
    node.register_hook(logger(log, "post x"))
    of_y = m.autograd.grad(y.sum(), y, retain_graph=True)
    retained = y.grad.tolist()
    of_x = m.autograd.grad(y.sum(), x)
    return log, of_y, retained, of_x, x.grad


@program(returns=[3.0, 3.0, 3.0])
def retain_grad_sees_tensor_hooks_not_prehooks(m):
    y = leaf(m) * 2
    y.retain_grad()
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 100,))
    y.register_hook(lambda g: g * 3)
    y.sum().backward()
    return y.grad


@program(returns=[21.0, 21.0, 21.0])
def node_hooks_replace_gradients(m):
    x = leaf(m)
    y = x * 2
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 10,))
    y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] + 1, None))
    y.sum().backward()
    return x.grad


@program(returns=None)
def a_node_hook_replaces_by_none(m):
    x = leaf(m)
    y = x * 2
    y.grad_fn.register_hook(lambda inputs, outputs: (None, None))
    y.sum().backward()
    return x.grad


@program(returns=[[["pre", None], ["post", None, None]], None])
def hooks_see_undefined_gradients(m):
    log = []

    class Nothing(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return None

    x = leaf(m)
    y = x * 2
    y.grad_fn.register_prehook(lambda g: log.append(("pre", g[0])))
    y.grad_fn.register_hook(lambda i, o: log.append(("post", i[0], o[0])))
    Nothing.apply(y).sum().backward()
    return log, x.grad


@program(returns=[["after", [1.0, 1.0, 1.0]], ["before", [2.0, 2.0, 2.0]]])
def hooks_of_a_non_leaf_stay_with_its_node(m):
    log = []
    x = leaf(m)
    y = x * 1
    y.register_hook(lambda g: log.append(("before", g.tolist())))
    y.mul_(2)
    y.register_hook(lambda g: log.append(("after", g.tolist())))
    y.sum().backward()
    return log


@program(returns=[1.0, 1.0, 1.0])
def retain_grad_moves_with_an_in_place_operation(m):
    y = leaf(m) * 1
    y.retain_grad()
    y.mul_(2)
    y.sum().backward()
    return y.grad


@program(returns=["late"])
def leaf_hooks_are_looked_up_when_the_gradient_arrives(m):
    log = []
    x = leaf(m)
    y = (x * 2).sum()
    x.register_hook(logger(log, "late"))
    y.backward()
    return log


@program(returns=["handle", "with", "handle"])
def removal_by_handle_and_by_with(m):
    log = []
    x = leaf(m)
    handle = x.register_hook(logger(log, "handle"))
    with x.register_hook(logger(log, "with")):
        (x * 1).sum().backward()
    (x * 1).sum().backward()
    handle.remove()
    handle.remove()
    (x * 1).sum().backward()
    return log


@program(returns=["first", "second", "first"])
def a_hook_added_or_removed_while_hooks_run(m):
    log = []
    x = leaf(m)
    handles = []

    def first(g):
        log.append("first")
        handles[1].remove()

    handles.append(x.register_hook(first))
    handles.append(x.register_hook(logger(log, "second")))
    (x * 1).sum().backward()
    (x * 1).sum().backward()
    return log


@program(returns=[[["a", 2.0], ["b", 3.0]], [2.0, 30.0]])
def hooks_run_once_for_each_output(m):
    log = []
    x = leaf(m, 1.0, 2.0)
    a, b = x.unbind()
    a.register_hook(lambda g: log.append(("a", g.item())))
    b.register_hook(lambda g: (log.append(("b", g.item())), g * 10)[1])
    (a * 2 + b * 3).backward()
    return log, x.grad


@program(returns=[14.0, 14.0, 14.0])
def a_hook_on_the_root(m):
    x = leaf(m)
    y = (x * 2).sum()
    y.register_hook(lambda g: g * 7)
    y.backward()
    return x.grad


@program(returns=[[[False, True]], [2.0, 8.0, 18.0], [4.0, 8.0, 12.0]])
def hooks_under_create_graph(m):
    log = []
    x = leaf(m)
    y = x * x
    y.register_hook(lambda g: (log.append((g.requires_grad, m.is_grad_enabled())), g * x)[1])
    (first,) = m.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = m.autograd.grad(first.sum(), x)
    return log, first, second


@program(returns=[[8.0, 8.0, 8.0]])
def accumulated_gradients_of_a_node_come_summed_to_its_hook(m):
    log = []
    x = leaf(m)
    y = x * 2
    y.register_hook(lambda g: log.append(g.tolist()))
    (y * 3 + y * 4 + y).sum().backward()
    return log


@program(returns=[[-1.0, 0.0, 1.0], None])
def post_accumulate_hooks_can_use_up_the_gradient(m):
    x = leaf(m)

    def step(tensor):
        with m.no_grad():
            tensor.sub_(tensor.grad)
        tensor.grad = None

    x.register_post_accumulate_grad_hook(step)
    (x * 2).sum().backward()
    return x, x.grad


@program(raises=(RuntimeError, "hook '<lambda>' has changed the size of value"))
def a_hook_that_changes_the_size(m):
    x = leaf(m)
    x.register_hook(lambda g: g[:2])
    x.sum().backward()


@program(raises=(TypeError, "expected Variable, but hook returned 'int'"))
def a_hook_that_returns_a_number(m):
    x = leaf(m)
    x.register_hook(lambda g: 3)
    x.sum().backward()


@program(raises=(RuntimeError, "hook '<lambda>' has changed the type of value"))
def a_hook_that_changes_the_dtype(m):
    x = leaf(m)
    x.register_hook(lambda g: g.double())
    x.sum().backward()


@program(raises=(ZeroDivisionError, "division by zero"))
def an_error_of_a_hook(m):
    x = leaf(m)
    x.register_hook(lambda g: 1 / 0)
    x.sum().backward()


@program(raises=(RuntimeError, "cannot register a hook on a tensor that doesn't require gradient"))
def a_hook_where_no_gradient_is_wanted(m):
    m.ones(2).register_hook(lambda g: g)


@program(raises=(RuntimeError, "post accumulate grad hooks cannot be registered on non-leaf tensors"))
def a_post_accumulate_hook_on_a_non_leaf(m):
    (leaf(m) * 2).register_post_accumulate_grad_hook(lambda t: None)


@program(raises=(RuntimeError, "can't retain_grad on Tensor that has requires_grad=False"))
def retaining_where_no_gradient_is_wanted(m):
    m.ones(2).retain_grad()


@program(raises=(TypeError, "expected tuple, but hook returned 'Tensor'"))
def a_node_hook_returns_a_tuple(m):
    x = leaf(m)
    y = x * 2
    y.grad_fn.register_hook(lambda grad_inputs, grad_outputs: grad_inputs[0])
    y.sum().backward()


@program(raises=(TypeError, "expected tuple, but hook returned 'Tensor'"))
def a_prehook_returns_a_tuple(m):
    x = leaf(m)
    y = x * 2
    y.grad_fn.register_prehook(lambda grad_outputs: grad_outputs[0])
    y.sum().backward()


# --- several tensors --------------------------------------------------------------------------------------------------


@program(returns=[[True, True, True, False], [True, False, True, False], [True, True, True, True]])
def multi_grad_hooks(m):
    log = []
    a, b = leaf(m), leaf(m)
    c, d = a * b, a * b
    m.autograd.graph.register_multi_grad_hook((a, b, c, d), lambda gs: log.append([g is not None for g in gs]))
    c.sum().backward(retain_graph=True)
    c.sum().backward(inputs=(a,), retain_graph=True)
    (c + d).sum().backward(retain_graph=True)
    return log


@program(returns=[[3.0, 3.0, 3.0], [3.0, 3.0, 3.0]])
def multi_grad_hooks_any(m):
    log = []
    a, b = leaf(m), leaf(m)
    c = a * b
    handle = m.autograd.graph.register_multi_grad_hook((a, c, b), lambda g: log.append(g.tolist()), mode="any")
    (c * 3).sum().backward(retain_graph=True)
    (c * 3).sum().backward(retain_graph=True)
    handle.remove()
    (c * 3).sum().backward()
    return log


@program(raises=(ValueError, "Expects mode to be one of ('all', 'any') but got some"))
def multi_grad_hooks_of_an_unknown_mode(m):
    m.autograd.graph.register_multi_grad_hook((leaf(m),), lambda g: None, mode="some")


@pytest.mark.parametrize(("run", "returns", "raises"), program.found)
def test_program(run, returns, raises):
    program.check(gs, run, returns, raises)


@pytest.mark.torch
@pytest.mark.parametrize(("run", "returns", "raises"), program.found)
def test_program_in_torch(run, returns, raises, torch):
    program.check(torch, run, returns, raises)


def test_an_error_of_a_hook_names_the_node():
    x = leaf(gs)
    y = x * 2
    y.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError) as caught:
        y.sum().backward()
    assert "while running MulBackward0 in backward" in caught.value.__notes__
    x.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0, 1.0]

"""In-place writes on tensors, views and their relatives: every program runs on PyTorch too, and must agree with it.

A program is a function of a module (``gradscope`` or ``torch``) that returns named tensors. Compared are values,
versions, node names along the graph, leaf flags, gradients of the leaves, and errors: their class and familiar words.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope.runtime import events, state
from gradscope.runtime.engine import backward

Program = Callable[[Any], dict[str, Any]]


def leaf(m: Any, *shape: int) -> Any:
    count = 1
    for size in shape:
        count *= size
    return (m.arange(count, dtype=m.float64) / 4 + 0.5).view(*shape).detach().requires_grad_()


# --- programs that run ------------------------------------------------------------------------------------------------


def write_view(m: Any) -> dict[str, Any]:
    x = leaf(m, 3, 4)
    y = x * 2
    v = y.select(0, 1)
    v.mul_(3)
    return {"x": x, "y": y, "v": v, "out": (y * y).sum()}


def write_base(m: Any) -> dict[str, Any]:
    x = leaf(m, 3, 4)
    y = x * 2
    v = y.t()
    y.mul_(3)
    return {"x": x, "y": y, "v": v, "out": (v * v).sum()}


def write_sibling(m: Any) -> dict[str, Any]:
    x = leaf(m, 3, 4)
    y = x * 1
    a, b = y.narrow(0, 0, 2), y.narrow(1, 1, 2)
    a.mul_(2)
    b.add_(1)
    return {"x": x, "y": y, "a": a, "b": b, "out": (a.sum() * b.sum())}


def write_chain(m: Any) -> dict[str, Any]:
    x = leaf(m, 3, 4)
    y = x * 1
    v = y.t().narrow(0, 1, 2).select(1, 0)
    w = v.unsqueeze(0)
    w.mul_(5)
    return {"x": x, "y": y, "v": v, "w": w, "out": (y.sum() + v.sum())}


def write_chain_twice(m: Any) -> dict[str, Any]:
    x = leaf(m, 4)
    y = x * 1
    v = y.view(2, 2)
    v.sin_()
    v.mul_(2)
    y.add_(1)
    return {"x": x, "y": y, "v": v, "out": v.sum()}


def copy_into_slice(m: Any) -> dict[str, Any]:
    x, s = leaf(m, 3, 4), leaf(m, 4)
    y = x * 2
    y.select(0, 0).copy_(s)
    return {"x": x, "s": s, "y": y, "out": (y * y).sum()}


def copy_into_plain_base(m: Any) -> dict[str, Any]:
    s = leaf(m, 4)
    base = m.zeros(3, 4, dtype=m.float64)
    early = base.t()
    v = base.select(0, 1)
    v.copy_(s)
    return {"s": s, "base": base, "v": v, "early": early, "out": (base * base).sum() + early.sum()}


def write_expanded_base(m: Any) -> dict[str, Any]:
    x = leaf(m, 3)
    y = x * 1
    v = y.expand(2, 3)
    y.mul_(2)
    return {"x": x, "y": y, "v": v, "out": (v * v).sum()}


def write_on_no_grad(m: Any) -> dict[str, Any]:
    x = leaf(m, 3)
    with m.no_grad():
        x.mul_(2)
    y = x * x
    return {"x": x, "y": y, "out": y.sum()}


def view_in_no_grad_of_plain(m: Any) -> dict[str, Any]:
    base = m.zeros(4, dtype=m.float64)
    with m.no_grad():
        v = base.view(2, 2)
        v.add_(1)
    s = leaf(m, 4)
    out = (base * s).sum()
    return {"base": base, "v": v, "s": s, "out": out}


def detach_of_view(m: Any) -> dict[str, Any]:
    x = leaf(m, 2, 2)
    y = x * 1
    d = y.t().detach()
    d.add_(1)
    return {"x": x, "y": y, "d": d, "out": y.sum()}


def unbind_then_write_base(m: Any) -> dict[str, Any]:
    x = leaf(m, 2, 3)
    y = x * 1
    rows = y.detach().unbind(0)
    y.mul_(2)
    return {"x": x, "y": y, "row": rows[0], "out": y.sum()}


def zero_and_fill(m: Any) -> dict[str, Any]:
    x = leaf(m, 3, 4)
    y = x * 2
    y.select(0, 0).zero_()
    y.select(1, 1).fill_(3.0)
    return {"x": x, "y": y, "out": (y * y).sum()}


def write_with_tensor(m: Any) -> dict[str, Any]:
    x, s = leaf(m, 3, 4), leaf(m, 4)
    y = x * 2
    y.narrow(0, 1, 2).mul_(s)
    return {"x": x, "s": s, "y": y, "out": (y * y).sum()}


def write_transposed(m: Any) -> dict[str, Any]:
    x = leaf(m, 2, 3)
    y = (x * 1).t()
    y.mul_(y.detach().clone())
    z = y.contiguous()
    z.add_(y)
    return {"x": x, "y": y, "z": z, "out": z.sum()}


def write_view_of_transposed_base(m: Any) -> dict[str, Any]:
    x = leaf(m, 2, 3)
    y = x.t() * 1
    v = y.select(0, 1)
    v.mul_(3)
    return {"x": x, "y": y, "v": v, "out": (y * y).sum()}


def write_view_of_base_with_gaps(m: Any) -> dict[str, Any]:
    x = leaf(m, 2)
    y = m.zeros(3, 4, dtype=m.float64)[:, 1:3].detach()
    v = y.select(0, 1)
    v.copy_(x)
    y.narrow(1, 0, 1).mul_(x.select(0, 1))
    return {"x": x, "y": y, "v": v, "out": (y * y).sum()}


def grad_of_view(m: Any) -> dict[str, Any]:
    x = leaf(m, 2, 3)
    v = x.t()
    w = v.view(3, 2) if v.is_contiguous() else v.reshape(6)
    return {"x": x, "v": v, "w": w, "out": (v.sum() + (w * w).sum())}


def reshape_views_and_copies(m: Any) -> dict[str, Any]:
    x = leaf(m, 2, 3)
    y = x * 1
    view, copy = y.reshape(6), y.t().reshape(6)
    y.mul_(2)
    return {"x": x, "y": y, "view": view, "copy": copy, "out": view.sum() + copy.sum()}


def write_out_of_a_saved_result(m: Any) -> dict[str, Any]:
    x = leaf(m, 3)
    y = x.sin()
    y.mul_(2)
    return {"x": x, "y": y, "out": y.sum()}


def squeeze_and_flatten(m: Any) -> dict[str, Any]:
    x = leaf(m, 2, 1, 3)
    y = x * 1
    a, b = y.squeeze(1), y.flatten()
    a.mul_(2)
    return {"x": x, "y": y, "a": a, "b": b, "out": b.sum()}


def as_strided_write(m: Any) -> dict[str, Any]:
    x = leaf(m, 6)
    y = x * 1
    v = y.as_strided((2, 2), (3, 1), 1)
    v.mul_(4)
    return {"x": x, "y": y, "v": v, "out": (y * y).sum()}


def nested_slices(m: Any) -> dict[str, Any]:
    x = leaf(m, 4, 4)
    y = x * 1
    y[1:3][:, 0] *= 2
    y[0] = y[3] * 2
    return {"x": x, "y": y, "out": (y * y).sum()}


RUNS: list[Program] = [
    write_view, write_base, write_sibling, write_chain, write_chain_twice, copy_into_slice, copy_into_plain_base,
    write_expanded_base, write_on_no_grad, view_in_no_grad_of_plain, detach_of_view, unbind_then_write_base,
    zero_and_fill, write_with_tensor, write_transposed,
    write_view_of_transposed_base, write_view_of_base_with_gaps,
    grad_of_view, reshape_views_and_copies,
    write_out_of_a_saved_result, squeeze_and_flatten, as_strided_write, nested_slices,
]  # fmt: skip


def node_names(tensor: Any) -> list[str]:
    """Return the names along the graph, depth first, each node once."""
    names, seen, stack = [], set(), [tensor.grad_fn]
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        names.append(node.name().removeprefix("torch::autograd::"))
        stack.extend(edge[0] for edge in reversed(node.next_functions))
    return names


def facts(found: dict[str, Any]) -> dict[str, Any]:
    """Return what is compared of each tensor."""
    return {
        name: SimpleNamespace(
            values=numpy.array(t.detach().numpy()),
            version=t._version,
            requires_grad=t.requires_grad,
            is_leaf=t.is_leaf,
            is_view=t._is_view(),
            node=None if t.grad_fn is None else t.grad_fn.name().removeprefix("torch::autograd::"),
            names=node_names(t),
            stride=t.stride(),
            base=next((n for n, other in found.items() if other is t._base), None),
        )
        for name, t in found.items()
    }


@pytest.mark.parametrize("program", RUNS, ids=lambda p: p.__name__)
def test_program_agrees_with_pytorch(torch: Any, program: Program) -> None:
    ours, theirs = program(gs), program(torch)
    found, expected = facts(ours), facts(theirs)
    for name in expected:
        numpy.testing.assert_allclose(found[name].values, expected[name].values, err_msg=name)
        for fact in ("version", "requires_grad", "is_leaf", "is_view", "node", "stride", "base", "names"):
            assert getattr(found[name], fact) == getattr(expected[name], fact), f"{fact} of {name}"
    ours["out"].backward()
    theirs["out"].backward()
    for name, tensor in theirs.items():
        if not (tensor.is_leaf and tensor.requires_grad):
            continue
        assert (ours[name].grad is None) == (tensor.grad is None), name
        if tensor.grad is not None:
            numpy.testing.assert_allclose(ours[name].grad.numpy(), tensor.grad.numpy(), err_msg=f"gradient of {name}")


@pytest.mark.parametrize("program", RUNS, ids=lambda p: p.__name__)
def test_program_has_the_same_gradients_when_backward_is_recorded(program: Program) -> None:
    """Through CopySlices and regenerated views too, backward on tensors gives what backward on arrays gives."""
    plain, recorded = program(gs), program(gs)
    plain["out"].backward()
    leaves = [name for name, t in plain.items() if t.is_leaf and t.requires_grad and t.grad is not None]
    grads = backward.grad(recorded["out"], [recorded[name] for name in leaves], create_graph=True)
    for name, grad in zip(leaves, grads, strict=True):
        numpy.testing.assert_allclose(grad.detach().numpy(), plain[name].grad.numpy(), err_msg=name)


# --- what views are ---------------------------------------------------------------------------------------------------


def test_base_is_the_root_of_a_chain_of_views() -> None:
    x = gs.zeros(2, 3, 4)
    view = x.select(0, 1).t().narrow(0, 1, 2)
    assert view._base is x
    assert x._base is None


def test_a_reshape_that_copies_is_no_view() -> None:
    x = gs.zeros(2, 3)
    assert x.reshape(3, 2)._base is x
    assert not x.t().reshape(6)._is_view()
    assert x.contiguous() is x
    assert not x.t().contiguous()._is_view()


def test_a_regenerated_node_replaces_the_old_one() -> None:
    y = gs.ones(2, 2, requires_grad=True) * 1
    view = y.t()
    old = view.grad_fn
    assert view.grad_fn is old
    y.mul_(2)
    assert view.grad_fn.name() == "AsStridedBackward0"
    assert view.grad_fn is view.grad_fn
    assert view.grad_fn is not old


def test_a_view_taken_before_the_base_required_grad_does_too() -> None:
    base = gs.zeros(3)
    early = base.view(3, 1)
    base.narrow(0, 0, 2).copy_(gs.ones(2, requires_grad=True))
    assert base.requires_grad
    assert early.requires_grad
    assert early.grad_fn.name() == "AsStridedBackward0"


def test_a_part_of_a_leaf_that_is_a_view_keeps_its_history_when_an_alias_is_written() -> None:
    z = gs.tensor([1 + 2j, 3 - 1j]).reshape(2).requires_grad_()
    part = z.real
    part.detach().mul_(2)
    assert not part.is_leaf
    (part * part).sum().backward()
    assert z.grad.tolist() == [4 + 0j, 12 + 0j]


def test_writes_through_real_and_imaginary_parts_reach_the_gradient(torch: Any) -> None:
    def program(m: Any) -> tuple[Any, Any]:
        z = m.tensor([1 + 2j, 3 - 1j], dtype=m.complex128, requires_grad=True)
        y = z * 1
        y.real.mul_(3)
        out = m.view_as_real(y * y).sum()
        out.backward()
        return z.grad, y

    (ours, y), (theirs, other) = program(gs), program(torch)
    numpy.testing.assert_allclose(y.detach().numpy(), other.detach().numpy())
    numpy.testing.assert_allclose(ours.numpy(), theirs.numpy())


# --- saved outputs of what was written into a view --------------------------------------------------------------------

PARTS: dict[str, Callable[[Any], Any]] = {
    "view": lambda base: base.view(2, 2),
    "slice": lambda base: base[1:3],
    "nested": lambda base: base.view(2, 2).t()[1],
}


def repeated_gradient(m: Any, operator: str, part: str, order: int, before: Callable[[Any], Any] = lambda x: x) -> Any:
    """Differentiate through ``operator`` written into a part, `order` times; the last time nothing is kept."""
    x = m.tensor([0.2, 0.5, 0.7, 0.9], dtype=m.float64, requires_grad=True)
    base = before(x * 1)
    getattr(PARTS[part](base), operator)()
    total = base.pow(2).sum()
    for left in reversed(range(order)):
        (gradient,) = m.autograd.grad(total, x, create_graph=left > 0)
        total = gradient.pow(2).sum()
    return gradient


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize(
    "operator", ["relu_", "exp_", "sigmoid_", "tanh_", "sqrt_", "rsqrt_", "reciprocal_", "expm1_", "tan_"]
)
def test_a_result_saved_from_a_view_leads_through_the_base(torch: Any, operator: str, part: str, order: int) -> None:
    mine, theirs = (repeated_gradient(m, operator, part, order) for m in (gs, torch))
    numpy.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=1e-12)


def test_a_result_saved_from_a_view_may_be_packed() -> None:
    expected = repeated_gradient(gs, "exp_", "nested", 3)
    with gs.autograd.graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t):
        assert repeated_gradient(gs, "exp_", "nested", 3).tolist() == expected.tolist()
    with gs.autograd.set_detect_anomaly(True):
        assert repeated_gradient(gs, "exp_", "nested", 3).tolist() == expected.tolist()


def written_parts_of_complex_numbers(m: Any) -> Any:
    x = m.tensor([0.2 + 0.5j, 1 - 1j], dtype=m.complex128, requires_grad=True)
    base = x * 1
    m.view_as_real(base)[:, 0].exp_()
    (first,) = m.autograd.grad(m.view_as_real(base).pow(2).sum(), x, create_graph=True)
    return m.autograd.grad(m.view_as_real(first).pow(2).sum(), x)[0]


def written_pairs_as_complex_numbers(m: Any) -> Any:
    x = m.tensor([[0.2, 0.5], [1.0, 2.0]], dtype=m.float64, requires_grad=True)
    base = x * 1
    m.view_as_complex(base).exp_()
    (first,) = m.autograd.grad(base.pow(2).sum(), x, create_graph=True)
    return m.autograd.grad(first.pow(2).sum(), x)[0]


@pytest.mark.parametrize("program", [written_parts_of_complex_numbers, written_pairs_as_complex_numbers])
def test_a_result_saved_from_a_view_of_another_dtype(torch: Any, program: Callable[[Any], Any]) -> None:
    numpy.testing.assert_allclose(program(gs).numpy(), program(torch).numpy(), rtol=1e-12, atol=1e-12)


def test_the_node_of_a_written_view_is_in_no_cycle() -> None:
    base = gs.ones(4, requires_grad=True) * 1
    view = base.view(2, 2).exp_()
    gone = weakref.ref(base.grad_fn)
    del base, view
    assert gone() is None


def test_a_gradient_penalty_goes_through_normalization_and_relu_in_place(torch: Any) -> None:
    def program(m: Any) -> Any:
        model = m.nn.Sequential(m.nn.InstanceNorm1d(3), m.nn.ReLU(True))
        x = m.tensor([[[1.0, 2, 4], [0, 3, 1], [2, 2, 5]]], dtype=m.float64, requires_grad=True)
        (first,) = m.autograd.grad(model(x).pow(2).sum(), x, create_graph=True)
        return m.autograd.grad(first.pow(2).sum(), x)[0]

    numpy.testing.assert_allclose(program(gs).numpy(), program(torch).numpy(), rtol=1e-9, atol=1e-12)


VIEWS = {
    "alias": lambda x: x[...],
    "expand": lambda x: x[:1].expand(3, 4),
    "permute": lambda x: x.permute(1, 0),
    "reshape": lambda x: x.reshape(4, 3),
    "row": lambda x: x[1],
    "rows": lambda x: x[1:],
    "squeeze": lambda x: x[:, None].squeeze(1),
    "t": lambda x: x.t(),
    "transpose": lambda x: x.transpose(0, 1),
    "unsqueeze": lambda x: x.unsqueeze(0),
    "view": lambda x: x.view(-1),
}
SOURCES = {
    "leaf": lambda: gs.ones(3, 4, requires_grad=True),
    "unrecorded": lambda: gs.ones(3, 4),
    "integers": lambda: gs.ones(3, 4, dtype=gs.int64),
    "a view of integers": lambda: gs.ones(2, 3, 4, dtype=gs.int64)[1],
    "computed": lambda: gs.ones(3, 4, requires_grad=True) * 2,
    "view": lambda: (gs.ones(2, 3, 4, requires_grad=True) * 2)[1],
    "one of several": lambda: (gs.ones(2, 3, 4, requires_grad=True) * 2).unbind()[1],
    "written": lambda: gs.zeros(2, 3, 4)[0].add_(1),
    "conjugate": lambda: gs.ones(3, 4, dtype=gs.complex64, requires_grad=True).conj(),
}


@pytest.mark.parametrize("view", VIEWS)
def test_an_operator_need_not_ask_a_view_of_integers_whether_its_base_requires_grad(view):
    assert not VIEWS[view](gs.ones(3, 4, dtype=gs.int64))._flags
    assert VIEWS[view](gs.ones(3, 4))._flags == state.VIEW


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("view", VIEWS)
def test_an_inlined_view_knows_what_one_made_step_by_step_does(view, source, grad):
    def facts():
        base = SOURCES[source]()
        with gs.set_grad_enabled(grad):
            part = VIEWS[view](base)
        known, node = part._view, part.grad_fn
        root = base if base._view is None else base._view.base
        return (
            (known.base is root, known.creation, known.operator, known.version, known.output_nr, len(known.steps)),
            (part._vc is base._vc, part._flags, part.requires_grad, part.tolist(), part.stride()),
            None if node is None else (node.name(), [next_node.name() for next_node, _ in node.next_functions]),
        )

    inlined = facts()
    with events.subscribe(lambda event: None, events.OperatorRecorded):
        assert facts() == inlined
    with gs.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor):
        assert facts() == inlined


@pytest.mark.parametrize("grad", [True, False])
def test_a_call_that_fails_has_brought_the_history_of_a_view_up_to_date(torch: Any, grad: bool) -> None:
    outcomes = []
    for m in (gs, torch):
        written, base = m.ones(2, requires_grad=True), m.ones(2, 2)
        view = base.view(4)
        base.mul_(written)
        with m.set_grad_enabled(grad), pytest.raises(RuntimeError, match="must match the size"):
            view - base[:, :1].expand(2, 3)
        try:
            view.sin_()
        except RuntimeError as error:
            outcomes.append("a leaf Variable" in str(error))
        else:
            outcomes.append("written")
    assert outcomes[0] == outcomes[1]

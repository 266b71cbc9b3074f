"""as_strided: where its offset counts from, and its gradient where elements lie at one address."""

from __future__ import annotations

from typing import Any

import pytest

import gradscope as gs
from tests.runtime.ops.operator_cases import assert_same_refusal


def test_the_offset_counts_from_the_start_of_the_storage() -> None:
    tail = gs.arange(6.0)[4:]
    assert tail.as_strided((2,), (1,), 0).tolist() == [0.0, 1.0]
    assert tail.as_strided((2,), (1,)).tolist() == [4.0, 5.0]
    assert tail.as_strided((2,), (1,), 0).storage_offset() == 0


def gradient(m: Any, view: Any) -> Any:
    """Return the gradients, first and second, of a weighted sum of cubes of a view."""
    x = (m.arange(6.0) + 1).requires_grad_()
    seen = view(x)
    weights = m.arange(1.0, 1 + seen.numel()).reshape(seen.shape)
    (first,) = m.autograd.grad((seen**3 * weights).sum(), x, create_graph=True)
    (second,) = m.autograd.grad((first * m.arange(6.0)).sum(), x)
    return first.tolist(), second.tolist()


VIEWS = {
    "before the view": lambda x: x[2:].as_strided((2, 2), (1, 1), 1),
    "behind the view": lambda x: x[:3].as_strided((2,), (3,), 2),
    "an expanded row": lambda x: x[:3].expand(4, 3).as_strided((2, 2), (1, 1)),
    "an expanded column": lambda x: x[:3, None].expand(3, 4).as_strided((2, 4), (0, 1), 1),
    "windows of windows": lambda x: x.as_strided((3, 3), (1, 1)).as_strided((2,), (2,), 1),
    "windows of an unfolded tensor": lambda x: x.unfold(0, 3, 1).as_strided((2, 3), (2, 1)),
    "columns": lambda x: x.reshape(2, 3).t().as_strided((4,), (1,), 1),
}


@pytest.mark.torch
@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_gradients_of_overlapping_views_are_pytorchs(torch: Any, view: Any) -> None:
    for actual, expected in zip(gradient(gs, view), gradient(torch, view), strict=True):
        assert actual == pytest.approx(expected)


def test_an_expanded_input_gives_its_base_each_gradient_once() -> None:
    x = gs.ones(3, 1, requires_grad=True)
    x.expand(3, 4).as_strided((2, 2), (1, 1)).sum().backward()
    assert x.grad.tolist() == [[1.0], [2.0], [1.0]]


def outside(m: Any) -> Any:
    """A view of a view's storage, of elements that the base does not have, is written."""
    base = (m.arange(6.0, requires_grad=True) * 1).detach()[2:].detach()
    base.as_strided((2,), (1,), 0).mul_(m.ones(2, requires_grad=True))
    return base.sum().backward()


@pytest.mark.torch
@pytest.mark.parametrize(
    "use",
    [
        lambda m: m.arange(6.0)[4:].as_strided((2,), (1,), 5),
        lambda m: m.arange(6.0).as_strided((2,), (1,), -1),
        lambda m: m.arange(6.0).as_strided((2,), (-1,), 3),
        lambda m: m.arange(6.0).as_strided((2,), (1, 1), 0),
        lambda m: m.arange(6.0).as_strided((2,), (1 << 62,), 0),
        lambda m: m.arange(6.0).as_strided((1 << 33, 1 << 33), (1 << 33, 1 << 33), 0),
        lambda m: m.arange(6.0).as_strided((1,), (1,), (1 << 63) - 1),
        lambda m: m.arange(6.0).as_strided((1,), (1,), 1 << 63),
        lambda m: m.arange(6.0).as_strided((1,), (1,), 1.0),
        lambda m: m.arange(6.0).as_strided((1,), (1,), True),
        lambda m: m.zeros(0).as_strided((), (), 0),
        lambda m: m.arange(6.0)[1:5].view(m.int64),
        lambda m: m.arange(5.0).view(m.int64),
        lambda m: m.arange(6.0).reshape(2, 3).t().view(m.int16),
        lambda m: m.tensor(1.0).view(m.int16),
        lambda m: m.view_as_complex(m.arange(6.0)[1:5].reshape(2, 2)),
        lambda m: m.view_as_complex(m.arange(9.0).reshape(3, 3)[:, :2]),
        outside,
    ],
)
def test_what_leaves_the_storage_raises_pytorchs_exception(torch: Any, use: Any) -> None:
    assert_same_refusal(torch, use)


@pytest.mark.torch
def test_bytes_viewed_as_another_dtype_are_pytorchs(torch: Any) -> None:
    def facts(m: Any) -> Any:
        x = m.arange(8.0)[2:].reshape(3, 2)
        views = [x.view(getattr(m, kind)) for kind in ("int32", "float64", "int16", "uint8", "complex64")]
        views.append(x[:, :1].view(m.uint8))
        x.add_(1)
        leaf = m.arange(4.0, requires_grad=True) * 1
        seen = leaf.view(m.complex64)
        return (
            [(v.tolist(), v.stride(), v.storage_offset(), v._is_view(), v._version) for v in views],
            (seen.requires_grad, seen.grad_fn),
        )

    assert facts(gs) == facts(torch)


LAYOUTS = {
    "rows": lambda x: x.reshape(2, 3),
    "columns": lambda x: x.reshape(3, 2).t(),
    "a part": lambda x: x[1:5],
    "an expanded row": lambda x: x[:3].expand(2, 3),
}


@pytest.mark.torch
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_what_is_scattered_lies_where_pytorch_puts_it(layout: Any, torch: Any) -> None:
    def scattered(m: Any) -> Any:
        result = m.as_strided_scatter(layout(m.arange(6.0)), m.tensor([-1.0, -2.0]), (2,), (2,))
        return result.tolist(), result.stride()

    assert scattered(gs) == scattered(torch)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_what_is_scattered_and_what_stays_have_gradients(layout: Any) -> None:
    x, src = (gs.rand(n, dtype=gs.float64, requires_grad=True) for n in (6, 2))
    assert gs.autograd.gradcheck(lambda x, src: layout(x).as_strided_scatter(src, (2,), (2,)), (x, src))
    assert gs.autograd.gradgradcheck(lambda x, src: layout(x).as_strided_scatter(src, (2,), (2,)) ** 2, (x, src))


@pytest.mark.torch
def test_the_gradient_of_no_elements_requires_grad_where_pytorchs_does(torch: Any) -> None:
    def facts(m: Any) -> Any:
        base = (x := m.ones(2, 2, requires_grad=True)) * 1
        empty = base[:, 2:]
        empty.add_(1)  # from here on it is a part of its base by sizes and strides
        result = (empty * empty).sum()
        (first,) = m.autograd.grad(result, x, create_graph=True)
        return first.tolist(), first.requires_grad

    assert facts(gs) == facts(torch)

"""Splits that autograd does not take for views, and gradients of some of the parts, as in PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

import gradscope as gs
from tests.runtime.ops.operator_cases import assert_agrees, assert_same_refusal


@pytest.mark.torch
@pytest.mark.parametrize(
    "use",
    [
        lambda m, x: x.unsafe_chunk(2, 1),
        lambda m, x: m.unsafe_chunk(x, 3),
        lambda m, x: m.unsafe_split(x, 2, -1),
        lambda m, x: x.unsafe_split_with_sizes([1, 3, 1], 1),
        lambda m, x: x.unsafe_split(2, 1)[2],
        lambda m, x: x.unsafe_split_with_sizes([1, 3, 1], 1)[1],
        lambda m, x: x.split(2, 1)[1],
        lambda m, x: x.chunk(2, 1),
        lambda m, x: x.split([4, 0, 1], 1),
    ],
)
def test_parts_and_their_gradients(torch: Any, use: Any) -> None:
    assert_agrees(torch, use, (4, 5))


@pytest.mark.torch
def test_a_part_may_be_written_in_place(torch: Any) -> None:
    """Unlike a view of several; the gradient is that of the values that were written."""
    assert_agrees(torch, lambda m, x: (x * 1).unsafe_chunk(2)[1].mul_(3.0), (4,))
    for lib in (gs, torch):
        x = lib.ones(4, requires_grad=True) * 1
        with pytest.raises(RuntimeError, match="is a view and is being modified inplace"):
            x.chunk(2)[0].mul_(2)
        part = x.unsafe_chunk(2)[0]
        part.mul_(2)
        assert (x._version, part._is_view()) == (0, False)


@pytest.mark.torch
@pytest.mark.parametrize(
    "use",
    [
        lambda m: m.ones(3).unsafe_chunk(0),
        lambda m: m.ones(()).unsafe_chunk(2),
        lambda m: m.ones(3).unsafe_split(-1),
        lambda m: m.ones(3).unsafe_split_with_sizes([1, 1]),
        lambda m: m.ones(3).unsafe_split(1, 1),
    ],
)
def test_refusals(torch: Any, use: Any) -> None:
    assert_same_refusal(torch, use)


@pytest.mark.parametrize("beside", [(0,), (2,), (2, 3)])
def test_the_gradient_of_nothing_beside_something_is_nothing_without_a_history(beside: tuple[int, ...]) -> None:
    x, y = gs.zeros(0, requires_grad=True), gs.ones(beside, requires_grad=True)
    nothing, _ = gs.autograd.grad((gs.cat([x, y]) ** 2).sum(), [x, y], create_graph=True)
    assert nothing.shape == (0,)
    assert not nothing.requires_grad

"""Writes and views that are refused, at once or by the backward: as in PyTorch, in its familiar words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import gradscope as gs


def leaf(m: Any, *shape: int) -> Any:
    return m.ones(shape, dtype=m.float64).requires_grad_()


def leaf_write(m: Any) -> Any:
    leaf(m, 2).mul_(2)


def view_of_leaf_write(m: Any) -> Any:
    leaf(m, 2, 2).t().mul_(2)


def multi_view_write(m: Any) -> Any:
    (leaf(m, 2, 2) * 1).unbind(0)[0].mul_(2)


def split_view_write(m: Any) -> Any:
    (leaf(m, 4) * 1).split(2)[1].mul_(2)


def chunk_of_view_write(m: Any) -> Any:
    (leaf(m, 4) * 1).view(2, 2).chunk(2)[0].mul_(2)


def no_grad_view_write(m: Any) -> Any:
    y = leaf(m, 2, 2) * 1
    with m.no_grad():
        v = y.t()
    v.mul_(2)


def no_grad_view_after_base_write(m: Any) -> Any:
    y = leaf(m, 2, 2) * 1
    with m.no_grad():
        v = y.t()
    y.mul_(2)
    return v.grad_fn


def multi_view_after_base_write(m: Any) -> Any:
    y = leaf(m, 2, 2) * 1
    v = y.unbind(0)[0]
    y.mul_(2)
    return v.grad_fn


def expanded_write(m: Any) -> Any:
    m.zeros(3, 1).expand(3, 4).add_(1)


def expanded_out(m: Any) -> Any:
    m.exp(m.zeros(3, 4), out=m.zeros(3, 1).expand(3, 4))


def shape_grows(m: Any) -> Any:
    m.zeros(2).add_(m.zeros(3, 2))


def dtype_narrows(m: Any) -> Any:
    m.zeros(2, dtype=m.int64).add_(1.5)


def bool_true_division(m: Any) -> Any:
    m.ones(2, dtype=m.int64).div_(2)


def detach_view(m: Any) -> Any:
    (leaf(m, 2, 2) * 1).t().detach_()


def saved_result_written(m: Any) -> Any:
    y = leaf(m, 3).exp()
    y.mul_(2)
    y.sum().backward()


def saved_input_written_through_view(m: Any) -> Any:
    y = leaf(m, 2, 2) * 1
    z = y.sin()
    y.t().mul_(2)
    z.sum().backward()


def saved_input_written_through_detach(m: Any) -> Any:
    y = leaf(m, 3) * 1
    z = (y * y).sum()
    y.detach().add_(1)
    z.backward()


def view_of_wrong_strides(m: Any) -> Any:
    m.zeros(2, 3).t().view(6)


def expand_of_wrong_size(m: Any) -> Any:
    m.zeros(2, 3).expand(2, 4)


def select_out_of_range(m: Any) -> Any:
    m.zeros(2).select(0, 2)


def narrow_too_long(m: Any) -> Any:
    m.zeros(3).narrow(0, 1, 3)


RAISES: dict[Callable[[Any], Any], str] = {
    leaf_write: "a leaf Variable that requires grad is being used in an in-place operation",
    view_of_leaf_write: "a view of a leaf Variable that requires grad is being used in an in-place operation",
    multi_view_write: "Output 0 of Unbind",
    split_view_write: "Output 1 of Split",
    chunk_of_view_write: "is the output of a function that returns multiple views",
    no_grad_view_write: "A view was created in no_grad mode and is being modified inplace with grad mode enabled",
    no_grad_view_after_base_write: "A view was created in no_grad mode and its base or another view of its",
    multi_view_after_base_write: "its base or another view of its base has been modified inplace",
    expanded_write: "more than one element of the written-to tensor refers to a single memory location",
    expanded_out: "more than one element of the written-to tensor refers to a single memory location",
    shape_grows: "doesn't match the broadcast shape",
    dtype_narrows: "can't be cast to the desired output type",
    bool_true_division: "can't be cast to the desired output type",
    detach_view: "Can't detach views in-place",
    saved_result_written: "modified by an inplace operation",
    saved_input_written_through_view: "modified by an inplace operation",
    saved_input_written_through_detach: "modified by an inplace operation",
    view_of_wrong_strides: "view size is not compatible with input tensor's size and stride",
    expand_of_wrong_size: "must match the existing size",
    select_out_of_range: "out of range",
    narrow_too_long: "exceeds dimension size",
}


@pytest.mark.parametrize("program", RAISES, ids=lambda p: p.__name__)
def test_program_raises_with_pytorchs_words(program: Callable[[Any], Any]) -> None:
    with pytest.raises((RuntimeError, IndexError)) as caught:
        program(gs)
    assert RAISES[program] in str(caught.value)


@pytest.mark.parametrize("program", RAISES, ids=lambda p: p.__name__)
def test_program_raises_the_same_class_as_pytorch(torch: Any, program: Callable[[Any], Any]) -> None:
    with pytest.raises((RuntimeError, IndexError)) as theirs:
        program(torch)
    with pytest.raises((RuntimeError, IndexError)) as ours:
        program(gs)
    assert isinstance(ours.value, theirs.type)
    assert RAISES[program] in str(theirs.value)

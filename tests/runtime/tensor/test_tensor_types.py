"""Tensor types from before dtypes, and type names."""

from __future__ import annotations

from typing import Any

import pytest

import gradscope as gs
from tests.side_by_side import same_complaint

KINDS = ("Bool", "Byte", "Char", "Short", "Int", "Long", "Half", "Float", "Double")


@pytest.mark.torch
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("data", [(2, 3), ([1, 0],), ((1, 0, 1),), ()])
def test_they_make_tensors_of_their_dtype(torch: Any, kind: str, data: Any) -> None:
    mine, theirs = (getattr(m, f"{kind}Tensor")(*data) for m in (gs, torch))
    assert str(mine.dtype).partition(".")[2] == str(theirs.dtype).partition(".")[2]
    assert tuple(mine.shape) == tuple(theirs.shape)
    if data and not isinstance(data[0], int):
        assert mine.tolist() == theirs.tolist()


@pytest.mark.torch
def test_instances_are_tensors_of_the_dtype(torch: Any) -> None:
    for m in (gs, torch):
        assert isinstance(m.ones(2), m.FloatTensor)
        assert not isinstance(m.ones(2), m.LongTensor)
        assert not isinstance(1.0, m.FloatTensor)
        assert m.ones(2).type(m.LongTensor).dtype is m.int64


@pytest.mark.torch
def test_a_tensor_of_another_dtype_is_refused(torch: Any) -> None:
    with pytest.raises(TypeError):
        torch.LongTensor(torch.ones(2))
    with pytest.raises(TypeError, match="expected a tensor of int64"):
        gs.LongTensor(gs.ones(2))


@pytest.mark.torch
def test_the_default_type(torch: Any) -> None:
    for name in ("gradscope.DoubleTensor", gs.DoubleTensor):
        gs.set_default_tensor_type(name)
        assert gs.ones(1).dtype is gs.float64
        gs.set_default_tensor_type(gs.FloatTensor)
        assert gs.ones(1).dtype is gs.float32
    same_complaint(torch, lambda m: m.set_default_tensor_type(m.LongTensor))


@pytest.mark.torch
def test_names_of_types(torch: Any) -> None:
    for use in (
        lambda m: m.ones(2),
        lambda m: m.ones(2, dtype=m.int64),
        lambda m: m.nn.Linear(1, 1),
        lambda m: m.nn.Linear,
        lambda m: 3,
    ):
        assert gs.typename(use(gs)) == torch.typename(use(torch)).replace("torch", "gradscope")


@pytest.mark.torch
def test_new_makes_tensors_like_this_one(torch: Any) -> None:
    for m in (gs, torch):
        like = m.ones(2, dtype=m.int64)
        assert tuple(like.new(2, 3).shape) == (2, 3)
        assert like.new([1, 2]).dtype is m.int64
        assert like.new([1, 2]).tolist() == [1, 2]

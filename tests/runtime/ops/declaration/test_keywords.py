"""Keywords: ``input``, NumPy's names, sizes by name, and integers that are not Python's."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import gradscope as gs

CALLS = {
    "exp(input=)": lambda m, x: m.exp(input=x),
    "add(input=, other=)": lambda m, x: m.add(input=x, other=x, alpha=2),
    "sum(input=)": lambda m, x: m.sum(input=x),
    "sum(x=, axis=, keepdims=)": lambda m, x: m.sum(x=x, axis=1, keepdims=True),
    "x.sum(axis=, keepdims=)": lambda m, x: x.sum(axis=0, keepdims=True),
    "x.mean(axis=)": lambda m, x: x.mean(axis=(0, 1)),
    "x.var(axis=)": lambda m, x: x.var(axis=1),
    "max(input=, dim=)": lambda m, x: m.max(input=x, dim=1).values,
    "max(input=, other=)": lambda m, x: m.max(input=x, other=x + 1),
    "argmax(input=, axis=, keepdims=)": lambda m, x: m.argmax(input=x, axis=1, keepdims=True),
    "cat(axis=)": lambda m, x: m.cat([x, x], axis=1),
    "stack(tensors=, axis=)": lambda m, x: m.stack(tensors=[x, x], axis=1),
    "x.cumsum(axis=)": lambda m, x: x.cumsum(axis=1),
    "x.softmax(axis=)": lambda m, x: x.softmax(axis=1),
    "softmax(input=, dim=)": lambda m, x: m.softmax(input=x, dim=1),
    "x.unsqueeze(axis=)": lambda m, x: x.unsqueeze(axis=1),
    "matmul(input=)": lambda m, x: m.matmul(input=x, other=x.t()),
    "clamp(input=)": lambda m, x: m.clamp(input=x, min=0.5),
    "index_select(input=, axis=)": lambda m, x: m.index_select(input=x, axis=1, index=m.tensor([0])),
    "reshape(input=, shape=)": lambda m, x: m.reshape(input=x, shape=(3, 2)),
    "x.reshape(shape=)": lambda m, x: x.reshape(shape=(3, 2)),
    "x.view(size=)": lambda m, x: x.view(size=(3, 2)),
    "x.view(dtype=)": lambda m, x: x.view(dtype=m.int64),
    "permute(dims=)": lambda m, x: m.permute(input=x, dims=(1, 0)),
    "x.permute(dims=)": lambda m, x: x.permute(dims=(1, 0)),
    "x.expand(size=)": lambda m, x: x.expand(size=(4, 2, 3)),
    "x.repeat(repeats=)": lambda m, x: x.repeat(repeats=(2, 1)),
    "x.tile(dims=)": lambda m, x: x.tile(dims=(2,)),
    "flip(dims=)": lambda m, x: m.flip(input=x, dims=(1,)),
}


@pytest.mark.parametrize("call", CALLS)
def test_pytorchs_keywords_are_taken(torch: Any, call: str) -> None:
    found, expected = (CALLS[call](m, m.arange(6, dtype=m.float64).reshape(2, 3)) for m in (gs, torch))
    assert str(found.dtype).split(".")[1] == str(expected.dtype).split(".")[1]
    numpy.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-14)


ALONG = {
    "sum": lambda x, dim: x.sum(dim),
    "amax": lambda x, dim: x.amax(dim),
    "softmax": lambda x, dim: x.softmax(dim),
    "squeeze": lambda x, dim: x.squeeze(dim),
    "roll": lambda x, dim: x.roll(1, dim),
    "flatten": lambda x, dim: x.flatten(dim),
    "norm": lambda x, dim: x.norm(2, dim),
    "any": lambda x, dim: x.any(dim),
    "split": lambda x, dim: x.split(1, dim)[1],
    "tensor_split": lambda x, dim: x.tensor_split(dim)[0],
}


@pytest.mark.parametrize("use", ALONG)
def test_a_dimension_is_any_integer(use: str) -> None:
    x = gs.arange(6.0).reshape(2, 3)
    expected = ALONG[use](x, 1).tolist()
    for dim in (numpy.int64(1), numpy.int32(1), gs.tensor(1)):
        assert ALONG[use](x, dim).tolist() == expected


def test_a_name_that_is_given_twice_is_refused() -> None:
    x = gs.ones(2, 3)
    for call in (
        lambda: x.sum(dim=0, axis=0),
        lambda: x.mean(0, True, keepdims=True),
        lambda: x.cumsum(0, axis=0),
        lambda: gs.sum(x, input=x),
    ):
        with pytest.raises(TypeError):
            call()


def test_what_is_no_tensor_is_named() -> None:
    with pytest.raises(TypeError, match=r"sum\(\): argument 'input' must be Tensor, not list"):
        gs.sum([1, 2])
    with pytest.raises(TypeError, match=r"max\(\): argument 'input' .*must be Tensor, not int"):
        gs.max(input=5)


def test_a_wrong_call_is_told_by_the_functions_name() -> None:
    for call in (lambda: gs.exp2(gs.ones(1), wrong=1), lambda: gs.exp2(gs.ones(1), wrong=1)):
        with pytest.raises(TypeError, match=r"exp2\(\) got an unexpected keyword argument 'wrong'"):
            call()

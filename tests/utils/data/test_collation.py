"""Batches of samples, compared with PyTorch's."""

from __future__ import annotations

import collections
from types import MappingProxyType
from typing import Any

import numpy
import pytest

import gradscope as gs
from tests.side_by_side import same_complaint

Pair = collections.namedtuple("Pair", "a b")

BATCHES = {
    "ints": [1, 2],
    "bools": [True, False],
    "floats": [1.0, 2.0],
    "texts": ["a", "b"],
    "bytes": [b"a", b"b"],
    "tuples": [(1, 2.0), (3, 4.0)],
    "lists": [[1, 2], [3, 4]],
    "ranges": [range(2), range(2)],
    "dicts": [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}],
    "ordered": [collections.OrderedDict(a=1), collections.OrderedDict(a=2)],
    "default dicts": [collections.defaultdict(int, a=1)],
    "read-only": [MappingProxyType({"a": 1})],
    "named tuples": [Pair(1, [2]), Pair(3, [4])],
    "arrays": [numpy.ones(2), numpy.zeros(2)],
    "0-d arrays": [numpy.array(1), numpy.array(2)],
    "numbers of NumPy": [numpy.float32(1), numpy.float64(2)],
    "nested": [{"a": [(1, numpy.ones(1, "f"))]}, {"a": [(2, numpy.ones(1, "f"))]}],
}


def described(value: Any) -> Any:
    """Return types, dtypes and values of nested containers, tensors of both libraries alike."""
    if hasattr(value, "grad_fn"):
        return str(value.dtype).partition(".")[2], value.tolist()
    if isinstance(value, collections.abc.Mapping):
        return type(value), {key: described(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value), [described(item) for item in value]
    return value


@pytest.mark.torch
@pytest.mark.parametrize("function", ["default_collate", "default_convert"])
@pytest.mark.parametrize("name", BATCHES)
def test_batches(torch: Any, function: str, name: str) -> None:
    mine = getattr(gs.utils.data, function)(BATCHES[name])
    theirs = getattr(torch.utils.data, function)(BATCHES[name])
    assert described(mine) == described(theirs)


@pytest.mark.torch
@pytest.mark.parametrize(
    "batch",
    [[None], [[1], [1, 2]], [numpy.array(["a"])], [{1}], [{"a": 1}, {"b": 2}], [], [1j]],
)
def test_refusals(torch: Any, batch: Any) -> None:
    same_complaint(torch, lambda lib: lib.utils.data.default_collate(batch))


def test_tensors_are_stacked_and_recorded() -> None:
    x = gs.ones(2, requires_grad=True)
    batch = gs.utils.data.default_collate([x, x * 2])
    assert batch.shape == (2, 2)
    batch.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_a_copy_keeps_the_samples_as_they_were() -> None:
    samples = [collections.defaultdict(list, a=1), collections.defaultdict(list, a=2)]
    batch = gs.utils.data.default_collate(samples)
    assert batch["new"] == []
    assert samples[0] == {"a": 1}

from __future__ import annotations

import math

import numpy
import pytest

import gradscope as gs
from gradscope.inspect.diagnosis.nan.infinite_slopes import infinite_slope, may_be_infinite

POLES = [
    ("sqrt", 0.0), ("rsqrt", 0.0), ("log", 0.0), ("log2", 0.0), ("log10", 0.0), ("log1p", -1.0), ("asin", 1.0),
    ("asin", -1.0), ("acos", 1.0), ("acos", -1.0), ("atanh", 1.0),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("name", "pole"), POLES)
def test_what_is_called_infinite_is_and_nothing_beside_it(name, pole):
    x = gs.tensor([pole, 0.5], requires_grad=True)
    y = getattr(gs, name)(x)
    node = y.grad_fn
    operator = node.name().removesuffix("Backward0")
    assert may_be_infinite(operator)
    saved = {one.name: one.data.detach().numpy() for one in node.saved_tensors_info()}
    found = infinite_slope(operator, saved)
    assert (found.elements, found.total) == (1, 2)
    assert f"{pole:g}" in found.where
    y.sum().backward()
    assert [math.isfinite(slope) for slope in x.grad.tolist()] == [False, True]


def test_operators_without_a_pole_are_not_looked_at():
    assert not may_be_infinite("Mul")
    assert infinite_slope("Mul", {"self": numpy.zeros(3)}) is None
    assert infinite_slope("Sqrt", {}) is None

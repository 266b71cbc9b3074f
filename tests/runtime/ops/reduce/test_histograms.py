"""Histograms, beside NumPy's; PyTorch's database compares them too."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import gradscope as gs
from tests.runtime.ops.operator_cases import assert_same_refusal
from tests.side_by_side import same_complaint

VALUES = arrays.arrays("float64", st.integers(1, 30), elements=st.floats(-4, 4, width=16))


@given(values=VALUES, density=st.booleans())
def test_edges_that_are_given(values: numpy.ndarray, density: bool) -> None:
    edges = numpy.array([-2.0, -1.0, 0.5, 0.5, 3.0])
    with numpy.errstate(all="ignore"):
        found = gs.histogram(gs.from_numpy(values), gs.from_numpy(edges)).hist
        assert found.tolist() == numpy.histogram(values, edges)[0].tolist()
        inside = gs.from_numpy(values).clamp(-2, 3)
        dense = gs.histogram(inside, gs.tensor([-2.0, 0.0, 3.0], dtype=gs.float64), density=True).hist
    assert (dense * gs.tensor([2.0, 3.0], dtype=gs.float64)).sum().item() == pytest.approx(1)


@given(values=VALUES, count=st.integers(1, 7))
def test_every_element_lies_in_a_bin_of_their_range(values: numpy.ndarray, count: int) -> None:
    hist, edges = gs.histogram(gs.from_numpy(values), count)
    assert hist.sum().item() == values.size
    assert edges.shape == (count + 1,)
    assert edges[0].item() <= values.min()
    assert edges[-1].item() >= values.max()


@given(points=arrays.arrays("float64", (9, 2), elements=st.floats(-1, 1, width=16)), weighted=st.booleans())
def test_two_variables(points: numpy.ndarray, weighted: bool) -> None:
    edges = [numpy.array([-1.0, 0.0, 0.25, 1.0]), numpy.array([-0.5, 0.5])]
    weight = numpy.arange(9.0) if weighted else None
    expected, _ = numpy.histogramdd(points, edges, weights=weight)
    given_weight = None if weight is None else gs.from_numpy(weight)
    found = gs.histogramdd(gs.from_numpy(points), [gs.from_numpy(e) for e in edges], weight=given_weight)
    assert found.hist.tolist() == expected.tolist()


def test_what_is_no_number_is_in_no_bin() -> None:
    x = gs.tensor([0.5, gs.nan, gs.inf, -gs.inf])
    assert gs.histogram(x, 2, range=(0.0, 1.0)).hist.tolist() == [0.0, 1.0]


@pytest.mark.torch
@pytest.mark.parametrize(
    "use",
    [
        lambda m: m.histogram(m.ones(3, dtype=m.int64), 3),
        lambda m: m.histogram(m.ones(3), 3, range=(2.0, 1.0)),
        lambda m: m.histogram(m.ones(3), m.ones(2, 2)),
        lambda m: m.histogram(m.ones(3), m.ones(3).double()),
        lambda m: m.histogram(m.tensor([1.0, m.nan]), 3),
        lambda m: m.histogram(m.ones(3), 2, weight=m.ones(3).double()),
        lambda m: m.histogramdd(m.ones(3, 2), [2, 2], weight=m.ones(3, 1)),
        lambda m: m.histogramdd(m.ones(3, 2), [2, 2], range=[0.0, 1.0]),
        lambda m: m.histogramdd(m.ones(3, 2), [2]),
    ],
)
def test_refusals(torch: Any, use: Any) -> None:
    same_complaint(torch, use)


def test_there_is_no_gradient() -> None:
    hist = gs.histogram(gs.ones(3, requires_grad=True), 2).hist
    with pytest.raises(RuntimeError, match=r"^derivative for aten::histogramdd is not implemented"):
        hist.sum().backward()


def test_results_into_tensors() -> None:
    out = (gs.empty(0), gs.empty(0))
    found = gs.histogram(gs.tensor([1.0, 2.0]), 2, out=out)
    assert found[0] is out[0]
    assert out[0].tolist() == [1.0, 1.0]
    assert out[1].tolist() == [1.0, 1.5, 2.0]


def test_other_devices(other_device: str) -> None:
    points = gs.tensor([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    found = gs.histogramdd(points.to(other_device), [2, 2], density=True)
    assert found.hist.device.type == other_device
    assert found.hist.cpu().tolist() == gs.histogramdd(points, [2, 2], density=True).hist.tolist()


# --- equal parts ------------------------------------------------------------------------------------------------------


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32", "float64"])
def test_equal_parts_are_those_of_pytorch_to_the_last_tie(torch: Any, kind: str) -> None:
    generator = numpy.random.default_rng(0)
    for count in range(1, 61):
        values = generator.uniform(-4, 4, 50).tolist()
        found, expected = (m.histc(m.tensor(values, dtype=getattr(m, kind)), count) for m in (gs, torch))
        assert found.tolist() == expected.tolist()
        assert found.dtype is getattr(gs, kind)


def test_equal_parts_of_a_range_that_overflows() -> None:
    assert gs.histc(gs.tensor([-65504.0, 65504.0, 0.0], dtype=gs.float16), 3).tolist() == [1.0, 1.0, 1.0]
    assert gs.histc(gs.tensor([-1.7e308, 1.7e308, 0.0], dtype=gs.float64), 3).tolist() == [1.0, 1.0, 1.0]
    assert gs.histc(gs.tensor([1.0], dtype=gs.float16), 70000).argmax().item() == 35000


@pytest.mark.torch
@pytest.mark.parametrize(
    "use",
    [
        lambda m: m.histc(m.ones(3, dtype=m.int64)),
        lambda m: m.histc(m.ones(3, dtype=m.bool)),
        lambda m: m.histc(m.ones(3, dtype=m.complex64)),
        lambda m: m.histc(m.tensor([1.0, m.inf])),
        lambda m: m.histc(m.tensor([1.0, m.nan])),
        lambda m: m.histc(m.ones(3), 3, 0, m.inf),
        lambda m: m.histc(m.ones(3), 3, 0, 1e40),
        lambda m: m.histc(m.ones(3), 3, 5, 1),
    ],
)
def test_equal_parts_are_refused_as_pytorch_refuses_them(torch: Any, use: Any) -> None:
    assert_same_refusal(torch, use)

"""NumPy's form of convolution and its adjoints, beside the definition written out."""

import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradscope.runtime.kernels.convolution import convolution_kernels as kernels
from gradscope.runtime.kernels.convolution.im2col import Windows
from gradscope.runtime.ops.declaration.references import adjoint, convolved

AXIS = st.tuples(st.integers(1, 7), st.integers(1, 3), st.integers(1, 3), st.integers(0, 3), st.integers(1, 2))
GEOMETRY = st.tuples(
    st.lists(AXIS.filter(lambda a: a[0] + 2 * a[3] > a[4] * (a[1] - 1)), min_size=1, max_size=2),
    st.integers(1, 3),  # images
    st.integers(1, 2),  # groups
    st.integers(1, 2),  # inputs of a group
    st.integers(1, 3),  # outputs of a group
)


def case(axes, images, groups, inputs, outputs):
    """Return an input, a weight, a gradient, and stride, padding, dilation and groups."""
    rng = np.random.default_rng(0)
    spatial, kernel, stride, padding, dilation = (tuple(values) for values in zip(*axes, strict=True))
    out = tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in axes)
    x = rng.standard_normal((images, groups * inputs, *spatial))
    weight = rng.standard_normal((groups * outputs, inputs, *kernel))
    return x, weight, rng.standard_normal((images, groups * outputs, *out)), (stride, padding, dilation, groups)


@pytest.fixture(scope="module", params=[0, math.inf], ids=["grid", "columns"])
def few(request):
    """Have images go into the grid, or, where there are no groups, be gathered as columns."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "_FEW_PIXELS", request.param)
        yield request.param


@given(parts=GEOMETRY)
def test_it_is_the_definition(few, parts):
    x, weight, grad, rest = case(*parts)
    bias = np.arange(len(weight)) - 0.5
    found = kernels.convolved(x, weight, bias, grad.shape[2:], *rest)
    np.testing.assert_allclose(found, convolved(x, weight, bias, *rest), atol=1e-12)


def test_many_weights_for_few_pixels_are_gathered_as_columns(monkeypatch):
    gathered = []
    monkeypatch.setattr(kernels, "_FEW_PIXELS", 4)
    monkeypatch.setattr(kernels, "Windows", lambda *geometry: gathered.append(geometry) or Windows(*geometry))
    for images, shared in ((2, True), (9, False)):
        gathered.clear()
        x, weight, grad, rest = case([(4, 3, 1, 1, 1), (4, 3, 1, 1, 1)], images, 1, 3, 8)
        kernels.convolved(x, weight, None, grad.shape[2:], *rest)
        kernels.input_gradient(grad, weight, x.shape[2:], *rest)
        kernels.weight_gradient(x, grad, weight.shape[2:], *rest)
        assert len(gathered) == 3 * shared


@pytest.mark.slow
@given(parts=GEOMETRY)
def test_gradients_are_its_adjoints(few, parts):
    x, weight, grad, rest = case(*parts)
    expected = adjoint(lambda x: convolved(x, weight, None, *rest), x.shape, grad)
    for many in (0, math.inf):  # it is scattered, or gathered
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kernels, "_MANY_OUTPUTS", many)
            found = kernels.input_gradient(grad, weight, x.shape[2:], *rest)
        np.testing.assert_allclose(found, expected, atol=1e-12)
    found = kernels.weight_gradient(x, grad, weight.shape[2:], *rest)
    expected = adjoint(lambda w: convolved(x, w, None, *rest), weight.shape, grad)
    np.testing.assert_allclose(found, expected, atol=1e-12)


@cache
def in_one_piece():
    """Return a case, and what the definition makes of it: the result, and the gradients of input and weight."""
    x, weight, grad, rest = case([(9, 3, 1, 1, 1), (8, 3, 2, 1, 1)], 5, 2, 3, 4)
    result = convolved(x, weight, None, *rest)
    of_input = adjoint(lambda x: convolved(x, weight, None, *rest), x.shape, grad)
    of_weight = adjoint(lambda w: convolved(x, w, None, *rest), weight.shape, grad)
    return (x, weight, grad, rest), (result, of_input, of_weight)


@pytest.mark.slow
@pytest.mark.parametrize("many", [0, math.inf], ids=["scattered", "gathered"])
@pytest.mark.parametrize(("grid", "columns"), [(1, 1), (1, 1 << 17), (1 << 16, 1)])
def test_blocks_are_put_together(monkeypatch, grid, columns, many):
    monkeypatch.setattr(kernels, "_FEW_PIXELS", 0)
    monkeypatch.setattr(kernels, "_MANY_OUTPUTS", many)
    monkeypatch.setattr(kernels, "_GRID", grid)
    monkeypatch.setattr(kernels, "_COLUMNS", columns)
    monkeypatch.setattr(kernels, "_SCATTERED", 9 * columns)
    monkeypatch.setattr(kernels, "_LEAST_ROW", 7)
    (x, weight, grad, rest), (result, of_input, of_weight) = in_one_piece()
    found = kernels.convolved(x, weight, None, grad.shape[2:], *rest)
    np.testing.assert_allclose(found, result, atol=1e-12)
    found = kernels.input_gradient(grad, weight, x.shape[2:], *rest)
    np.testing.assert_allclose(found, of_input, atol=1e-12)
    found = kernels.weight_gradient(x, grad, weight.shape[2:], *rest)
    np.testing.assert_allclose(found, of_weight, atol=1e-12)


def test_arrays_that_suit():
    single, double = np.ones(3, "f"), np.ones(3)
    assert kernels.suits(single, single)
    assert kernels.suits(double)
    assert not kernels.suits(single, double)
    assert not kernels.suits(double[:0])
    assert not kernels.suits(np.ones(3, int))


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(-9, 9)), max_size=3), st.integers(-5, 5))
def test_numbers_in_a_lattice_are_found_in_it(axes, first):
    numbers = [first]
    for count, step in axes:
        numbers = [number + step * n for number in numbers for n in range(count)]
    shape, steps = kernels._lattice(numbers)
    found = sum(step * index for step, index in zip(steps, np.indices(shape), strict=True))
    assert (first + np.broadcast_to(found, shape).ravel()).tolist() == numbers


def test_numbers_in_no_lattice_leave_some_out():
    for numbers in ([0, 1, 3], [0, 1, 5, 6, 7, 12], [0, 2, 1, 3, 9, 10, 11, 12]):
        assert np.prod(kernels._lattice(numbers)[0]) < len(numbers)

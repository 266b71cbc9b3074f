"""Elements at the places that an index names along an axis, beside NumPy's own."""

import numpy as np
import pytest

import gradscope as gs
from gradscope.runtime.kernels import forms
from gradscope.runtime.ops.index import places
from tests.runtime.kernels.both_forms import numpy_alone

CASES = {
    "rows": ((150, 200), (150, 200)),
    "fewer of each": ((150, 200), (140, 190)),
    "more along the axis": ((4, 5, 6), (4, 5, 6)),
    "three dimensions": ((20, 30, 40), (20, 30, 40)),
    "few long rows": ((2, 40_000), (2, 40_000)),
    "one column": ((30_000, 1), (30_000, 1)),
}


@pytest.fixture(params=[True, False], ids=["as installed", "NumPy alone"], autouse=True)
def kernels(request):
    if request.param:
        yield
    else:
        with numpy_alone():
            yield


def each_case(dtype="f"):
    rng = np.random.default_rng(0)
    for name, (shape, asked) in CASES.items():
        for axis in range(len(shape)):
            size = tuple(200 if name == "more along the axis" and d == axis else s for d, s in enumerate(asked))
            array = (rng.standard_normal(shape) * 9).astype(dtype)
            index = rng.integers(shape[axis], size=size)
            values = (rng.standard_normal((*size[:-1], 2 * size[-1])) * 9).astype(dtype)[..., ::2]
            key = tuple(index if d == axis else np.arange(n).reshape([-1 if i == d else 1 for i in range(len(size))])
                        for d, n in enumerate(size))  # fmt: skip
            yield array, axis, index, values, key


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", ["i4", "i8"])
def test_elements_are_taken_from_their_places(kind, threads):
    before = gs.get_num_threads()
    gs.set_num_threads(threads)
    try:
        for array, axis, index, _, key in each_case():
            np.testing.assert_array_equal(places.take(array, axis, index.astype(kind)), array[key])
    finally:
        gs.set_num_threads(before)


def test_the_last_of_several_values_stays():
    for array, axis, index, values, key in each_case():
        for given in (values, np.float32(3), values[:1]):
            found, expected = array.copy(), array.copy()
            places.put(found, axis, index, given)
            expected[key] = given
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", ["f", "d", "i8", "e"])
@pytest.mark.parametrize("ufunc", [np.add, np.maximum, np.minimum, np.multiply])
def test_values_are_combined_one_after_the_other(ufunc, dtype):
    for array, axis, index, values, key in each_case(dtype):
        found, expected = array.copy(), array.copy()
        with np.errstate(over="ignore", invalid="ignore"):
            places.combine(ufunc, found, axis, index, values)
            ufunc.at(expected, key, values)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("reduce", ["sum", "mean", "amax", "amin", "prod"])
@pytest.mark.parametrize("include_self", [True, False])
def test_large_reductions_and_their_gradients_are_pytorchs(torch, reduce, include_self):
    shape = (130, 140)
    assert np.prod(shape) >= forms.LEAST

    def run(lib):
        rng = np.random.default_rng(0)
        x, y = (lib.tensor(rng.uniform(0.5, 1.5, shape).astype("f"), requires_grad=True) for _ in range(2))
        index = lib.tensor(rng.integers(140, size=shape))
        result = x.scatter_reduce(1, index, y, reduce, include_self=include_self)
        taken = result.gather(1, index) + result.scatter(0, index % 130, y).scatter_add(1, index, x)
        (taken * lib.tensor(rng.standard_normal(shape).astype("f"))).sum().backward()
        return [t.detach().numpy() for t in (result, taken, x.grad, y.grad)]

    for found, expected in zip(run(gs), run(torch), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_positions_beyond_the_indexs_own_dtype_are_right():
    array = np.broadcast_to(np.int8(0), (4, 720_000_000))
    index = np.full((1, forms.LEAST), 3, np.int32)
    ((some, positions),) = places._positions(array, 0, index, slice(0, 1))
    assert some == slice(0, 1)
    np.testing.assert_array_equal(positions, 3 * 720_000_000 + np.arange(forms.LEAST))

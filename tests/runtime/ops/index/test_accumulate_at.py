"""Writes that meet at one place: on other devices the same as on the host, for every dtype."""

from __future__ import annotations

import numpy
import pytest

import gradscope as gs
from gradscope.runtime.ops.index.accumulate_at import accumulate_at
from tests.strict_arrays import strict, to_strict

PLACES = numpy.array([3, 0, 3, 3, 1])
INTEGERS = ["bool", "uint8", "int8", "int16", "int32", "int64"]
FLOATS = ["float16", "float32", "float64"]


def numbers(kind: str, count: int) -> numpy.ndarray:
    """Return numbers of both signs, among them large ones of integers."""
    values = numpy.random.default_rng(count).standard_normal(count) * 3
    if numpy.dtype(kind).kind == "i":
        values[1], values[2] = numpy.iinfo(kind).min, numpy.iinfo(kind).max // 2
    return (values + 1j * values[::-1]).astype(kind) if kind.startswith("complex") else values.astype(kind)


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *(("add", kind) for kind in [*INTEGERS, *FLOATS, "complex64", "complex128"]),
        *((name, kind) for name in ("maximum", "minimum") for kind in [*INTEGERS, *FLOATS]),
    ],
)
def test_it_is_numpys_at(name: str, kind: str) -> None:
    expected, values = numbers(kind, 4), numbers(kind, 5)
    found = to_strict(expected)
    getattr(numpy, name).at(expected, PLACES, values)
    accumulate_at(strict, name, found, to_strict(PLACES), to_strict(values))
    assert found.dtype == expected.dtype
    tolerance = {"float16": 1e-3, "float64": 0 if name != "add" else 1e-12}.get(kind, 1e-6)
    numpy.testing.assert_allclose(found._data, expected, rtol=tolerance)


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_extremes_of_special_numbers_are_numpys(name: str, kind: str) -> None:
    """CuPy's own, fmaxf() and fminf(), round doubles and lose a NaN."""
    special = numpy.array([0.0, -0.0, 1 / 3, -1 / 3, numpy.inf, -numpy.inf, numpy.nan, -numpy.nan], kind)
    for start in special:
        expected = numpy.full(len(special), start, kind)
        found = to_strict(expected.copy())
        places = numpy.arange(len(special))
        getattr(numpy, name).at(expected, places, special)
        accumulate_at(strict, name, found, to_strict(places), to_strict(special))
        numpy.testing.assert_array_equal(found._data, expected)


@pytest.mark.parametrize("kind", ["int64", "int16", "uint8", "complex128", "float64"])
def test_the_functions_that_stand_on_it(kind: str, other_device: str) -> None:
    found = []
    for device in ("cpu", other_device):
        values, places = (gs.from_numpy(x).to(device) for x in (numbers(kind, 5), PLACES))
        target = gs.zeros(4, 5, dtype=values.dtype, device=device)
        rows = values.expand(5, 5)
        found.append(
            [
                target.index_add(0, places, rows),
                target.scatter_add(0, places.expand(2, 5), rows),
                target.index_put((places, places), values, accumulate=True),
                target.put(places, values, accumulate=True),
                *(
                    target.scatter_reduce(0, places.expand(2, 5), rows, reduce)
                    for reduce in ("amax", "amin", "mean", "prod")
                    if kind != "complex128"
                ),
            ]
        )
    for here, there in zip(*found, strict=True):
        assert there.device.type == other_device
        assert gs.equal(here, there.cpu())


def test_gradients_of_complex_elements_that_were_taken_twice(other_device: str) -> None:
    x = gs.from_numpy(numbers("complex128", 4)).to(other_device).requires_grad_()
    places = gs.from_numpy(PLACES).to(other_device)
    (x[places].abs() ** 2).sum().backward()
    times = gs.tensor([1.0, 1.0, 0.0, 3.0], dtype=gs.float64)
    assert gs.allclose(x.grad.cpu(), 2 * x.detach().cpu() * times)

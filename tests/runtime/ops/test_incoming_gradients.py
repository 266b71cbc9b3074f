"""What reductions and choices make of an infinite gradient and of NaN, at ties, zeros and NaN, as in PyTorch.

An infinite gradient times a mask is NaN where the mask is 0: an instrument that looks for NaN must meet those that
PyTorch makes, and no others.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import gradscope as gs

INF, NAN = math.inf, math.nan
INPUTS: dict[str, Any] = {
    "matrix": [[1.0, 2.0, 3.0], [4.0, 0.5, -2.0]],
    "ties": [[1.0, 1.0, 2.0], [1.0, 2.0, 2.0]],
    "zeros": [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]],
    "NaN": [[1.0, NAN, 2.0], [NAN, NAN, 3.0]],
    "infinite": [[INF, 1.0, -INF], [INF, INF, 0.0]],
    "0-d": 1.5,
    "0-d zero": 0.0,
    "0-d NaN": NAN,
    "one": [2.0],
    "vector": [1.0, 3.0, 3.0, 2.0],
    "vector with zeros": [0.0, 2.0, 0.0, 1.0],
    "empty": [],
}
GRADIENTS = (1.0, INF, NAN)


def _norms(lib: Any) -> dict[str, Callable[[Any], Any]]:
    orders = (0.5, 1, 1.5, 2, 3, INF, -INF, -1)
    return {f"norm {p} of {dim}": lambda x, p=p, d=dim: lib.norm(x, p, d) for p in orders for dim in (None, 0, -1)}


def _reductions(lib: Any) -> dict[str, Callable[[Any], Any]]:
    named = ["max", "min", "median", "nanmedian", "amax", "amin", "sum", "mean", "nansum", "nanmean", "prod"]
    chosen = ["max", "min", "median", "nanmedian"]
    found = {n: lambda x, n=n: getattr(lib, n)(x) for n in named}
    found |= {f"{n} of 0": lambda x, n=n: getattr(lib, n)(x, 0)[0] for n in chosen}
    found |= {f"{n} of -1": lambda x, n=n: getattr(lib, n)(x, -1, True) for n in named if n not in chosen}
    for name in ("var", "std"):
        for dim in (None, 0, -1):
            for correction in (0, 1, 2):

                def spread(x: Any, name: str = name, dim: Any = dim, correction: int = correction) -> Any:
                    return getattr(lib, name)(x, dim, correction=correction)

                found[f"{name} {correction} of {dim}"] = spread
    for q in (0.0, 0.25, 1.0):
        found[f"quantile {q}"] = lambda x, q=q: lib.quantile(x, q, 0)
        found[f"nanquantile {q}"] = lambda x, q=q: lib.nanquantile(x, q)
    return found


def _along(lib: Any) -> dict[str, Callable[[Any], Any]]:
    return {
        "cummax": lambda x: lib.cummax(x, 0)[0],
        "cummin": lambda x: lib.cummin(x, -1)[0],
        "cumsum": lambda x: lib.cumsum(x, 0),
        "cumprod": lambda x: lib.cumprod(x, 0),
        "cumprod of the last": lambda x: lib.cumprod(x, -1),
        "sort": lambda x: lib.sort(x, -1)[0],
        "topk": lambda x: lib.topk(x, 1, 0)[0],
        "logsumexp": lambda x: lib.logsumexp(x, 0),
        "softmax": lambda x: lib.softmax(x, 0),
        "aminmax": lambda x: sum(lib.aminmax(x, dim=0)),
        "nan_to_num": lambda x: lib.nan_to_num(x),
        "clamp": lambda x: lib.clamp(x, 1.0, 2.0),
        "0 to a power": lambda x: 0.0**x,
        "2 to a power": lambda x: 2.0**x,
        "itself to its power": lambda x: x**x,
        "max_pool": lambda x: lib.nn.functional.max_pool1d(x[None], 2),
        "lp_pool": lambda x: lib.nn.functional.lp_pool1d(x[None], 2, 2),
        "normalize": lambda x: lib.nn.functional.normalize(x, dim=0),
        "cdist": lambda x: lib.cdist(x, x.flip(0)),
        "cdist of order 3": lambda x: lib.cdist(x, x.flip(0), 3.0),
        "dist": lambda x: lib.dist(x, lib.ones_like(x)),
    }


def _scattered(lib: Any) -> dict[str, Callable[[Any], Any]]:
    found: dict[str, Callable[[Any], Any]] = {}
    for reduce in ("sum", "prod", "mean", "amax", "amin"):
        for own in (True, False):

            def each(x: Any, reduce: str = reduce, own: bool = own) -> Any:
                places = lib.zeros_like(x, dtype=lib.int64)
                return x.scatter_reduce(0, places, x * 2, reduce, include_self=own)

            def slices(x: Any, reduce: str = reduce, own: bool = own) -> Any:
                places = lib.zeros(x.shape[0] if x.ndim else 1, dtype=lib.int64)
                return x.index_reduce(0, places, x * 2, reduce, include_self=own)

            found[f"scatter_reduce {reduce} {own}"] = each
            if reduce != "sum":
                found[f"index_reduce {reduce} {own}"] = slices
    return found


FAMILIES = (_norms, _reductions, _along, _scattered)
NAMES = [(family, name) for family in FAMILIES for name in family(gs)]


def outcome(lib: Any, function: Callable[[Any], Any], values: Any, incoming: float) -> Any:
    """Return the value and the gradient as arrays, or the class of what was raised."""
    x = lib.tensor(values, dtype=lib.float64, requires_grad=True)
    try:
        y = function(x)
    except (RuntimeError, IndexError) as error:
        return IndexError if isinstance(error, IndexError) else RuntimeError
    (gradient,) = lib.autograd.grad(y, x, lib.full_like(y, incoming))
    return y.detach().numpy(), gradient.detach().numpy()


@pytest.mark.torch
@pytest.mark.parametrize(("family", "name"), NAMES, ids=[name for _, name in NAMES])
@pytest.mark.filterwarnings("ignore")
def test_an_incoming_gradient_makes_the_nan_that_pytorch_makes(torch: Any, family: Any, name: str) -> None:
    mine, theirs = family(gs)[name], family(torch)[name]
    for kind, values in INPUTS.items():
        for incoming in GRADIENTS:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found, expected = outcome(gs, mine, values, incoming), outcome(torch, theirs, values, incoming)
            where = f"{name} of {kind}, gradient {incoming}"
            if isinstance(expected, type):
                assert found is expected, where
                continue
            for ours, other in zip(found, expected, strict=True):
                assert ours.shape == other.shape, where
                numpy.testing.assert_allclose(ours, other, rtol=1e-6, atol=1e-9, err_msg=where)


@pytest.mark.parametrize("choose", [gs.max, gs.median, gs.nanmedian])
def test_an_infinite_gradient_reaches_the_chosen_element_alone(choose: Callable[[Any], Any]) -> None:
    x = gs.tensor([3.0, 1.0], requires_grad=True)
    chosen = choose(x)
    (chosen - chosen.detach()).sqrt().backward()
    assert x.grad.tolist() == [INF if value == chosen.item() else 0.0 for value in x.tolist()]


def test_the_second_derivative_of_running_and_scattered_products_with_two_zeros() -> None:
    x = gs.tensor([2.0, 0.0, 3.0, 0.0], dtype=gs.float64, requires_grad=True)
    weights = gs.tensor([1.0, 2.0, 3.0, 4.0], dtype=gs.float64)
    (first,) = gs.autograd.grad((x.cumprod(0) * weights).sum(), x, create_graph=True)
    assert gs.autograd.grad((first * weights).sum(), x)[0].tolist() == [22.0, 125.0, 12.0, 48.0]
    into = gs.tensor([1.0], dtype=gs.float64, requires_grad=True)
    places = gs.tensor([0, 0, 0, 0])
    for product in (into.scatter_reduce(0, places, x, "prod"), into.index_reduce(0, places, x, "prod")):
        (first,) = gs.autograd.grad(product, x, create_graph=True)
        assert first.tolist() == [0.0] * 4
        assert gs.autograd.grad(first[1], x)[0].tolist() == [0.0, 0.0, 0.0, 6.0]


COMPLEX_REDUCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "var": lambda lib, z: lib.var(z),
    "std": lambda lib, z: lib.std(z),
    **{f"norm {p}": lambda lib, z, p=p: lib.linalg.vector_norm(z, p) for p in (1, 2, 3, 6)},
    "dist": lambda lib, z: lib.dist(z, lib.ones_like(z) * (9 + 9j), 4),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", COMPLEX_REDUCTIONS)
@pytest.mark.filterwarnings("ignore")
def test_an_infinite_gradient_of_a_real_number_has_no_nan_for_complex_ones(torch: Any, name: str) -> None:
    found = []
    for lib in (gs, torch):
        z = lib.tensor([1 + 2j, 0.5 - 1j, 3 + 1j, 2 - 2j], requires_grad=True)
        COMPLEX_REDUCTIONS[name](lib, z).backward(lib.tensor(INF))
        found.append(numpy.asarray(z.grad.resolve_conj()))
    numpy.testing.assert_array_equal(*found)
    assert not numpy.isnan(found[0]).any()


@pytest.mark.parametrize(("padding", "reached"), [("zeros", 1), ("border", 1), ("reflection", 4)])
@pytest.mark.parametrize("sizes", [(1, 1, 2, 2), (1, 1, 2, 2, 2)], ids=["image", "volume"])
def test_an_infinite_gradient_reaches_the_elements_that_were_read(sizes: Any, padding: str, reached: int) -> None:
    dims = len(sizes) - 2
    image = gs.ones(*sizes, requires_grad=True)
    place = gs.full((1, *(1,) * dims, dims), 1.25)
    gs.nn.functional.grid_sample(image, place, padding_mode=padding, align_corners=True).backward(
        gs.full((1, 1, *(1,) * dims), INF)
    )
    assert image.grad.reshape(-1)[-1].item() == INF
    assert image.grad.isinf().sum().item() == (reached if dims == 2 else reached**1.5)
    assert not image.grad.isnan().any()


def test_a_nan_of_an_image_is_not_read_outside_of_it() -> None:
    image = gs.full((1, 1, 2, 2), NAN)
    outside = gs.nn.functional.grid_sample(image, gs.full((1, 1, 1, 2), -5.0), align_corners=True)
    assert outside.item() == 0


@pytest.mark.parametrize(("reduce", "expected"), [("max", [0, INF, INF, 0]), ("min", [INF, 0, 0, INF])])
def test_an_infinite_gradient_reaches_the_extremes_of_segments_alone(reduce: str, expected: list[float]) -> None:
    data = gs.tensor([1.0, 2.0, 5.0, 3.0], requires_grad=True)
    segments = gs.segment_reduce(data, reduce, lengths=gs.tensor([2, 2]))
    segments.backward(gs.tensor([INF, INF]))
    assert data.grad.tolist() == expected

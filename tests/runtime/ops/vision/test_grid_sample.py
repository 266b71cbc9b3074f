"""Sampling along a grid beside PyTorch's."""

from __future__ import annotations

import itertools
from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope.autograd.gradcheck import gradgradcheck
from tests.side_by_side import compare, same_complaint

rng = numpy.random.default_rng(0)
PADDINGS = ("zeros", "border", "reflection")


def sample(lib: Any, x: Any, grid: Any, mode: str, padding: str, align: bool) -> Any:
    return lib.nn.functional.grid_sample(x, grid, mode, padding, align)


@pytest.mark.torch
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("align", [False, True])
def test_images(torch: Any, mode: str, padding: str, align: bool) -> None:
    for size, reach in (((5, 4), 1.0), ((3, 6), 3.5), ((1, 4), 1.5)):
        x, grid = rng.normal(size=(2, 3, *size)), rng.uniform(-reach, reach, (2, 4, 5, 2))
        compare(torch, lambda lib, x, g: sample(lib, x, g, mode, padding, align), x, grid, twice=False)


@pytest.mark.torch
@pytest.mark.parametrize(("mode", "padding"), list(itertools.product(["bilinear", "nearest"], PADDINGS)))
@pytest.mark.parametrize("align", [False, True])
def test_volumes(torch: Any, mode: str, padding: str, align: bool) -> None:
    x, grid = rng.normal(size=(2, 2, 3, 4, 2)), rng.uniform(-2, 2, (2, 2, 3, 2, 3))
    compare(torch, lambda lib, x, g: sample(lib, x, g, mode, padding, align), x, grid, twice=False)


@pytest.mark.torch
def test_places_on_elements_and_edges(torch: Any) -> None:
    line = numpy.array([-1.0, -0.5, 0.0, 0.5, 1.0])
    grid = numpy.stack(numpy.meshgrid(line, line), axis=-1)[None]
    x = rng.normal(size=(1, 2, 5, 5))
    for mode, padding, align in itertools.product(("bilinear", "nearest", "bicubic"), PADDINGS, (False, True)):
        a, b = (sample(lib, lib.tensor(x), lib.tensor(grid), mode, padding, align) for lib in (gs, torch))
        numpy.testing.assert_allclose(a.numpy(), b.numpy(), atol=1e-12, err_msg=f"{mode} {padding} {align}")


@pytest.mark.torch
def test_places_far_outside(torch: Any) -> None:
    grid = numpy.array([[[[1e30, 0.0], [numpy.inf, 0.2], [-numpy.inf, numpy.inf], [-7e9, 8e15]]]])
    x = rng.normal(size=(1, 1, 3, 3))
    for padding in ("zeros", "border"):
        a, b = (sample(lib, lib.tensor(x), lib.tensor(grid), "nearest", padding, False) for lib in (gs, torch))
        assert a.tolist() == b.tolist()
    border = sample(gs, gs.tensor(x), gs.tensor(grid), "bilinear", "border", False)
    assert border.isfinite().all()


def test_gradients_of_gradients() -> None:
    for spatial, mode, padding in ((2, "bicubic", "reflection"), (2, "bilinear", "border"), (3, "bilinear", "zeros")):
        x = gs.tensor(rng.normal(size=(1, 2, 3, 4, 2)[: spatial + 2]), requires_grad=True)
        grid = gs.tensor(rng.uniform(-1.2, 1.2, (*(1, 2, 1, 2)[: spatial + 1], spatial)), requires_grad=True)
        assert gradgradcheck(lambda x, g, m=mode, p=padding: sample(gs, x, g, m, p, False), (x, grid))


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:Since version 1.3.0, affine_grid behavior has changed for unit-size:UserWarning")
@pytest.mark.parametrize("align", [False, True])
def test_affine_grids(torch: Any, align: bool) -> None:
    for size in ((2, 3, 4, 5), (1, 1, 1, 3), (2, 1, 2, 3, 4), (1, 1, 1, 1)):
        theta = rng.normal(size=(size[0], len(size) - 2, len(size) - 1))
        compare(torch, lambda lib, t, s=size: lib.nn.functional.affine_grid(t, s, align_corners=align), theta)


def test_the_identity_map_reads_the_image_itself() -> None:
    x = gs.tensor(rng.normal(size=(1, 2, 4, 5)))
    for align in (False, True):
        grid = gs.nn.functional.affine_grid(gs.eye(2, 3, dtype=gs.float64).unsqueeze(0), x.shape, align_corners=align)
        found = gs.nn.functional.grid_sample(x, grid, align_corners=align)
        numpy.testing.assert_allclose(found.numpy(), x.numpy(), atol=1e-12)


def test_the_default_of_align_corners_is_told() -> None:
    with pytest.warns(UserWarning, match="has changed to align_corners=False"):
        gs.nn.functional.grid_sample(gs.zeros(1, 1, 2, 2), gs.zeros(1, 1, 1, 2))
    with pytest.warns(UserWarning, match="has changed to align_corners=False"):
        gs.nn.functional.affine_grid(gs.zeros(1, 2, 3), (1, 1, 2, 2))
    with pytest.warns(UserWarning, match="has changed for unit-size grids"):
        gs.nn.functional.affine_grid(gs.zeros(1, 2, 3), (1, 1, 2, 1), align_corners=True)


@pytest.mark.torch
def test_without_places_or_images(torch: Any) -> None:
    for shape, places in (((0, 1, 4, 4), (0, 2, 2, 2)), ((1, 1, 4, 4), (1, 0, 2, 2)), ((1, 0, 4, 4), (1, 3, 2, 2))):
        compare(
            torch,
            lambda lib, x, g: sample(lib, x, g, "bilinear", "zeros", False),
            numpy.zeros(shape),
            numpy.zeros(places),
            twice=False,
        )


@pytest.mark.torch
@pytest.mark.parametrize(
    ("shape", "places", "options"),
    [
        ((1, 1, 4, 4), (1, 2, 2, 3), {}),
        ((1, 1, 4, 4), (2, 2, 2, 2), {}),
        ((1, 1, 4, 4), (1, 2, 2), {}),
        ((1, 1, 4, 4), (1, 2, 2, 2), {"mode": "cubic"}),
        ((1, 1, 4, 4), (1, 2, 2, 2), {"padding_mode": "wrap"}),
        ((1, 1, 4, 4, 4), (1, 2, 2, 2, 3), {"mode": "bicubic"}),
        ((1, 1, 0, 4), (1, 2, 2, 2), {}),
    ],
)
def test_wrong_samples_raise_what_pytorch_raises(torch: Any, shape: Any, places: Any, options: Any) -> None:
    same_complaint(
        torch,
        lambda lib: lib.nn.functional.grid_sample(
            lib.zeros(*shape), lib.zeros(*places), align_corners=False, **options
        ),
    )


@pytest.mark.torch
@pytest.mark.parametrize(
    "wrong",
    [
        lambda lib: lib.nn.functional.grid_sample(
            lib.zeros(1, 1, 4, 4), lib.zeros(1, 2, 2, 2, dtype=lib.float64), align_corners=False
        ),
        lambda lib: lib.nn.functional.affine_grid(lib.zeros(1, 3, 4), (1, 1, 4, 4), False),
        lambda lib: lib.nn.functional.affine_grid(lib.zeros(1, 2, 3), (1, 1, 4, 4, 4), False),
        lambda lib: lib.nn.functional.affine_grid(lib.zeros(1, 2, 3), (1, 1, 4), False),
        lambda lib: lib.nn.functional.affine_grid(lib.zeros(1, 2, 3, dtype=lib.int64), (1, 1, 4, 4), False),
        lambda lib: lib.nn.functional.affine_grid(lib.zeros(1, 2, 3), (1, 1, 0, 4), False),
        lambda lib: lib.nn.functional.affine_grid(lib.zeros(1, 2, 3), (2, 1, 4, 4), align_corners=False),
    ],
)
def test_wrong_calls_raise_what_pytorch_raises(torch: Any, wrong: Any) -> None:
    same_complaint(torch, wrong)

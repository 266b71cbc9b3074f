"""Interpolation beside PyTorch's, to the second derivative."""

from __future__ import annotations

import itertools
from typing import Any

import numpy
import pytest

import gradscope as gs
from tests.side_by_side import compare, same_complaint

rng = numpy.random.default_rng(0)
SHAPES = {3: (2, 3, 5), 4: (2, 3, 5, 4), 5: (1, 2, 3, 2, 4)}
CASES: list[Any] = [(mode, ndim, None) for mode in ("nearest", "nearest-exact", "area") for ndim in (3, 4, 5)]
ALIGNABLE = (("linear", 3), ("bilinear", 4), ("bicubic", 4), ("trilinear", 5))
CASES += [(mode, ndim, align) for mode, ndim in ALIGNABLE for align in (None, False, True)]


def normal(*shape: int) -> Any:
    return rng.normal(size=shape)


@pytest.mark.torch
@pytest.mark.parametrize(("mode", "ndim", "align"), CASES)
def test_interpolate(torch: Any, mode: str, ndim: int, align: bool | None) -> None:
    x = normal(*SHAPES[ndim])
    sizes: Any = [{"size": 7}, {"size": (2, 9, 4)[: ndim - 2]}, {"size": 1}, {"size": x.shape[2:]}]
    sizes += [{"scale_factor": s} for s in (2, 0.5, 1.7, (0.6, 1.6, 2.9)[: ndim - 2])]
    if "linear" in mode:  # elsewhere PyTorch is of two minds where the sizes are the same, and the places are not
        sizes.append({"scale_factor": 1.1})
    sizes += [{"scale_factor": 1.7, "recompute_scale_factor": True}]
    for options in sizes:
        compare(
            torch,
            lambda lib, x, o=options: lib.nn.functional.interpolate(x, mode=mode, align_corners=align, **o),
            x,
            names=mode != "area",
        )


@pytest.mark.torch
@pytest.mark.parametrize(
    ("mode", "align"),
    [("bilinear", False), ("bilinear", True), ("bicubic", False), ("bicubic", True), ("lanczos", False)],
)
def test_antialiasing(torch: Any, mode: str, align: bool) -> None:
    for options in ({"size": (3, 11)}, {"scale_factor": 0.4}, {"size": (9, 7)}, {"size": 1}):
        compare(
            torch,
            lambda lib, x, o=options: lib.nn.functional.interpolate(
                x, mode=mode, align_corners=align, antialias=True, **o
            ),
            normal(1, 2, 9, 7),
            twice=mode != "lanczos",
        )


@pytest.mark.torch
def test_which_neighbour_is_nearest(torch: Any) -> None:
    for mode in ("nearest", "nearest-exact"):
        for size in (3, 7, 10, 49):
            for out in (2, 5, 21, 98, 147):
                x = numpy.arange(float(size)).reshape(1, 1, size)
                a, b = (lib.nn.functional.interpolate(lib.tensor(x), out, mode=mode) for lib in (gs, torch))
                assert a.tolist() == b.tolist()


@pytest.mark.torch
def test_single_precision_and_bytes(torch: Any) -> None:
    x = rng.random((2, 3, 9, 7)).astype("float32")
    for mode in ("nearest", "bilinear", "bicubic", "area"):
        a, b = (lib.nn.functional.interpolate(lib.tensor(x), (14, 5), mode=mode).numpy() for lib in (gs, torch))
        assert a.dtype == b.dtype
        numpy.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)
    image = numpy.arange(12, dtype="uint8").reshape(1, 1, 3, 4)
    a, b = (lib.nn.functional.interpolate(lib.tensor(image), scale_factor=2) for lib in (gs, torch))
    assert a.dtype == gs.uint8
    assert a.tolist() == b.tolist()


def test_an_empty_batch() -> None:
    x = gs.zeros(0, 2, 3, 3, requires_grad=True)
    y = gs.nn.functional.interpolate(x, scale_factor=2, mode="bilinear")
    assert y.shape == (0, 2, 6, 6)
    y.sum().backward()
    assert x.grad.shape == (0, 2, 3, 3)


def test_older_names_warn_and_work() -> None:
    x, F = gs.arange(4.0).reshape(1, 1, 2, 2), gs.nn.functional
    with pytest.warns(UserWarning, match="upsample_bilinear` is deprecated"):
        assert F.upsample_bilinear(x, scale_factor=2).tolist() == (
            F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True).tolist()
        )
    with pytest.warns(UserWarning, match="upsample_nearest` is deprecated"):
        assert F.upsample_nearest(x, 4).tolist() == F.interpolate(x, 4).tolist()
    with pytest.warns(UserWarning, match="upsample` is deprecated"):
        assert F.upsample(x, 4).tolist() == F.interpolate(x, 4).tolist()


def image(lib: Any, **options: Any) -> Any:
    return lib.nn.functional.interpolate(lib.zeros(1, 1, 4, 4), **options)


@pytest.mark.torch
@pytest.mark.parametrize(
    "wrong",
    [
        lambda lib: image(lib),
        lambda lib: image(lib, size=2, scale_factor=2),
        lambda lib: image(lib, size=(2, 2, 2)),
        lambda lib: image(lib, scale_factor=(2, 2, 2)),
        lambda lib: image(lib, size=2, mode="linear"),
        lambda lib: image(lib, size=2, mode="spline"),
        lambda lib: image(lib, size=2, align_corners=True),
        lambda lib: image(lib, size=2, mode="area", align_corners=False),
        lambda lib: image(lib, size=0),
        lambda lib: image(lib, size=2, recompute_scale_factor=True),
        lambda lib: image(lib, size=2, antialias=True),
        lambda lib: image(lib, size=2, mode="lanczos"),
        lambda lib: image(lib, size=2, mode="lanczos", antialias=True, align_corners=True),
        lambda lib: lib.nn.functional.interpolate(lib.zeros(1, 1, 4), size=0),
        lambda lib: lib.nn.functional.interpolate(lib.zeros(1, 1, 0, 4), size=2),
        lambda lib: lib.nn.functional.interpolate(lib.zeros(1, 0, 4, 4), size=2),
        lambda lib: lib.nn.functional.interpolate(lib.zeros(1, 4), size=2),
        lambda lib: lib.nn.functional.interpolate(lib.zeros(1, 1, 4, 4, 4), size=2, mode="bicubic"),
    ],
)
def test_wrong_calls_raise_what_pytorch_raises(torch: Any, wrong: Any) -> None:
    same_complaint(torch, wrong)


@pytest.mark.parametrize("options", [{"size": 2.5}, {"size": (2, 2), "mode": "bilinear"}])
def test_sizes_and_dtypes_that_do_not_fit(options: Any) -> None:
    with pytest.raises((TypeError, NotImplementedError), match=r"must be an int|not implemented for 'Long'"):
        gs.nn.functional.interpolate(gs.zeros(1, 1, 4, 4, dtype=gs.int64), **options)


@pytest.mark.torch
@pytest.mark.parametrize(
    ("mode", "antialias"), [("bilinear", False), ("bilinear", True), ("bicubic", False), ("bicubic", True)]
)
@pytest.mark.parametrize("align_corners", [False, True])
def test_images_of_bytes_are_pytorchs_to_the_bit(torch: Any, mode: str, antialias: bool, align_corners: bool) -> None:
    generator = numpy.random.default_rng(5)
    for size, out in itertools.product([(5, 7), (16, 9), (2, 3)], [(4, 8), (11, 2), (20, 5), (1, 2)]):
        image = generator.integers(0, 256, (2, 3, *size), dtype=numpy.uint8)
        found, expected = (
            lib.nn.functional.interpolate(
                lib.from_numpy(image), out, mode=mode, align_corners=align_corners, antialias=antialias
            ).numpy()
            for lib in (gs, torch)
        )
        assert found.dtype == "uint8"
        assert (found == expected).all()


def test_signals_and_volumes_of_bytes_are_refused() -> None:
    for shape, mode in (((1, 2, 5), "linear"), ((1, 1, 3, 3, 3), "trilinear")):
        with pytest.raises(NotImplementedError, match="not implemented for 'Byte'"):
            gs.nn.functional.interpolate(gs.zeros(shape, dtype=gs.uint8), scale_factor=2, mode=mode)


def test_images_of_bytes_on_other_devices(other_device: str) -> None:
    image = gs.arange(24, dtype=gs.uint8).reshape(1, 1, 4, 6)
    found = gs.nn.functional.interpolate(image.to(other_device), (3, 3), mode="bicubic")
    assert found.device.type == other_device
    assert found.cpu().tolist() == gs.nn.functional.interpolate(image, (3, 3), mode="bicubic").tolist()

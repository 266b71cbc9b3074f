"""gs.fft beside PyTorch's: every function, sizes, norms, derivatives and refusals."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import gradscope as gs
from tests.side_by_side import compare, same_complaint

rng = numpy.random.default_rng(0)

REAL = rng.normal(size=(3, 4, 5))
COMPLEX = REAL + 1j * rng.normal(size=(3, 4, 5))
TO_HALF = ("rfft", "ihfft")
TO_REAL = ("irfft", "hfft")
ONE = ("fft", "ifft", *TO_HALF, *TO_REAL)


def real_parts(z: Any) -> Any:
    """Return what can be summed, of a real or complex result."""
    return z.real * 2 - z.imag if z.is_complex() else z


def agree(torch: Any, name: str, array: Any, *args: Any, **kwargs: Any) -> None:
    for norm in (None, "forward", "ortho"):
        compare(
            torch,
            lambda m, x, norm=norm: real_parts(
                getattr(m.fft, name)(x * 1, *args, norm=norm, **kwargs)
            ),  # a product has no lazy conjugate
            array,
            names=False,
        )


@pytest.mark.torch
@pytest.mark.parametrize("name", ONE)
@pytest.mark.parametrize(("n", "dim"), [(None, -1), (None, 1), (3, 0), (7, 2), (4, -2), (1, 0)])
def test_one_dimension(torch: Any, name: str, n: int | None, dim: int) -> None:
    agree(torch, name, REAL, n, dim)
    if name not in TO_HALF:
        agree(torch, name, COMPLEX, n, dim)


@pytest.mark.torch
@pytest.mark.parametrize("name", ONE)
@pytest.mark.parametrize(
    ("s", "dim"), [(None, None), ((3, 6), None), (None, (0, 2)), ((2, -1), (2, 0)), ((5,), (1,)), (4, 1), ((-1,), None)]
)
def test_several_dimensions(torch: Any, name: str, s: Any, dim: Any) -> None:
    agree(torch, name + "n", REAL, s, dim)
    if name not in TO_HALF:
        agree(torch, name + "n", COMPLEX, s, dim)


@pytest.mark.torch
@pytest.mark.parametrize("name", ONE)
def test_two_dimensions(torch: Any, name: str) -> None:
    agree(torch, name + "2", REAL)
    agree(torch, name + "2", REAL, (3, 6))


@pytest.mark.torch
@pytest.mark.parametrize("name", ["fft", "rfft", "irfft", "fftn", "hfft", "ihfft"])
def test_nodes_and_dtypes(torch: Any, name: str) -> None:
    for kind in ("float32", "float64", "int64", "complex64", "complex128"):
        if kind.startswith("complex") and name in TO_HALF:
            continue
        found = [getattr(m.fft, name)(m.ones(4).to(getattr(m, kind))) for m in (gs, torch)]
        assert str(found[0].dtype).partition(".")[2] == str(found[1].dtype).partition(".")[2]
    mine, theirs = (getattr(m.fft, name)(m.ones(4, requires_grad=True)) for m in (gs, torch))
    assert mine.grad_fn.name() == theirs.grad_fn.name()


@pytest.mark.torch
@pytest.mark.parametrize("n", [1, 4, 5])
def test_frequencies(torch: Any, n: int) -> None:
    for use in (
        lambda m: m.fft.fftfreq(n, 0.5),
        lambda m: m.fft.rfftfreq(n, dtype=m.float64),
        lambda m: m.fft.fftshift(m.arange(2 * n).reshape(2, n)),
        lambda m: m.fft.ifftshift(m.arange(2 * n).reshape(2, n), dim=1),
        lambda m: m.fft.ifftshift(m.fft.fftshift(m.arange(n), dim=(0,))),
    ):
        assert use(gs).tolist() == use(torch).tolist()


@pytest.mark.torch
@pytest.mark.parametrize(
    "use",
    [
        lambda m: m.fft.rfft(m.ones(2, dtype=m.complex64)),
        lambda m: m.fft.ihfftn(m.ones(2, dtype=m.complex128)),
        lambda m: m.fft.fft(m.ones(2), n=0),
        lambda m: m.fft.fft(m.ones(2), norm="x"),
        lambda m: m.fft.fftn(m.ones(2, 2), dim=(0, 0)),
        lambda m: m.fft.fftn(m.ones(2, 2), s=(2,), dim=(0, 1)),
        lambda m: m.fft.fftn(m.ones(2, 2), s=(2, 2, 2)),
        lambda m: m.fft.fft(m.ones(2).half()),
        lambda m: m.fft.fft(m.tensor(1.0)),
        lambda m: m.fft.rfftn(m.ones(2, 2), dim=()),
        lambda m: m.fft.fft2(m.ones(2)),
        lambda m: m.fft.irfft(m.ones(1)),
        lambda m: m.fft.fft(m.ones(2), dim=5),
    ],
)
def test_refusals(torch: Any, use: Any) -> None:
    same_complaint(torch, use)


@pytest.mark.torch
def test_results_into_a_tensor(torch: Any) -> None:
    for m in (gs, torch):
        out = m.empty(0, dtype=m.complex64)
        assert m.fft.rfft(m.tensor([1.0, 2.0]), out=out) is out
        assert out.tolist() == [3, -1]


@pytest.mark.torch
def test_every_function_is_there(torch: Any) -> None:
    theirs = {name for name in dir(torch.fft) if "fft" in name and not name.startswith("_")}
    assert theirs == set(gs.fft.__all__)


@pytest.mark.parametrize("kind", ["f", "d"])
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_large_transforms_and_their_gradients_are_those_of_their_rows(kind: str, norm: str) -> None:
    x = numpy.random.default_rng(0).standard_normal((200, 90)).astype(kind)
    tolerance = {"rtol": 1e-4 if kind == "f" else 1e-12, "atol": 1e-4 if kind == "f" else 1e-12}

    def run(x: Any) -> list[Any]:
        x = gs.tensor(x, requires_grad=True)
        whole, half = gs.fft.fft(x, norm=norm), gs.fft.rfft(x, norm=norm)
        back, real = gs.fft.ifft(whole * 2, norm=norm), gs.fft.irfft(half * 3, 90, norm=norm)
        (gradient,) = gs.autograd.grad((back.real * real).sum() + whole.abs().sum(), x)
        return [part.detach().numpy() for part in (whole, half, back, real, gradient)]

    whole, rows = run(x), run(x[3:5])
    for found, expected in zip(whole, rows, strict=True):
        assert found.dtype == expected.dtype
        numpy.testing.assert_allclose(found[3:5], expected, **tolerance)

"""Convolution beside PyTorch's, to the second derivative."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope.runtime.ops.nn import convolution
from tests.side_by_side import compare, same_complaint

rng = numpy.random.default_rng(0)


def normal(*shape: int) -> Any:
    return rng.normal(size=shape)


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:Using padding='same':UserWarning")
@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize(
    ("shape", "outputs", "kernel", "stride", "padding", "dilation", "groups"),
    [
        ((2, 4, 6, 5), 6, (3, 2), 1, 0, 1, 1),
        ((2, 4, 7, 8), 6, (3, 3), (2, 1), (1, 2), (1, 2), 2),
        ((1, 4, 5, 5), 4, (1, 1), 1, 0, 1, 4),
        ((2, 2, 5, 6), 4, (2, 3), 2, "valid", 1, 1),
        ((2, 2, 5, 6), 4, (2, 3), 1, "same", 1, 1),
        ((0, 2, 5, 6), 4, (2, 3), 1, 0, 1, 1),
    ],
)
def test_conv2d(
    torch: Any,
    shape: Any,
    outputs: int,
    kernel: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    biased: bool,
) -> None:
    compare(
        torch,
        lambda lib, x, w, b: lib.conv2d(x, w, b, stride, padding, dilation, groups),
        normal(*shape),
        normal(outputs, shape[1] // groups, *kernel),
        normal(outputs) if biased else None,
    )


@pytest.mark.torch
def test_other_dimensions(torch: Any) -> None:
    compare(torch, lambda lib, x, w, b: lib.conv1d(x, w, b, 2, 1, 2), normal(2, 3, 9), normal(4, 3, 3), normal(4),
            names=False)  # fmt: skip
    compare(torch, lambda lib, x, w: lib.conv3d(x, w), normal(1, 2, 4, 3, 3), normal(2, 2, 2, 2, 2))
    compare(torch, lambda lib, x, w: lib.conv2d(x, w), normal(3, 5, 5), normal(4, 3, 3, 3))


@pytest.mark.torch
@pytest.mark.parametrize(
    ("stride", "padding", "extra", "groups", "dilation"),
    [(1, 0, 0, 1, 1), (2, 1, 1, 2, 1), (3, 0, 2, 1, 2), ((2, 1), (1, 0), (1, 0), 1, 1)],
)
def test_conv_transpose2d(torch: Any, stride: Any, padding: Any, extra: Any, groups: int, dilation: int) -> None:
    compare(
        torch,
        lambda lib, x, w, b: lib.conv_transpose2d(x, w, b, stride, padding, extra, groups, dilation),
        normal(2, 4, 4, 3),
        normal(4, 3, 3, 2),
        normal(3 * groups),
        names=False,
    )


def test_large_batches_go_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    x, w = gs.tensor(normal(5, 2, 6, 6), requires_grad=True), gs.tensor(normal(3, 2, 3, 3), requires_grad=True)

    def run() -> list[Any]:
        y = gs.conv2d(x, w, padding=1)
        return [y.detach().numpy(), *(g.numpy() for g in gs.autograd.grad((y * y).sum(), (x, w)))]

    whole = run()
    monkeypatch.setattr(convolution, "BLOCK", 2 * 18 * 36)
    for a, b in zip(whole, run(), strict=True):
        numpy.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.torch
def test_padding(torch: Any) -> None:
    compare(torch, lambda lib, x: lib.nn.functional.pad(x, (1, -1, 0, 2), value=1.5), normal(3, 4))
    compare(torch, lambda lib, x: lib.nn.functional.pad(x, ()) * 2, normal(3, 4))
    same_complaint(torch, lambda lib: lib.constant_pad_nd(lib.zeros(2), (1, 2, 3)))


@pytest.mark.torch
@pytest.mark.parametrize(
    "wrong",
    [
        lambda lib: lib.conv2d(lib.zeros(1, 2, 3, 3), lib.zeros(2, 3, 2, 2)),
        lambda lib: lib.conv2d(lib.zeros(1, 2, 2, 2), lib.zeros(2, 2, 3, 3)),
        lambda lib: lib.conv2d(lib.zeros(2, 2), lib.zeros(2, 2, 3, 3)),
        lambda lib: lib.conv2d(lib.zeros(1, 2, 3, 3), lib.zeros(2, 2, 2, 2), lib.zeros(3)),
        lambda lib: lib.conv2d(lib.zeros(1, 2, 3, 3), lib.zeros(2, 2, 2, 2), stride=0),
    ],
)
def test_wrong_calls_raise_what_pytorch_raises(torch: Any, wrong: Any) -> None:
    same_complaint(torch, wrong)


def turned(**settings: Any) -> Any:
    weight = settings.pop("weight", (2, 2, 2, 2))
    return lambda lib: lib.conv_transpose2d(lib.zeros(1, 2, 4, 4), lib.zeros(*weight), **settings)


@pytest.mark.torch
@pytest.mark.parametrize(
    "wrong",
    [
        turned(stride=0),
        turned(padding=-1),
        turned(dilation=-1),
        turned(output_padding=-1),
        turned(groups=3),
        turned(padding=4),
        turned(weight=(3, 2, 2, 2)),
        turned(weight=(2, 2, 2)),
        lambda lib: lib.conv_transpose2d(lib.zeros(1, 2, 4, 4), lib.zeros(2, 2, 2, 2), lib.zeros(2, 1)),
        lambda lib: lib.conv2d(lib.zeros(1, 2, 4, 4), lib.zeros(2, 2, 2)),
        lambda lib: lib.conv2d(lib.zeros(1, 2, 4, 4).bool(), lib.zeros(2, 2, 2, 2).bool()),
    ],
)
def test_a_geometry_that_cannot_be_is_refused_forth_and_back(torch: Any, wrong: Any) -> None:
    same_complaint(torch, wrong)


@pytest.mark.torch
def test_the_dtypes_of_input_and_weight_are_one(torch: Any) -> None:
    for lib in (gs, torch):
        for name in ("conv2d", "conv_transpose2d"):
            with pytest.raises(RuntimeError):
                getattr(lib, name)(lib.zeros(1, 2, 4, 4), lib.zeros(2, 2, 2, 2, dtype=lib.float64))


@pytest.mark.torch
@pytest.mark.parametrize("value", [2.5, (2.0, 2.0), "a"])
@pytest.mark.parametrize(
    "use",
    [
        lambda F, x, value: F.max_pool2d(x, value),
        lambda F, x, value: F.avg_pool2d(x, 2, padding=value),
        lambda F, x, value: F.adaptive_avg_pool2d(x, value),
        lambda F, x, value: F.conv_transpose2d(x, x, stride=value),
        lambda F, x, value: F.unfold(x, 2, dilation=value),
    ],
)
def test_sizes_of_windows_are_not_cut_to_integers(torch: Any, use: Any, value: Any) -> None:
    for lib in (gs, torch):
        with pytest.raises(TypeError):
            use(lib.nn.functional, lib.ones(1, 1, 4, 4), value)


@pytest.mark.torch
def test_a_transposed_convolution_with_more_output_padding_than_stride(torch: Any) -> None:
    values = numpy.random.default_rng(0).normal(size=120)
    compare(
        torch,
        lambda lib, x, w: lib.nn.functional.conv_transpose2d(
            x, w, stride=(3, 2), padding=(1, 2), output_padding=(2, 3), dilation=4
        ),
        values[:40].reshape(1, 2, 4, 5),
        values.reshape(2, 3, 4, 5),
        names=False,
    )


@pytest.mark.torch
def test_a_transposed_convolution_of_which_padding_leaves_nothing_is_empty(torch: Any) -> None:
    def loss(lib: Any, x: Any, w: Any, b: Any) -> Any:
        result = lib.nn.functional.conv_transpose2d(x, w, b, padding=(1, 0))
        assert result.shape == (2, 3, 0, 3)
        return result

    def gradients(lib: Any) -> Any:
        leaves = [lib.tensor(a, requires_grad=True) for a in arrays]
        loss(lib, *leaves).sum().backward()
        return [leaf.grad.numpy() for leaf in leaves]

    arrays = [normal(*shape).astype("f") for shape in ((2, 2, 1, 2), (2, 3, 2, 2), (3,))]
    for mine, theirs in zip(gradients(gs), gradients(torch), strict=True):
        assert (mine == theirs).all()
    with pytest.raises(RuntimeError, match=r"output size per channel: \(-1 x 3\)"):
        gs.nn.functional.conv_transpose2d(gs.ones(1, 2, 1, 2), gs.ones(2, 3, 1, 2), padding=(1, 0))

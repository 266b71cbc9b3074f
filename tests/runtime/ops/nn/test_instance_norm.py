"""Norms of instances and of neighbouring channels, beside PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import gradscope as gs
from tests.side_by_side import compare, same_complaint

rng = numpy.random.default_rng(0)


def normal(*shape: int) -> Any:
    return rng.normal(size=shape)


@pytest.mark.torch
@pytest.mark.parametrize("shape", [(2, 3, 5), (2, 3, 4, 2), (1, 3, 2, 2, 3)])
def test_instance_norm(torch: Any, shape: Any) -> None:
    compare(torch, lambda lib, x: lib.nn.functional.instance_norm(x, eps=1e-2), normal(*shape))
    compare(
        torch,
        lambda lib, x, w, b: lib.instance_norm(x, w, b, None, None, True, 0.1, 1e-3, False),
        normal(*shape),
        normal(3),
        normal(3),
    )


@pytest.mark.torch
@pytest.mark.parametrize("training", [True, False])
def test_running_statistics(torch: Any, training: bool) -> None:
    x, mean, var = normal(2, 3, 5), normal(3), rng.random(3) + 0.5
    for name, use in (
        ("instance", lambda lib, x, m, v: lib.nn.functional.instance_norm(x, m, v, None, None, training, 0.3)),
        ("batch", lambda lib, x, m, v: lib.batch_norm(x, None, None, m, v, training, 0.3, 1e-5, False)),
    ):
        found = []
        for lib in (gs, torch):
            statistics = lib.tensor(mean), lib.tensor(var)
            result = use(lib, lib.tensor(x), *statistics)
            found.append([a.numpy() for a in (result, *statistics)])
        for a, b in zip(*found, strict=True):
            numpy.testing.assert_allclose(a, b, rtol=1e-9, err_msg=name)


@pytest.mark.torch
@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_local_response_norm(torch: Any, size: int) -> None:
    for shape in ((2, 5, 3), (2, 4, 3, 2), (1, 4, 2, 1, 3), (0, 3, 2)):
        compare(
            torch,
            lambda lib, x: lib.nn.functional.local_response_norm(x, size, alpha=0.5, beta=0.6, k=1.5),
            normal(*shape),
        )


@pytest.mark.torch
@pytest.mark.parametrize(
    "wrong",
    [
        lambda lib: lib.nn.functional.instance_norm(lib.zeros(1, 3)),
        lambda lib: lib.nn.functional.instance_norm(lib.zeros(1, 3, 1)),
        lambda lib: lib.nn.functional.instance_norm(lib.zeros(1, 3, 4), use_input_stats=False),
        lambda lib: lib.nn.functional.instance_norm(lib.zeros(1, 3, 4), lib.zeros(3)),
        lambda lib: lib.nn.InstanceNorm1d(3, affine=True)(lib.zeros(1, 2, 4)),
        lambda lib: lib.nn.InstanceNorm2d(3)(lib.zeros(3, 4)),
        lambda lib: lib.nn.functional.local_response_norm(lib.zeros(2, 3), 2),
        lambda lib: lib.nn.ConvTranspose2d(3, 2, 3, 2)(lib.zeros(1, 3, 4, 4), output_size=(12, 12)),
        lambda lib: lib.nn.ConvTranspose2d(3, 2, 3, 2)(lib.zeros(1, 3, 4, 4), output_size=(2,)),
    ],
)
def test_wrong_calls_raise_what_pytorch_raises(torch: Any, wrong: Any) -> None:
    same_complaint(torch, wrong)


def test_channels_that_do_not_fit_are_told() -> None:
    with pytest.warns(UserWarning, match="does not match num_features"):
        gs.nn.InstanceNorm1d(3)(gs.rand(1, 2, 4))


def test_a_transposed_convolution_to_a_given_size() -> None:
    layer, x = gs.nn.ConvTranspose2d(3, 2, 3, 2), gs.rand(1, 3, 4, 4)
    assert layer(x).shape == (1, 2, 9, 9)
    for size in ((10, 9), (1, 2, 10, 9)):
        assert layer(x, output_size=size).shape == (1, 2, 10, 9)
    numpy.testing.assert_allclose(
        layer(x, (10, 10)).detach()[..., :9, :9].numpy(), layer(x).detach().numpy(), rtol=1e-5, atol=1e-6
    )


@pytest.mark.torch
def test_conv_transpose3d(torch: Any) -> None:
    compare(
        torch,
        lambda lib, x, w, b: lib.conv_transpose3d(x, w, b, 2, 1, 1, 2),
        normal(1, 4, 2, 3, 2),
        normal(4, 2, 2, 3, 2),
        normal(4),
        names=False,
    )

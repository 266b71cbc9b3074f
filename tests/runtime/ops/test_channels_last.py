"""Images whose channels lie last in memory: what is made of them lies as PyTorch's does."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope.runtime.ops.execution.bare_functions import has_channels_last
from tests.runtime.ops.operator_cases import OPERATORS, Maker, call, convert


def functional(m: Any) -> Any:
    return m.nn.functional


FUNCTIONS = {
    "conv2d": lambda m, x, w: functional(m).conv2d(x, w, padding=1),
    "conv2d with strides": lambda m, x, w: functional(m).conv2d(x, w, m.ones(4), stride=2),
    "conv2d with a kernel of 1": lambda m, x, w: functional(m).conv2d(x, w[:, :, :1, :1].contiguous()),
    "conv2d with groups": lambda m, x, w: functional(m).conv2d(x, w[:, :1].contiguous(), groups=4),
    "conv2d whose weight alone has them last": lambda m, x, w: functional(m).conv2d(
        x.contiguous(), w.to(memory_format=m.channels_last)
    ),
    "conv_transpose2d": lambda m, x, w: functional(m).conv_transpose2d(x, w),
    "max_pool2d": lambda m, x, w: functional(m).max_pool2d(x, 2),
    "indices of max_pool2d": lambda m, x, w: functional(m).max_pool2d(x, 2, return_indices=True)[1],
    "avg_pool2d": lambda m, x, w: functional(m).avg_pool2d(x, 2),
    "adaptive_avg_pool2d": lambda m, x, w: functional(m).adaptive_avg_pool2d(x, 2),
    "adaptive_max_pool2d": lambda m, x, w: functional(m).adaptive_max_pool2d(x, 2),
    "lp_pool2d": lambda m, x, w: functional(m).lp_pool2d(x, 2, 2),
    "batch_norm": lambda m, x, w: functional(m).batch_norm(x, None, None, training=True),
    "instance_norm": lambda m, x, w: functional(m).instance_norm(x),
    "group_norm": lambda m, x, w: functional(m).group_norm(x, 2),
    "dropout": lambda m, x, w: functional(m).dropout(x, 0.5),
    "dropout2d": lambda m, x, w: functional(m).dropout2d(x, 0.5),
    "pad": lambda m, x, w: functional(m).pad(x, (1, 1, 2, 2)),
    "pad by reflection": lambda m, x, w: functional(m).pad(x, (1, 1, 2, 2), mode="reflect"),
    "pad by replication": lambda m, x, w: functional(m).pad(x, (1, 1, 2, 2), mode="replicate"),
    **{
        f"interpolate by {mode}": lambda m, x, w, mode=mode: functional(m).interpolate(x, scale_factor=2, mode=mode)
        for mode in ("nearest", "bilinear", "bicubic", "area")
    },
    "pixel_unshuffle": lambda m, x, w: functional(m).pixel_unshuffle(x, 2),
    "channel_shuffle": lambda m, x, w: functional(m).channel_shuffle(x, 2),
    "relu": lambda m, x, w: x.relu(),
    "gelu": lambda m, x, w: functional(m).gelu(x),
    "silu": lambda m, x, w: functional(m).silu(x),
    "prelu": lambda m, x, w: functional(m).prelu(x, m.ones(4)),
    "softmax": lambda m, x, w: x.softmax(1),
    "a product with channels": lambda m, x, w: x * m.ones(1, 4, 1, 1),
    "cat": lambda m, x, w: m.cat([x, x], 1),
    "cat with another layout": lambda m, x, w: m.cat([x, x.contiguous()], 1),
    "clone": lambda m, x, w: x.clone(),
    "zeros_like": lambda m, x, w: m.zeros_like(x),
    "double": lambda m, x, w: x.double(),
}
# Functions whose gradient is PyTorch's as well, layout and all; a leaf's is laid out like the leaf in any case.
GRADIENTS = [
    *("conv2d", "conv2d with strides", "conv2d whose weight alone has them last", "conv_transpose2d", "max_pool2d"),
    *("avg_pool2d", "adaptive_avg_pool2d", "adaptive_max_pool2d", "batch_norm", "dropout", "pad", "pad by reflection"),
    *("interpolate by nearest", "interpolate by bilinear", "relu", "gelu", "silu", "cat"),
]


def run(m: Any, name: str) -> Any:
    x = m.arange(2.0 * 4 * 6 * 8).reshape(2, 4, 6, 8).to(memory_format=m.channels_last).requires_grad_()
    return x, FUNCTIONS[name](m, x, m.ones(4, 4, 3, 3))


@pytest.mark.torch
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_lie_as_pytorchs_do(torch: Any, name: str) -> None:
    found, expected = (run(m, name)[1] for m in (gs, torch))
    assert found.stride() == expected.stride()


@pytest.mark.torch
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_lie_as_pytorchs_do(torch: Any, name: str) -> None:
    def strides(m: Any) -> Any:
        x, y = run(m, name)
        return m.autograd.grad(y, x, m.ones_like(y))[0].stride()

    assert strides(gs) == strides(torch)


@pytest.mark.torch
@pytest.mark.parametrize(
    ("shape", "strides"),
    [
        ((2, 3, 4, 5), (60, 1, 15, 3)),
        ((2, 3, 4, 5), (60, 20, 5, 1)),
        ((2, 3, 4, 5), (20, 1, 0, 0)),
        ((1, 3, 1, 1), (3, 1, 3, 3)),
        ((2, 1, 4, 5), (20, 1, 5, 1)),
        ((2, 3, 1, 1), (3, 1, 1, 1)),
        ((2, 3, 4, 5), (120, 1, 30, 6)),
    ],
    ids=str,
)
def test_what_has_its_channels_last(torch: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    theirs = torch.zeros(300).as_strided(shape, strides)
    made = functional(torch).interpolate(theirs, scale_factor=1)
    array = numpy.lib.stride_tricks.as_strided(numpy.zeros(300, "f4"), shape, tuple(4 * step for step in strides))
    if has_channels_last(array):
        assert made.is_contiguous(memory_format=torch.channels_last)
    else:
        assert made.is_contiguous()


FOLLOWING = [op for op in OPERATORS.values() if op.images and op.samples is not None]


@pytest.mark.parametrize("op", FOLLOWING, ids=lambda op: op.name)
def test_the_layout_does_not_change_the_numbers(op: Any) -> None:
    def last(tensor: gs.Tensor) -> gs.Tensor:
        return tensor.detach().to(memory_format=gs.channels_last) if tensor.ndim == 4 else tensor.detach()

    for sample in op.samples(Maker(op.name, "float32", requires_grad=False)):
        other = tuple(convert(part, last) for part in sample)
        for a, b in zip(call(op, other), call(op, sample), strict=True):
            numpy.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-4)

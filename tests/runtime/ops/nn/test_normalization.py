"""Normalisation and dropout: beside PyTorch, and what is random by its properties."""

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
def test_layer_norm(torch: Any) -> None:
    compare(torch, lambda lib, x, w, b: lib.layer_norm(x, (3, 4), w, b), normal(2, 5, 3, 4), normal(3, 4), normal(3, 4))
    compare(torch, lambda lib, x: lib.layer_norm(x, (4,)), normal(2, 4))


@pytest.mark.torch
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("shape", [(5, 3), (4, 3, 2, 2)])
@pytest.mark.parametrize("affine", [True, False])
def test_batch_norm(torch: Any, training: bool, shape: tuple[int, ...], affine: bool) -> None:
    statistics = {lib: [lib.zeros(3, dtype=lib.float64), lib.ones(3, dtype=lib.float64)] for lib in (gs, torch)}

    def norm(lib: Any, x: Any, w: Any, b: Any) -> Any:
        return lib.nn.functional.batch_norm(x, *statistics[lib], w, b, training, 0.1, 1e-5)

    compare(torch, norm, normal(*shape), normal(3) if affine else None, normal(3) if affine else None)
    for mine, theirs in zip(*statistics.values(), strict=True):
        numpy.testing.assert_allclose(mine.numpy(), theirs.numpy())


@pytest.mark.torch
@pytest.mark.parametrize("training", [True, False])
def test_the_layer_counts_no_version_of_its_statistics_but_notices_other_writes(torch: Any, training: bool) -> None:
    for lib in (gs, torch):
        mean, var = lib.zeros(2), lib.ones(2)
        x = lib.tensor(normal(4, 2).tolist(), requires_grad=True)
        for _ in range(2):
            y = lib.nn.functional.batch_norm(x, mean, var, training=training)
        assert (mean._version, var._version) == (0, 0)
        assert mean.any().item() == training
        mean.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()


@pytest.mark.torch
@pytest.mark.parametrize(
    "wrong",
    [
        lambda lib: lib.layer_norm(lib.zeros(2, 3), (2,)),
        lambda lib: lib.nn.functional.batch_norm(lib.zeros(1, 3), lib.zeros(3), lib.ones(3), training=True),
        lambda lib: lib.nn.functional.batch_norm(lib.zeros(2, 3), lib.zeros(2), lib.ones(3)),
        lambda lib: lib.nn.functional.dropout(lib.zeros(2), 2.0),
    ],
)
def test_wrong_calls_raise_what_pytorch_raises(torch: Any, wrong: Any) -> None:
    same_complaint(torch, wrong)


# --- dropout ----------------------------------------------------------------------------------------------------------


def test_dropout_keeps_the_expectation_and_its_gradient_is_its_mask() -> None:
    gs.manual_seed(0)
    x = gs.ones(100, 100, requires_grad=True)
    y = gs.nn.functional.dropout(x, 0.25)
    values = y.detach().numpy()
    assert set(numpy.unique(values)) == {numpy.float32(0), numpy.float32(1 / 0.75)}
    assert values.mean() == pytest.approx(1.0, abs=0.03)
    y.sum().backward()
    assert x.grad.tolist() == y.tolist()
    assert y.grad_fn.name() == "MulBackward0"


def test_dropout_outside_training_is_the_input_itself() -> None:
    x = gs.ones(3)
    assert gs.nn.functional.dropout(x, 0.5, training=False) is x
    assert gs.nn.functional.dropout(x, 0.0) is x
    assert gs.nn.functional.dropout(x, 1.0).tolist() == [0.0, 0.0, 0.0]


def test_dropout_in_place_counts_as_a_write() -> None:
    x = gs.ones(3)
    assert gs.nn.functional.dropout(x, 0.5, inplace=True) is x
    assert x._version == 1


def test_feature_dropout_drops_whole_channels() -> None:
    gs.manual_seed(1)
    y = gs.nn.functional.dropout2d(gs.ones(20, 10, 4, 4), 0.5).numpy().reshape(200, 16)
    assert (y == y[:, :1]).all()
    assert 0 < (y[:, 0] == 0).sum() < 200


@pytest.mark.torch
@pytest.mark.parametrize("shape", [(2, 4, 3), (3, 4), (2, 6, 2, 2)])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("affine", [True, False])
def test_group_norm(torch: Any, shape: tuple[int, ...], groups: int, affine: bool) -> None:
    channels = shape[1]
    more = (normal(channels), normal(channels)) if affine else (None, None)
    compare(torch, lambda lib, x, w, b: lib.nn.functional.group_norm(x, groups, w, b, 1e-3), normal(*shape), *more)


@pytest.mark.torch
@pytest.mark.parametrize("eps", [None, 1e-2])
def test_rms_norm(torch: Any, eps: float | None) -> None:
    x, w = normal(2, 3, 4), normal(3, 4)
    compare(torch, lambda lib, x, w: lib.nn.functional.rms_norm(x, (3, 4), w, eps), x, w, names=False)
    compare(torch, lambda lib, x: lib.nn.functional.rms_norm(x, (4,), eps=eps), x, names=False)


@pytest.mark.torch
def test_refusals_of_normalisations(torch: Any) -> None:
    same_complaint(torch, lambda lib: lib.nn.functional.group_norm(lib.ones(2, 6), 4))
    same_complaint(torch, lambda lib: lib.nn.functional.group_norm(lib.ones(2), 1))
    same_complaint(torch, lambda lib: lib.nn.functional.group_norm(lib.ones(2, 6), 2, lib.ones(3)))


def test_rms_norm_of_another_shape() -> None:
    with pytest.raises(RuntimeError, match=r"expected input with shape \[\*, 3\], but got input of size\[2, 6\]"):
        gs.nn.functional.rms_norm(gs.ones(2, 6), (3,))


@pytest.mark.torch
def test_an_empty_batch_is_normalised_and_leaves_the_running_statistics_alone(torch: Any) -> None:
    for lib in (gs, torch):
        layer = lib.nn.BatchNorm1d(3)
        layer(lib.zeros(0, 3)).sum().backward()
        assert (layer.running_mean.tolist(), layer.running_var.tolist()) == ([0.0] * 3, [1.0] * 3)
        assert layer.weight.grad.tolist() == [0.0] * 3
    compare(
        torch,
        lambda lib, x, w: lib.nn.functional.group_norm(x, 2, w),
        numpy.zeros((0, 4, 3)),
        numpy.ones(4),
    )


# --- with their statistics --------------------------------------------------------------------------------------------

WITH_STATISTICS = {
    "layer": lambda lib, x, w: lib.native_layer_norm(x, (5,), w, None, 1e-3),
    "batch": lambda lib, x, w: lib.native_batch_norm(x, w, None, None, None, True, 0.1, 1e-3),
    "batch, running": lambda lib, x, w: lib.native_batch_norm(
        x, w, None, lib.zeros(5, dtype=x.dtype), lib.ones(5, dtype=x.dtype), False, 0.1, 1e-3
    ),
    "group": lambda lib, x, w: lib.native_group_norm(x, w, None, 3, 5, 5, 1, 1e-3),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", WITH_STATISTICS)
def test_means_and_deviations_are_returned_beside_the_result(torch: Any, name: str) -> None:
    x, w = normal(3, 5, 5), normal(5)
    mine, theirs = (WITH_STATISTICS[name](lib, lib.tensor(x, requires_grad=True), lib.tensor(w)) for lib in (gs, torch))
    for a, b in zip(mine, theirs, strict=True):
        assert a.requires_grad is b.requires_grad
        numpy.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-7, atol=1e-9)


@pytest.mark.torch
@pytest.mark.parametrize("name", ["layer", "batch", "group"])
@pytest.mark.parametrize("parameter", ["none", "float32", "bfloat16"])
def test_statistics_have_the_dtype_of_the_parameters(torch: Any, name: str, parameter: str) -> None:
    def dtypes(lib: Any) -> list[str]:
        weight = None if parameter == "none" else lib.ones(5, dtype=getattr(lib, parameter))
        found = WITH_STATISTICS[name](lib, lib.ones(3, 5, 5, dtype=lib.bfloat16), weight)
        return [str(t.dtype).partition(".")[2] for t in found]

    assert dtypes(gs) == dtypes(torch)


def test_the_statistics_of_a_batch_are_written_into_what_is_given() -> None:
    out = gs.empty(0), gs.empty(0), gs.empty(0)
    x = gs.tensor([[1.0], [5.0]])
    found = gs.native_batch_norm(x, None, None, None, None, True, 0.1, 0.0, out=out)
    assert all(a is b for a, b in zip(found, out, strict=True))
    assert [t.tolist() for t in out] == [[[-1.0], [1.0]], [3.0], [0.5]]


def test_a_shape_that_is_not_the_groups_is_refused() -> None:
    with pytest.raises(RuntimeError, match=r"expected input of 2 examples with 3 channels .* of shape \[2, 4, 1\]"):
        gs.native_group_norm(gs.ones(2, 4, 1), None, None, 2, 3, 1, 1, 1e-5)


@pytest.mark.torch
def test_a_vector_without_elements_is_normalised(torch: Any) -> None:
    for lib in (gs, torch):
        assert lib.nn.functional.batch_norm(lib.zeros(0), lib.zeros(0), lib.ones(0), training=True).shape == (0,)


@pytest.mark.torch
@pytest.mark.parametrize("training", [True, False])
def test_a_batch_norm_has_edges_for_input_weight_and_bias(torch: Any, training: bool) -> None:
    def edges(lib: Any) -> list[bool]:
        x, weight = lib.ones(4, 3, requires_grad=True), lib.ones(3, requires_grad=True)
        normalised = lib.nn.functional.batch_norm(x, lib.zeros(3), lib.ones(3), weight, training=training)
        return [node is not None for node, _ in normalised.grad_fn.next_functions]

    assert edges(gs) == edges(torch) == [True, True, False]


@pytest.mark.torch
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
@pytest.mark.parametrize("name", ["BatchNorm1d", "InstanceNorm1d"])
def test_running_statistics_move_on_in_every_dtype(torch: Any, name: str, dtype: str) -> None:
    x = rng.integers(-4, 5, (4, 3, 8))

    def after_two_steps(lib: Any) -> list[Any]:
        module = getattr(lib.nn, name)(3, track_running_stats=True).to(getattr(lib, dtype))
        for scale in (1, 3):
            module(lib.tensor((x * scale).tolist()).to(getattr(lib, dtype)))
        assert module.running_mean.dtype == getattr(lib, dtype)
        return [part.double().numpy() for part in (module.running_mean, module.running_var)]

    step = {"bfloat16": 2**-8, "float16": 2**-11, "float32": 1e-6, "float64": 1e-14}[dtype]
    for mine, theirs in zip(after_two_steps(gs), after_two_steps(torch), strict=True):
        assert numpy.allclose(mine, theirs, rtol=2 * step, atol=step / 8)


@pytest.mark.torch
def test_given_statistics_keep_an_infinite_pixel_out_of_the_gradient(torch: Any) -> None:
    x = normal(2, 3, 80, 80)
    x[0, 1, 2, 3], x[1, 2, 3, 4] = numpy.inf, numpy.nan

    def gradient(lib: Any) -> Any:
        leaf = lib.tensor(x, requires_grad=True)
        weight = lib.tensor([1.0, 2.0, 3.0], dtype=lib.float64)
        lib.nn.functional.batch_norm(leaf, lib.zeros(3).double(), lib.ones(3).double(), weight).sum().backward()
        return leaf.grad.numpy()

    numpy.testing.assert_allclose(gradient(gs), gradient(torch), rtol=1e-12)

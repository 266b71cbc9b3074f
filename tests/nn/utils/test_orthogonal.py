"""The parametrization of orthogonal matrices: values, originals and refusals as PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope.nn.utils import parametrizations
from tests.side_by_side import same_complaint

MAPS = ["matrix_exp", "cayley", "householder"]
SHAPES = [(2, 3), (3, 2), (3, 3)]


def numbers(lib: Any, shape: tuple[int, int]) -> Any:
    return (lib.arange(1.0, shape[0] * shape[1] + 1, dtype=lib.float64) ** 2).sin().reshape(shape) * 2


def layer(lib: Any, shape: tuple[int, int], orthogonal_map: str | None, trivialized: bool) -> Any:
    made = lib.nn.Linear(shape[1], shape[0], bias=False, dtype=lib.float64)
    with lib.no_grad():
        made.weight.copy_(numbers(lib, shape))
    lib.manual_seed(0)
    return lib.nn.utils.parametrizations.orthogonal(made, orthogonal_map=orthogonal_map, use_trivialization=trivialized)


@pytest.mark.torch
@pytest.mark.parametrize("trivialized", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("orthogonal_map", [*MAPS, None])
def test_values_and_gradients(
    torch: Any, orthogonal_map: str | None, shape: tuple[int, int], trivialized: bool
) -> None:
    found = []
    for lib in (gs, torch):
        module = layer(lib, shape, orthogonal_map, trivialized)
        state = {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}
        if trivialized:
            # Where columns were added they are random.
            with lib.no_grad():
                module.parametrizations.weight[0].base.copy_(lib.eye(max(shape)))
        original = module.parametrizations.weight.original
        with lib.no_grad():
            original.copy_(numbers(lib, shape) * 2 + 1)
        weight = module.weight
        weights = lib.arange(1.0, weight.numel() + 1, dtype=lib.float64).reshape(shape)
        (weight * weights).sum().backward()
        found.append((state, weight.detach().numpy(), original.grad.numpy()))
    assert found[0][0] == found[1][0]
    for mine, theirs in zip(found[0][1:], found[1][1:], strict=True):
        numpy.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-8)


@pytest.mark.torch
@pytest.mark.parametrize(("orthogonal_map", "trivialized"), [(m, True) for m in MAPS] + [("householder", False)])
def test_the_weight_is_the_nearest_that_qr_knows(torch: Any, orthogonal_map: str, trivialized: bool) -> None:
    found = []
    for lib in (gs, torch):
        module = layer(lib, (3, 3), orthogonal_map, trivialized)
        before = module.weight.detach().numpy()
        module.weight = lib.eye(3, dtype=lib.float64)[[2, 0, 1]]
        found.append((before, module.weight.detach().numpy()))
    for mine, theirs in zip(*found, strict=True):
        numpy.testing.assert_allclose(mine, theirs, atol=1e-10)
    numpy.testing.assert_allclose(found[0][1], numpy.eye(3)[[2, 0, 1]], atol=1e-10)


@pytest.mark.parametrize("kind", [gs.float64, gs.complex128])
@pytest.mark.parametrize("shape", SHAPES)
def test_it_stays_orthogonal_in_training(shape: tuple[int, int], kind: Any) -> None:
    gs.manual_seed(0)
    made = gs.nn.Linear(shape[1], shape[0], bias=False, dtype=kind)
    module = parametrizations.orthogonal(made)
    optimizer = gs.optim.SGD(module.parameters(), lr=0.1)
    first = module.weight.detach().clone()
    for _ in range(3):
        optimizer.zero_grad()
        (module.weight - 1).abs().pow(2).sum().backward()
        optimizer.step()
    weight: Any = module.weight.detach()
    assert not gs.allclose(weight, first)
    product = weight.mH @ weight if shape[0] >= shape[1] else weight @ weight.mH
    assert gs.allclose(product, gs.eye(min(shape), dtype=kind), atol=1e-10)


@pytest.mark.torch
@pytest.mark.parametrize(
    "wrong",
    [
        lambda lib, make: make(lib.nn.Linear(3, 2), "bias"),
        lambda lib, make: make(lib.nn.Linear(3, 2), "nothing"),
        lambda lib, make: make(lib.nn.Linear(3, 2), orthogonal_map="bogus"),
        lambda lib, make: make(lib.nn.Linear(3, 2, dtype=lib.complex64), orthogonal_map="householder"),
        lambda lib, make: setattr(make(lib.nn.Linear(3, 3)), "weight", lib.ones(2, 2)),
        lambda lib, make: setattr(
            make(lib.nn.Linear(3, 3), orthogonal_map="cayley", use_trivialization=False), "weight", lib.eye(3)
        ),
    ],
)
def test_refusals(torch: Any, wrong: Any) -> None:
    same_complaint(torch, lambda lib: wrong(lib, lib.nn.utils.parametrizations.orthogonal))

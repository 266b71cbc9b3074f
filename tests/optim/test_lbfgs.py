"""L-BFGS beside PyTorch's: where it evaluates, what it finds, what it keeps."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import gradscope as gs
from tests.side_by_side import same_complaint


def valley(lib: Any, x: Any, z: Any) -> Any:
    """Rosenbrock's function, and a second parameter."""
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum() + (z - x[0]) ** 2


def bowl(lib: Any, x: Any, z: Any) -> Any:
    return (x**4).sum() / 4 + (x * x[0]).sum() + (z * z - z).cosh()


def optimize(
    lib: Any, function: Any, dtype: str, calls: int, device: str = "cpu", **settings: Any
) -> tuple[list[Any], list[int], dict[str, Any]]:
    """Return all points of evaluation, the versions, and the state, after calls with a state_dict in the middle."""
    x = lib.tensor(numpy.array([-1.2, 1.0, 0.7, -0.3], dtype), device=device, requires_grad=True)
    z = lib.tensor(numpy.array(0.5, dtype), device=device, requires_grad=True)
    unused = lib.ones(2, dtype=getattr(lib, dtype), device=device, requires_grad=True)
    optimizer = lib.optim.LBFGS([x, unused, z], **settings)
    points = []

    def closure() -> Any:
        points.append(numpy.append(x.detach().cpu().numpy(), z.item()))
        optimizer.zero_grad()
        loss = function(lib, x, z)
        loss.backward()
        return loss

    for call in range(calls):
        if call == 2:
            state = optimizer.state_dict()
            optimizer = lib.optim.LBFGS([x, unused, z], **settings)
            optimizer.load_state_dict(state)
        points.append(optimizer.step(closure).detach().cpu().numpy())
    points.append(numpy.append(x.detach().cpu().numpy(), z.item()))
    return points, [p._version for p in (x, unused, z)], optimizer.state_dict()["state"][0]


SEARCH = {"line_search_fn": "strong_wolfe"}


@pytest.mark.torch
@pytest.mark.parametrize(
    ("function", "settings"),
    [
        (valley, {"max_iter": 5}),
        (valley, {"lr": 0.1, "history_size": 3, "max_iter": 6}),
        (valley, {"max_eval": 4}),
        (valley, {"max_iter": 5, **SEARCH}),
        (valley, {"max_iter": 4, "lr": 0.1, "history_size": 2, **SEARCH}),
        (valley, {"max_iter": 3, "lr": 100.0, **SEARCH}),
        (valley, {"max_eval": 3, "lr": 1e-3, **SEARCH}),
        (bowl, {"lr": 0.5, "max_iter": 8}),  # at the bottom it is rounding that says which evaluation is the last
        (bowl, {"tolerance_grad": 1e-2}),
        (bowl, {"tolerance_change": 1e-1, **SEARCH}),
        (bowl, {"max_iter": 6, "lr": 10.0, **SEARCH}),
        (bowl, {"max_iter": 6, "lr": 1e-2, **SEARCH}),
    ],
)
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-9), ("float32", 1e-2)])
def test_every_evaluation_is_where_pytorch_makes_it(
    torch: Any, function: Any, settings: dict[str, Any], dtype: str, tolerance: float
) -> None:
    calls = 4 if dtype == "float64" else 2
    mine, versions, state = optimize(gs, function, dtype, calls, **settings)
    theirs, other_versions, other_state = optimize(torch, function, dtype, calls, **settings)
    assert len(mine) == len(theirs)
    for a, b in zip(mine, theirs, strict=True):
        numpy.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
    assert versions == other_versions
    assert sorted(state) == sorted(other_state)
    assert (state["n_iter"], state["func_evals"]) == (other_state["n_iter"], other_state["func_evals"])
    assert len(state["old_dirs"]) == len(other_state["old_dirs"])


@pytest.mark.parametrize("settings", [{"lr": 0.1}, SEARCH])
def test_on_another_array_module(settings: dict[str, Any], other_device: str) -> None:
    here, _, _ = optimize(gs, valley, "float64", 3, max_iter=4, **settings)
    there, _, _ = optimize(gs, valley, "float64", 3, device=other_device, max_iter=4, **settings)
    for a, b in zip(here, there, strict=True):
        numpy.testing.assert_allclose(a, b, rtol=1e-9)


@pytest.mark.torch
@pytest.mark.parametrize("settings", [{"lr": 0.1}, SEARCH])
def test_complex_parameters(torch: Any, settings: dict[str, Any]) -> None:
    found = []
    for lib in (gs, torch):
        z = lib.tensor([1 + 2j, -3 + 0.5j], dtype=lib.complex128, requires_grad=True)
        optimizer = lib.optim.LBFGS([z], **settings)

        def closure(lib: Any = lib, z: Any = z, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            loss = ((z * z - 1j).abs() ** 2).sum()
            loss.backward()
            return loss

        for _ in range(3):
            optimizer.step(closure)
        found.append(z.detach().numpy())
    numpy.testing.assert_allclose(*found, rtol=1e-6)
    if settings is SEARCH:
        numpy.testing.assert_allclose(found[0] ** 2, [1j, 1j], atol=1e-4)


def test_a_point_that_is_good_enough_stays() -> None:
    x = gs.zeros(2, requires_grad=True)
    optimizer = gs.optim.LBFGS([x])

    def closure() -> gs.Tensor:
        optimizer.zero_grad()
        loss = (x * x).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 0.0
    assert x._version == 0
    assert optimizer.state[x]["func_evals"] == 1


@pytest.mark.torch
@pytest.mark.parametrize(
    "wrong",
    [
        lambda lib: lib.optim.LBFGS([{"params": lib.ones(1, requires_grad=True)} for _ in range(2)]),
        lambda lib: optimize(lib, bowl, "float32", 1, line_search_fn="weak_wolfe"),
    ],
)
def test_wrong_calls_raise_what_pytorch_raises(torch: Any, wrong: Any) -> None:
    same_complaint(torch, wrong)

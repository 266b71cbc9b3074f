"""Windows; PyTorch's database compares their values."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import gradscope as gs

GIVEN: dict[str, dict[str, Any]] = {"general_cosine": {"a": [0.5, 0.4, 0.1]}, "gaussian": {"std": 3.0}}


@pytest.mark.parametrize("name", gs.signal.windows.__all__)
@pytest.mark.parametrize("M", [2, 7, 8])
def test_a_period_is_a_symmetric_window_of_one_point_more(name: str, M: int) -> None:
    window = getattr(gs.signal.windows, name)
    symmetric = window(M + 1, **GIVEN.get(name, {}))
    numpy.testing.assert_allclose(symmetric.numpy(), symmetric.flip(0).numpy(), atol=1e-6)
    numpy.testing.assert_allclose(
        window(M, sym=False, **GIVEN.get(name, {})).numpy(), symmetric[:-1].numpy(), atol=1e-6
    )


@pytest.mark.parametrize("name", gs.signal.windows.__all__)
def test_short_windows_and_options(name: str) -> None:
    window = getattr(gs.signal.windows, name)
    given = GIVEN.get(name, {})
    assert window(0, **given).tolist() == []
    assert window(1, **given).tolist() == [1.0]
    found = window(3, dtype=gs.float64, requires_grad=True, **given)
    assert found.dtype is gs.float64
    assert found.is_leaf
    assert found.requires_grad
    with pytest.raises(ValueError, match=f"^{name} requires non-negative window length, got M=-1\n"):
        window(-1, **given)
    with pytest.raises(ValueError, match=f"^{name} expects float32 or float64 dtypes"):
        window(3, dtype=gs.int64, **given)


def test_parameters_that_make_no_window_are_refused() -> None:
    windows = gs.signal.windows
    with pytest.raises(ValueError, match=r"^Standard deviation must be positive, got: 0\n"):
        windows.gaussian(3, std=0)
    with pytest.raises(ValueError, match=r"^Tau must be positive, got: -1\n"):
        windows.exponential(3, tau=-1)
    with pytest.raises(ValueError, match=r"^Center must be None for symmetric windows\n"):
        windows.exponential(3, center=1)
    with pytest.raises(ValueError, match=r"^beta must be non-negative, got: -1\n"):
        windows.kaiser(3, beta=-1)
    with pytest.raises(ValueError, match=r"^Coefficients cannot be empty\n"):
        windows.general_cosine(3, a=[])
    with pytest.raises(TypeError, match=r"^Coefficients must be a list/tuple\n"):
        windows.general_cosine(3, a=0.5)


@pytest.mark.torch
def test_names_are_pytorchs(torch: Any) -> None:
    assert set(gs.signal.windows.__all__) == set(torch.signal.windows.__all__)

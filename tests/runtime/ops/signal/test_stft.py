"""Windows and short-time Fourier transforms beside PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import gradscope as gs
from tests.runtime.ops.operator_cases import assert_same_refusal
from tests.side_by_side import compare, same_complaint

SIGNAL = numpy.random.default_rng(0).normal(size=(2, 40))


@pytest.mark.torch
@pytest.mark.parametrize("name", ["hann", "hamming", "blackman", "bartlett", "kaiser"])
@pytest.mark.parametrize("length", [0, 1, 2, 5, 8])
def test_windows(torch: Any, name: str, length: int) -> None:
    for periodic in (True, False):
        mine, theirs = (getattr(m, f"{name}_window")(length, periodic, dtype=m.float64) for m in (gs, torch))
        numpy.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=1e-6, atol=1e-7)
    assert getattr(gs, f"{name}_window")(length).dtype is gs.float32
    same_complaint(torch, lambda m: getattr(m, f"{name}_window")(-1))


def transformed(m: Any, x: Any, options: dict[str, Any]) -> Any:
    return m.stft(x * 1, 8, window=m.hann_window(options.get("win_length", 8), dtype=m.float64), **options)


OPTIONS: list[dict[str, Any]] = [
    {},
    {"hop_length": 3},
    {"win_length": 6},
    {"center": False},
    {"pad_mode": "constant"},
    {"normalized": True},
    {"onesided": False},
]


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:stft with return_complex=False:UserWarning")
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_parts_of_a_signal(torch: Any, options: dict[str, Any]) -> None:
    def parts(m: Any, x: Any) -> Any:
        return transformed(m, x, {**options, "return_complex": False})

    compare(torch, parts, SIGNAL, names=False)
    compare(torch, parts, SIGNAL[0], names=False)


@pytest.mark.torch
@pytest.mark.parametrize("options", [o for o in OPTIONS if "pad_mode" not in o and "center" not in o], ids=str)
@pytest.mark.parametrize("length", [None, 33])
def test_and_back(torch: Any, options: dict[str, Any], length: int | None) -> None:
    def there_and_back(m: Any, x: Any) -> Any:
        window = m.hann_window(options.get("win_length", 8), dtype=m.float64)
        found = transformed(m, x, {**options, "return_complex": True})
        return m.istft(found, 8, window=window, length=length, **options)

    compare(torch, there_and_back, SIGNAL, names=False)
    found = there_and_back(gs, gs.tensor(SIGNAL)).numpy()
    same = min(found.shape[-1], 36)
    numpy.testing.assert_allclose(found[:, :same], SIGNAL[:, :same], atol=1e-6)


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:The length of signal:UserWarning")
def test_a_signal_that_is_longer_ends_in_zeros(torch: Any) -> None:
    found, expected = (
        m.istft(transformed(m, m.tensor(SIGNAL), {"return_complex": True}), 8, window=m.hann_window(8), length=50)
        for m in (gs, torch)
    )
    numpy.testing.assert_allclose(found.numpy(), expected.numpy(), atol=1e-6)
    assert found[:, -5:].tolist() == [[0.0] * 5] * 2


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:A window was not provided:UserWarning")
@pytest.mark.parametrize(
    "use",
    [
        lambda m: m.stft(m.ones(9), 4),
        lambda m: m.istft(m.ones(3, 3), 4),
    ],
)
def test_refusals(torch: Any, use: Any) -> None:
    same_complaint(torch, use)


def test_lengths_that_do_not_fit() -> None:
    window = gs.hann_window(4)
    with pytest.raises(RuntimeError, match="expected hop_length > 0"):
        gs.stft(gs.ones(9), 4, 0, window=window, return_complex=True)
    with pytest.raises(RuntimeError, match="expected a 1D window tensor"):
        gs.stft(gs.ones(9), 4, window=gs.ones(3), return_complex=True)
    with pytest.warns(UserWarning, match="A window was not provided"):
        gs.stft(gs.ones(9), 4, return_complex=True)
    with pytest.raises(RuntimeError, match="window overlap add min"):
        gs.istft(gs.ones(3, 3, dtype=gs.complex64), 4, 4, window=window)


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["float16", "int64"])
def test_signals_of_other_dtypes_are_refused(torch: Any, kind: str) -> None:
    def transformed(m: Any) -> Any:
        dtype = getattr(m, kind)
        return m.stft(m.ones(40, dtype=dtype), 8, window=m.ones(8, dtype=dtype), return_complex=True)

    assert_same_refusal(torch, transformed)

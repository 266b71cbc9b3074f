"""Windows under PyTorch's names.

Each has `M` points and the greatest value 1. With `sym` it is symmetric, for filters; without, it is a period of one,
for spectra, and its point after the last is left out. `dtype`, `device`, `layout` and `requires_grad` are those of
factories; the dtype is the default one unless given.

References
----------
F. J. Harris, "On the use of windows for harmonic analysis with the discrete Fourier transform", Proceedings of the IEEE
66 (1978): the shapes. A. H. Nuttall, "Some windows with very good sidelobe behavior", IEEE Transactions on Acoustics,
Speech, and Signal Processing 29 (1981): the weights of :func:`nuttall`.

Examples
--------
>>> import gradscope as gs
>>> gs.signal.windows.hann(5)
tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
>>> gs.signal.windows.hann(4, sym=False)
tensor([0.0000, 0.5000, 1.0000, 0.5000])
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..runtime.memory import dtype as dtypes
from ..runtime.memory.memory_format import check_memory
from ..runtime.ops.signal.stft import cosine_sum, kaiser_shape, triangle
from ..runtime.tensor import creation
from ..runtime.tensor.tensor import Tensor

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]


def _window(name: str, M: int, shape: Callable[[Tensor, float], Tensor], sym: bool, options: dict[str, Any]) -> Tensor:
    """Return ``shape(points, last)`` of the points 0, 1, 2, ... of a window from 0 to `last`."""
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}\nM is the number of points.")
    check_memory(name, options.pop("layout", None), None)
    kind = options.pop("dtype", None)
    kind = dtypes.get_default_dtype() if kind is None else dtypes.to_dtype(kind)
    if kind not in (dtypes.float32, dtypes.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {kind}\nConvert the window with .to().")
    requires_grad = options.pop("requires_grad", False)
    if M <= 1:
        return creation.ones(M, dtype=kind, requires_grad=requires_grad, **options)
    points = creation.arange(M, dtype=dtypes.float64, **options)
    return shape(points, float(M - 1 if sym else M)).to(kind).requires_grad_(requires_grad)


def _between_ends(shape: Callable[[Any], Any]) -> Callable[[Tensor, float], Tensor]:
    """Return a function of the position between 0 and 1 as one of the point and the last point."""
    return lambda points, last: shape(points / last)


def _cosines(weights: Sequence[float]) -> Callable[[Tensor, float], Tensor]:
    """Return the sum of cosines with alternating signs."""
    return _between_ends(cosine_sum(*(weight * (-1) ** k for k, weight in enumerate(weights))))


def _check_positive(name: str, value: float) -> None:
    if value <= 0:
        raise ValueError(f"{name} must be positive, got: {value}\nIt is a width, in points.")


def general_cosine(M: int, *, a: Iterable[float], sym: bool = True, **options: Any) -> Tensor:
    """Return a window that is a sum of cosines of 0, 1, 2, ... periods with the weights `a`, in alternating signs.

    Raises
    ------
    TypeError
        If the weights are no sequence.
    ValueError
        If there are none.
    """
    if not isinstance(a, Iterable):
        raise TypeError(f"Coefficients must be a list/tuple\nIt is {a!r}: write [a0, a1, ...].")
    weights = list(a)
    if not weights:
        raise ValueError("Coefficients cannot be empty\n[1.0] is the window of ones.")
    return _window("general_cosine", M, _cosines(weights), sym, options)


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, **options: Any) -> Tensor:
    """Return a raised cosine: ``alpha`` and a cosine of what is left to 1."""
    return _window("general_hamming", M, _cosines([alpha, 1 - alpha]), sym, options)


def hamming(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """Return the Hamming window, whose greatest sidelobe is small."""
    return _window("hamming", M, _cosines([0.54, 0.46]), sym, options)


def hann(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """Return the Hann window, which ends in 0."""
    return _window("hann", M, _cosines([0.5, 0.5]), sym, options)


def blackman(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """Return the Blackman window, of three terms."""
    return _window("blackman", M, _cosines([0.42, 0.5, 0.08]), sym, options)


def nuttall(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """Return Nuttall's window with the least sidelobes of four terms."""
    return _window("nuttall", M, _cosines([0.3635819, 0.4891775, 0.1365995, 0.0106411]), sym, options)


def bartlett(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """Return the triangle that ends in 0."""
    return _window("bartlett", M, _between_ends(triangle), sym, options)


def cosine(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """Return half a wave of a sine, in the middles of as many parts as there are points."""
    return _window("cosine", M, lambda points, last: ((points + 0.5) * (math.pi / (last + 1))).sin(), sym, options)


def exponential(M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, **options: Any) -> Tensor:
    """Return ``exp(-|n - center| / tau)``; the center is the window's, unless given where `sym` is False."""
    _check_positive("Tau", tau)
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows\nGive it with sym=False.")

    def shape(points: Tensor, last: float) -> Tensor:
        return (-(points - (last / 2 if center is None else center)).abs() / tau).exp()

    return _window("exponential", M, shape, sym, options)


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, **options: Any) -> Tensor:
    """Return a normal distribution of the standard deviation `std`, in points, but for its factor."""
    _check_positive("Standard deviation", std)

    def shape(points: Tensor, last: float) -> Tensor:
        return (-(((points - last / 2) / std) ** 2) / 2).exp()

    return _window("gaussian", M, shape, sym, options)


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, **options: Any) -> Tensor:
    """Return the Kaiser window: a Bessel function of half a circle, the narrower the larger `beta` is."""
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta}\nOf 0 it is the window of ones.")
    return _window("kaiser", M, _between_ends(kaiser_shape(beta)), sym, options)

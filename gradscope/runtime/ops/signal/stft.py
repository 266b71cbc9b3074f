"""Short-time Fourier transforms, and windows.

References
----------
D. W. Griffin, J. S. Lim, "Signal estimation from modified short-time Fourier transform", IEEE Transactions on
Acoustics, Speech, and Signal Processing 32, 1984: the inverse.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ... import autocast, state
from ...memory import dtype as dtypes
from ...tensor import creation
from ...tensor.tensor import Tensor
from ...user_warnings import warn
from ..declaration.annotations import Argument, Array
from ..declaration.registry import OPERATORS, PUBLIC, public
from ..vision.padding import circular_pad
from .fft import BY_COUNT, BY_ROOT, UNSCALED

# --- windows ----------------------------------------------------------------------------------------------------------


def _window(
    name: str, length: int, periodic: bool, options: dict[str, Argument], shape: Callable[[Tensor], Tensor]
) -> Tensor:
    """Return a window: `shape` of the positions from 0 to 1."""
    if length < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={length}")
    kind = dtypes.get_default_dtype() if options.get("dtype") is None else dtypes.to_dtype(options["dtype"])
    if not kind.is_floating_point:
        raise RuntimeError(f"{name} expects floating point dtypes, got: {kind.name}\nA window has no integers.")
    options = {**options, "dtype": kind}
    requires_grad = options.pop("requires_grad", False)
    if length <= 1:
        return creation.ones(length, requires_grad=requires_grad, **options)
    last = length if periodic else length - 1
    wide = {**options, "dtype": dtypes.float64}
    return shape(creation.arange(length, **wide) / last).to(kind).requires_grad_(requires_grad)


def cosine_sum(*weights: float) -> Callable[[Tensor], Tensor]:
    """Return a sum of cosines of 0, 1, 2, ... periods as a function of the position."""

    def shape(x: Array) -> Array:
        return sum((x * (2 * math.pi * k)).cos() * weight for k, weight in enumerate(weights))

    return shape


def triangle(x: Array) -> Array:
    """Return the height at the position of a triangle over all positions."""
    return 1 - (2 * x - 1).abs()


def kaiser_shape(beta: float) -> Callable[[Tensor], Tensor]:
    """Return a Bessel function of half a circle as a function of the position."""

    def shape(x: Array) -> Array:
        circle = (1 - (2 * x - 1) ** 2).clamp_min(0).sqrt()
        return (circle * beta).i0() / creation.tensor(float(beta), dtype="float64", device=x.device).i0()

    return shape


@public(method=False)
def hann_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """Return a Hann window; one of a period leaves out the last point.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _window("hann_window", window_length, periodic, options, cosine_sum(0.5, -0.5))


@public(method=False)
def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, **options: Any
) -> Tensor:
    """Return a Hamming window.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.hamming_window(4)
    tensor([0.0800, 0.5400, 1.0000, 0.5400])
    """
    return _window("hamming_window", window_length, periodic, options, cosine_sum(alpha, -beta))


@public(method=False)
def blackman_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """Return a Blackman window.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.blackman_window(4)
    tensor([0.0000, 0.3400, 1.0000, 0.3400])
    """
    return _window(
        "blackman_window", window_length, periodic, options, lambda x: cosine_sum(0.42, -0.5, 0.08)(x).clamp_min(0)
    )


@public(method=False)
def bartlett_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """Return a triangular window.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.bartlett_window(5)
    tensor([0.0000, 0.4000, 0.8000, 0.8000, 0.4000])
    """
    return _window("bartlett_window", window_length, periodic, options, triangle)


@public(method=False)
def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, **options: Any) -> Tensor:
    """Return a Kaiser window: Bessel functions of a half circle.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.kaiser_window(3)
    tensor([5.2773e-05, 5.1884e-01, 5.1884e-01])
    """
    return _window("kaiser_window", window_length, periodic, options, kaiser_shape(beta))


# --- transforms -------------------------------------------------------------------------------------------------------


def _full_window(name: str, input: Array, window: Array, n_fft: int, length: int) -> Array:
    """Return the window, of ones unless given, with zeros on both sides up to the size of the transform."""
    if window is None:
        kind = input.real.dtype if input.is_complex() else input.dtype
        window = creation.ones(length, dtype=kind, device=input.device)
    if window.dim() != 1 or window.shape[0] != length:
        raise RuntimeError(
            f"{name}: expected a 1D window tensor of size equal to win_length={length}, but got window with size "
            f"{list(window.shape)}"
        )
    left = (n_fft - length) // 2
    return PUBLIC["constant_pad_nd"](window, [left, n_fft - length - left]) if length < n_fft else window


def _check_lengths(name: str, n_fft: int, hop: int, window: int) -> None:
    if hop <= 0:
        raise RuntimeError(f"{name}: expected hop_length > 0, but got hop_length={hop}")
    if not 0 < window <= n_fft:
        raise RuntimeError(f"{name}: expected 0 < win_length <= n_fft, but got win_length={window}")


@public
def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """Return Fourier transforms of parts of a signal, each under a window.

    Parameters
    ----------
    input : Tensor
        Of shape (time) or (batch, time).
    n_fft : int
        The number of points of a transform.
    hop_length : int, optional
        The distance between parts; a quarter of `n_fft` unless given.
    win_length : int, optional
        The length of the window; `n_fft` unless given.
    window : Tensor, optional
        Of ones unless given.
    center : bool
        Pad the signal with half a transform on both sides, as `pad_mode` says, so that parts lie around their times.
    normalized : bool
        Divide by the root of `n_fft`.
    onesided : bool, optional
        Return the half that determines the rest; what is done with real signals unless given.
    return_complex : bool
        Whether the result is complex, or has a last dimension for the parts of complex numbers.
    align_to_window : bool, optional
        Let the first part begin where its window does; only without `center`.

    Returns
    -------
    Tensor
        Of shape (batch, frequencies, parts).

    Raises
    ------
    RuntimeError
        If the lengths do not fit together.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.stft(gs.ones(16), 8, window=gs.hann_window(8), return_complex=True).shape
    gradscope.Size([5, 9])
    """
    if state.casting and autocast.covers("stft", (input, window)):
        return autocast.call(
            "stft",
            stft,
            input,
            n_fft,
            hop_length,
            win_length,
            window,
            center,
            pad_mode,
            normalized,
            onesided,
            return_complex,
            align_to_window,
        )
    hop, length = n_fft // 4 if hop_length is None else hop_length, n_fft if win_length is None else win_length
    complex_kind = input.is_complex() or (window is not None and window.is_complex())
    if return_complex is None and not complex_kind:
        raise RuntimeError(
            "stft requires the return_complex parameter be given for real inputs, and will further require that "
            "return_complex=True in a future PyTorch release."
        )
    if center and align_to_window is not None:
        raise RuntimeError(
            "stft align_to_window should only be set when center = false.\nCentered parts are aligned already."
        )
    if window is None:
        _warn_no_window()
    if input._dtype.kind not in dtypes.INEXACT:
        raise RuntimeError("stft: expected a tensor of floating point or complex values\nConvert it with .float().")
    if input.dim() not in (1, 2):
        raise RuntimeError(f"stft: expected a 1D or 2D tensor\nIts shape is {list(input.shape)}.")
    _check_lengths("stft", n_fft, hop, length)
    signal = input if input.dim() == 2 else input.unsqueeze(0)
    if center:
        signal = _padded(signal.unsqueeze(1), n_fft // 2, pad_mode).squeeze(1)
    if n_fft <= 0 or n_fft > signal.shape[-1]:
        raise RuntimeError(f"stft: expected 0 < n_fft <= {signal.shape[-1]}, but got n_fft={n_fft}")
    parts = signal.unfold(-1, n_fft, hop) * _full_window("stft", input, window, n_fft, length)
    scale = BY_ROOT if normalized else UNSCALED
    if parts.is_complex():
        found = OPERATORS["_fft_c2c"].function(parts, [2], scale, True)
    else:
        found = OPERATORS["_fft_r2c"].function(parts, [2], scale, onesided is not False)
    found = found.transpose(1, 2)
    found = found if input.dim() == 2 else found.squeeze(0)
    if return_complex is not False:
        return found
    warn(
        "stft with return_complex=False is deprecated. In a future PyTorch release, stft will return complex tensors "
        "for all inputs, and return_complex=False will raise an error.",
    )
    return PUBLIC["view_as_real"](found)


def _padded(signal: Tensor, half: int, mode: str) -> Array:
    if mode == "circular":
        return circular_pad(signal, (half, half))
    kinds = {"constant": "constant_pad_nd", "reflect": "reflection_pad1d", "replicate": "replication_pad1d"}
    if mode not in kinds:
        raise NotImplementedError(f"Unrecognised padding mode {mode}\nUse constant, reflect, replicate or circular.")
    return OPERATORS[kinds[mode]].function(signal, (half, half))


def _warn_no_window() -> None:
    warn(
        "A window was not provided. A rectangular window will be applied,which is known to cause spectral leakage. "
        "Other windows such as gradscope.hann_window or gradscope.hamming_window are recommended to reduce spectral "
        "leakage.",
    )


@public
def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """Return the signal of which :func:`stft` makes the parts nearest to `input`.

    Parameters
    ----------
    input : Tensor
        Complex, of shape (frequencies, parts) or (batch, frequencies, parts).
    n_fft, hop_length, win_length, window, center, normalized, onesided
        As they were for :func:`stft`.
    length : int, optional
        Cut the signal, or fill it up with zeros, to this length.
    return_complex : bool
        Whether the signal was complex.

    Raises
    ------
    RuntimeError
        If the sizes do not fit together, or the windows leave gaps.

    Examples
    --------
    >>> import gradscope as gs
    >>> window = gs.hann_window(4)
    >>> parts = gs.stft(gs.tensor([1.0, 2.0, 3.0, 4.0]), 4, window=window, return_complex=True)
    >>> gs.istft(parts, 4, window=window).round()
    tensor([1., 2., 3., 4.])
    """
    hop, size = n_fft // 4 if hop_length is None else hop_length, n_fft if win_length is None else win_length
    if not input.is_complex():
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
        )
    if input.dim() not in (2, 3):
        raise RuntimeError(f"istft: expected a tensor with 2 or 3 dimensions\nIts shape is {list(input.shape)}.")
    _check_lengths("istft", n_fft, hop, size)
    half_given = input.shape[-2] != n_fft if onesided is None else onesided
    bins = n_fft // 2 + 1 if half_given else n_fft
    if input.shape[-2] != bins:
        raise RuntimeError(
            f"istft: expected the frequency dimension (3rd to the last) of the input tensor to match n_fft / 2 + 1 "
            f"when onesided=True, but got {input.shape[-2]}\nFor n_fft={n_fft} it should be {bins}."
        )
    window = _full_window("istft", input, window, n_fft, size)
    spectra = (input if input.dim() == 3 else input.unsqueeze(0)).transpose(1, 2)
    scale = BY_ROOT if normalized else BY_COUNT
    if return_complex:
        parts = OPERATORS["_fft_c2c"].function(spectra, [2], scale, False)
    else:
        spectra = spectra if half_given else spectra.narrow(2, 0, n_fft // 2 + 1)
        parts = OPERATORS["_fft_c2r"].function(spectra, [2], scale, n_fft)
    signal = _overlapped(parts * window, hop)
    weight = _overlapped((window * window).expand(1, parts.shape[1], n_fft), hop)
    start = n_fft // 2 if center else 0
    stop = signal.shape[-1] - (start if center and length is None else 0)
    stop = stop if length is None else min(stop, start + length)
    signal, weight = signal[..., start:stop], weight[..., start:stop]
    if float(weight.abs().min()) < 1e-11:
        raise RuntimeError(
            "window overlap add min: 0\nBetween parts that do not overlap the signal is unknown: take a smaller "
            "hop_length, or a window without zeros at its ends."
        )
    signal = signal / weight
    signal = signal if input.dim() == 3 else signal.squeeze(0)
    missing = 0 if length is None else length - signal.shape[-1]
    if missing <= 0:
        return signal
    warn(
        "The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail. "
        "Please check your center and hop_length settings.",
    )
    return PUBLIC["constant_pad_nd"](signal, [0, missing])


def _overlapped(parts: Tensor, hop: int) -> Array:
    """Return the sum of parts (batch, count, size), each `hop` after the one before."""
    batch, count, size = parts.shape
    total = (count - 1) * hop + size
    places = creation.arange(size, device=parts.device) + hop * creation.arange(count, device=parts.device)[:, None]
    return parts.new_zeros(batch, total).index_add(1, places.reshape(-1), parts.reshape(batch, count * size))

"""Fourier transforms under PyTorch's names.

A name says what is transformed: nothing for complex numbers, ``r`` for real ones (of whose spectrum one half is
returned), ``h`` for numbers with a real spectrum; ``i`` for the inverse; 2 or n for two or more dimensions. `norm` says
what the result is divided by: "backward", the inverse by the number of points; "forward", the other one; "ortho", both
by its root.

Examples
--------
>>> import gradscope as gs
>>> gs.fft.rfft(gs.tensor([1.0, 2.0, 3.0, 4.0]))
tensor([10.+0.j, -2.+2.j, -2.+0.j])
>>> gs.fft.irfft(gs.fft.rfft(gs.tensor([1.0, 2.0, 3.0, 4.0])))
tensor([1., 2., 3., 4.])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .runtime import autocast, state
from .runtime.memory import dtype as dtypes
from .runtime.memory.memory_format import check_memory
from .runtime.ops.declaration.registry import OPERATORS, PUBLIC
from .runtime.ops.execution.inplace_and_out import into
from .runtime.ops.shape.reshape import axis_of
from .runtime.ops.signal.fft import BY_COUNT, BY_ROOT, UNSCALED, refuse_halves
from .runtime.tensor import creation
from .runtime.tensor.tensor import Tensor

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "hfft2",
    "hfftn",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "ihfft2",
    "ihfftn",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]

# --- what all transforms share ----------------------------------------------------------------------------------------


def _scale(norm: str | None, forward: bool) -> int:
    """Return how the result is scaled, by PyTorch's number for it."""
    if norm == "ortho":
        return BY_ROOT
    if norm in (None, "backward"):
        return UNSCALED if forward else BY_COUNT
    if norm != "forward":
        raise RuntimeError(f'Invalid normalization mode: "{norm}"\nUse "backward", "forward" or "ortho".')
    return BY_COUNT if forward else UNSCALED


def _promoted(input: Tensor, to_complex: bool) -> Tensor:
    """Return `input` in a dtype that can be transformed."""
    if state.casting and autocast.covers("fft", (input,)):
        input = input.float()
    refuse_halves(input._array)
    kind = input.dtype
    if not (kind.is_floating_point or kind.is_complex):
        kind = dtypes.get_default_dtype()
    if to_complex and not kind.is_complex:
        kind = dtypes.complex128 if kind is dtypes.float64 else dtypes.complex64
    return input if kind is input.dtype else input.to(kind)


def _need_real(name: str, input: Tensor) -> None:
    if input.is_complex():
        kind = "ComplexDouble" if input.dtype is dtypes.complex128 else "ComplexFloat"
        raise RuntimeError(f"{name} expects a real input tensor, but got {kind}\nTake .real, or {name.strip('ir')}().")


def _axis(input: Tensor, dim: int) -> int:
    if input.dim() == 0:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return axis_of(dim, input.dim())


def _axes(input: Tensor, s: Any, dim: Any) -> tuple[list[int], list[int]]:
    """Return the dimensions to transform and the number of points along each."""
    dims = None if dim is None else [dim] if isinstance(dim, int) else list(dim)
    sizes = None if s is None else [s] if isinstance(s, int) else list(s)
    if dims is not None:
        axes = [_axis(input, d) for d in dims]
        if len(set(axes)) != len(axes):
            raise RuntimeError(f"FFT dims must be unique\nThey are {dims}.")
        if sizes is not None and len(sizes) != len(axes):
            raise RuntimeError(
                "When given, dim and shape arguments must have the same length\n"
                f"There are {len(axes)} dimensions and {len(sizes)} sizes."
            )
    else:
        count = input.dim() if sizes is None else len(sizes)
        if count > input.dim():
            raise RuntimeError(f"Got shape with {count} values but input tensor only has {input.dim()} dimensions.")
        axes = list(range(input.dim() - count, input.dim()))
    kept = [int(input.shape[axis]) for axis in axes]
    sizes = kept if sizes is None else [own if size == -1 else size for own, size in zip(kept, sizes, strict=True)]
    for size in sizes:
        _check_points(size)
    return axes, sizes


def _check_points(count: int) -> None:
    if count < 1:
        raise RuntimeError(f"Invalid number of data points ({count}) specified")


def _resized(input: Tensor, axes: Sequence[int], sizes: Sequence[int]) -> Tensor:
    """Return `input` cut to, or filled up with zeros to, a number of points along dimensions."""
    padding = [0] * (2 * input.dim())
    for axis, size in zip(axes, sizes, strict=True):
        have = input.shape[axis]
        if have > size:
            input = input.narrow(axis, 0, size)
        padding[-2 * axis - 1] = max(size - have, 0)
    return PUBLIC["constant_pad_nd"](input, padding) if any(padding) else input


def _transform(input: Tensor, axes: list[int], norm: str | None, forward: bool) -> Tensor:
    return OPERATORS["_fft_c2c"].function(input, axes, _scale(norm, forward), forward)


def _half(input: Tensor, axes: list[int], norm: str | None, forward: bool, onesided: bool = True) -> Tensor:
    """Return the transform of real numbers; one backwards is the conjugate."""
    found = OPERATORS["_fft_r2c"].function(input, axes, _scale(norm, forward), onesided)
    return found if forward else found.conj()


def _real(input: Tensor, axes: list[int], norm: str | None, forward: bool, count: int) -> Tensor:
    """Return the real transform of half a spectrum; one forward is that of the conjugate."""
    return OPERATORS["_fft_c2r"].function(input.conj() if forward else input, axes, _scale(norm, forward), count)


# --- along one dimension ----------------------------------------------------------------------------------------------


def _single(name: str, input: Tensor, n: int | None, dim: int, norm: str | None) -> Tensor:
    forward = not name.startswith("i")
    kind = name.removeprefix("i")
    if (kind == "rfft") == forward and kind != "fft":
        _need_real(name, input)
        return _half_of(input, n, dim, norm, forward)
    if kind != "fft":
        return _real_of(input, n, dim, norm, forward)
    x, axis = _promoted(input, to_complex=False), _axis(input, dim)
    count = x.shape[axis] if n is None else n
    _check_points(count)
    x = _resized(x, [axis], [count])
    if x.is_complex():
        return _transform(x, [axis], norm, forward)
    return _half(x, [axis], norm, forward, onesided=False)


def _half_of(input: Tensor, n: int | None, dim: int, norm: str | None, forward: bool) -> Tensor:
    x, axis = _promoted(input, to_complex=False), _axis(input, dim)
    count = x.shape[axis] if n is None else n
    _check_points(count)
    return _half(_resized(x, [axis], [count]), [axis], norm, forward)


def _real_of(input: Tensor, n: int | None, dim: int, norm: str | None, forward: bool) -> Tensor:
    x, axis = _promoted(input, to_complex=True), _axis(input, dim)
    count = 2 * (x.shape[axis] - 1) if n is None else n
    _check_points(count)
    return _real(_resized(x, [axis], [count // 2 + 1]), [axis], norm, forward, count)


def fft(
    input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return the Fourier transform along a dimension.

    Parameters
    ----------
    n : int, optional
        The number of points: `input` is cut or filled up with zeros to it.
    norm : {"backward", "forward", "ortho"}, optional

    Raises
    ------
    RuntimeError
        If there are no points, or `norm` is another word.

    See Also
    --------
    ifft, rfft, fftn

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.fft.fft(gs.tensor([1.0, 0.0, 0.0]))
    tensor([1.+0.j, 1.+0.j, 1.+0.j])
    """
    return _into("fft", out, input, lambda: _single("fft", input, n, dim, norm))


def ifft(
    input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return the inverse of :func:`fft`.

    See Also
    --------
    fft, irfft

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.fft.ifft(gs.tensor([4.0, 0.0, 0.0, 0.0]))
    tensor([1.-0.j, 1.-0.j, 1.-0.j, 1.-0.j])
    """
    return _into("ifft", out, input, lambda: _single("ifft", input, n, dim, norm))


def rfft(
    input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return the first half, and the point in the middle, of the Fourier transform of real numbers.

    See Also
    --------
    irfft, fft, stft

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.fft.rfft(gs.ones(4))
    tensor([4.+0.j, 0.+0.j, 0.+0.j])
    """
    return _into("rfft", out, input, lambda: _single("rfft", input, n, dim, norm))


def irfft(
    input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return the inverse of :func:`rfft`, of `n` points: an even number unless given.

    See Also
    --------
    rfft

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.fft.irfft(gs.tensor([4.0, 0.0, 0.0]))
    tensor([1., 1., 1., 1.])
    """
    return _into("irfft", out, input, lambda: _single("irfft", input, n, dim, norm))


def hfft(
    input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return the real Fourier transform of numbers of which the first half is given.

    See Also
    --------
    ihfft, irfft

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.fft.hfft(gs.tensor([1.0, 0.0, 0.0]))
    tensor([1., 1., 1., 1.])
    """
    return _into("hfft", out, input, lambda: _single("hfft", input, n, dim, norm))


def ihfft(
    input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return the inverse of :func:`hfft`.

    See Also
    --------
    hfft

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.fft.ihfft(gs.ones(4))
    tensor([1.-0.j, 0.-0.j, 0.-0.j])
    """
    return _into("ihfft", out, input, lambda: _single("ihfft", input, n, dim, norm))


def _into(name: str, out: Tensor | None, input: Tensor, compute: Callable[[], Tensor]) -> Tensor:
    return compute() if out is None else into(out, f"fft_{name}", [input], compute)


# --- along several ----------------------------------------------------------------------------------------------------


def fftn(
    input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return the Fourier transform along dimensions: all, or the last as many as `s` has sizes, unless given.

    See Also
    --------
    ifftn, fft

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.fft.fftn(gs.ones(2, 2, 2)).shape
    gradscope.Size([2, 2, 2])
    """

    def compute() -> Tensor:
        axes, sizes = _axes(input, s, dim)
        return _transform(_resized(_promoted(input, to_complex=True), axes, sizes), axes, norm, True)

    return _into("fftn", out, input, compute)


def ifftn(
    input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return the inverse of :func:`fftn`.

    See Also
    --------
    fftn

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.fft.ifftn(gs.ones(2, 2, 2)).shape
    gradscope.Size([2, 2, 2])
    """

    def compute() -> Tensor:
        axes, sizes = _axes(input, s, dim)
        return _transform(_resized(_promoted(input, to_complex=True), axes, sizes), axes, norm, False)

    return _into("ifftn", out, input, compute)


def _need_axis(name: str, axes: list[int]) -> None:
    if not axes:
        raise RuntimeError(f"{name} must transform at least one axis")


def rfftn(
    input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return the half along the last dimension of the Fourier transform of real numbers.

    See Also
    --------
    irfftn, fftn

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.fft.rfftn(gs.ones(2, 4, 4)).shape
    gradscope.Size([2, 4, 3])
    """

    def compute() -> Tensor:
        _need_real("rfftn", input)
        axes, sizes = _axes(input, s, dim)
        _need_axis("rfftn", axes)
        return _half(_resized(_promoted(input, to_complex=False), axes, sizes), axes, norm, True)

    return _into("rfftn", out, input, compute)


def _axes_to_real(name: str, input: Tensor, s: Any, dim: Any) -> tuple[Tensor, list[int], int]:
    """Return half a spectrum in its size, its dimensions, and the number of points along the last of the result."""
    axes, sizes = _axes(input, s, dim)
    _need_axis(name, axes)
    given = None if s is None else s if isinstance(s, int) else s[-1]
    count = 2 * (input.shape[axes[-1]] - 1) if given in (None, -1) else sizes[-1]
    _check_points(count)
    return _resized(_promoted(input, to_complex=True), axes, [*sizes[:-1], count // 2 + 1]), axes, count


def irfftn(
    input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return the inverse of :func:`rfftn`.

    See Also
    --------
    rfftn

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.fft.irfftn(gs.ones(2, 4, 3)).shape
    gradscope.Size([2, 4, 4])
    """

    def compute() -> Tensor:
        half, axes, count = _axes_to_real("irfftn", input, s, dim)
        return _real(half, axes, norm, False, count)

    return _into("irfftn", out, input, compute)


def hfftn(
    input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return the real Fourier transform of numbers of which the half along the last dimension is given.

    Parameters
    ----------
    input : Tensor
        The half, complex: its last of the dimensions has ``n // 2 + 1`` numbers for ``n`` of the result.
    s : sequence of int, optional
        The sizes of the result along the dimensions; -1 leaves one as it is.
    dim : sequence of int, optional
        All, or the last as many as `s` has sizes.
    norm : {"backward", "forward", "ortho"}
        Which direction is divided by the number of points; ``"ortho"`` divides both by its root.

    Returns
    -------
    Tensor
        Real.

    See Also
    --------
    ihfftn : the inverse.
    hfft : along one dimension.

    Examples
    --------
    >>> import gradscope as gs
    >>> half = gs.fft.ihfftn(gs.arange(8.0).view(2, 4))
    >>> half.shape, half.dtype
    (gradscope.Size([2, 3]), gradscope.complex64)
    >>> gs.fft.hfftn(half, s=(2, 4))
    tensor([[0., 1., 2., 3.],
            [4., 5., 6., 7.]])
    """

    def compute() -> Tensor:
        half, axes, count = _axes_to_real("hfftn", input, s, dim)
        others = _transform(half, axes[:-1], norm, True) if axes[:-1] else half
        return _real(others, axes[-1:], norm, True, count)

    return _into("hfftn", out, input, compute)


def ihfftn(
    input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return the inverse of :func:`hfftn`.

    Parameters
    ----------
    input : Tensor
        Real.
    s : sequence of int, optional
        The sizes to which the dimensions are cut, or filled with zeros; -1 leaves one as it is.
    dim : sequence of int, optional
        All, or the last as many as `s` has sizes.
    norm : {"backward", "forward", "ortho"}
        Which direction is divided by the number of points; ``"ortho"`` divides both by its root.

    Returns
    -------
    Tensor
        Complex; its last of the dimensions has ``n // 2 + 1`` numbers for ``n`` of the input.

    Raises
    ------
    RuntimeError
        If the input is complex.

    See Also
    --------
    hfftn : the inverse.
    ihfft : along one dimension.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.fft.ihfftn(gs.tensor([[1.0, 3.0], [1.0, 3.0]]))
    tensor([[ 2.-0.j, -1.-0.j],
            [ 0.+0.j,  0.+0.j]])
    """

    def compute() -> Tensor:
        if input.is_complex():
            kind = "ComplexDouble" if input.dtype is dtypes.complex128 else "ComplexFloat"
            raise RuntimeError(f"Only supports floating-point dtypes, but found: {kind}\nTake .real, or ifftn().")
        axes, sizes = _axes(input, s, dim)
        _need_axis("ihfftn", axes)
        half = _half(_resized(_promoted(input, to_complex=False), axes, sizes), axes[-1:], norm, False)
        return _transform(half, axes[:-1], norm, False) if axes[:-1] else half

    return _into("ihfftn", out, input, compute)


def _planar(function: Callable[..., Tensor], doc: str) -> Callable[..., Tensor]:
    """Return the form of a transform that is along the last two dimensions unless told otherwise."""

    def planar(
        input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None, *, out: Tensor | None = None
    ) -> Tensor:
        return function(input, s, dim, norm, out=out)

    planar.__name__ = planar.__qualname__ = function.__name__[:-1] + "2"
    planar.__doc__ = doc
    return planar


fft2 = _planar(
    fftn,
    """Return the Fourier transform along two dimensions, the last ones unless told otherwise.

    See Also
    --------
    fftn : along any dimensions.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.fft.fft2(gs.ones(2, 2))
    tensor([[4.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]])
    """,
)
ifft2 = _planar(
    ifftn,
    """Return the inverse of :func:`fft2`.

    See Also
    --------
    ifftn : along any dimensions.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.fft.ifft2(gs.fft.fft2(gs.eye(2)))
    tensor([[1.+0.j, 0.+0.j],
            [0.+0.j, 1.+0.j]])
    """,
)
rfft2 = _planar(
    rfftn,
    """Return half the Fourier transform of real numbers along two dimensions; the rest is its conjugate.

    See Also
    --------
    rfftn : along any dimensions.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.fft.rfft2(gs.ones(4, 4)).shape
    gradscope.Size([4, 3])
    """,
)
irfft2 = _planar(
    irfftn,
    """Return the inverse of :func:`rfft2`; `s` says whether its last size is odd.

    See Also
    --------
    irfftn : along any dimensions.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.fft.irfft2(gs.fft.rfft2(gs.eye(3)), s=(3, 3)).round(decimals=4)
    tensor([[1., 0., 0.],
            [0., 1., 0.],
            [0., 0., 1.]])
    """,
)
hfft2 = _planar(
    hfftn,
    """Return the real Fourier transform along two dimensions of numbers of which half is given.

    See Also
    --------
    hfftn : along any dimensions.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.fft.hfft2(gs.ones(2, 2, dtype=gs.complex64))
    tensor([[4., 0.],
            [0., 0.]])
    """,
)
ihfft2 = _planar(
    ihfftn,
    """Return the inverse of :func:`hfft2`.

    See Also
    --------
    ihfftn : along any dimensions.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.fft.ihfft2(gs.ones(2, 4)).shape
    gradscope.Size([2, 3])
    """,
)


# --- frequencies ------------------------------------------------------------------------------------------------------


def fftfreq(n: int, d: float = 1.0, *, out: Tensor | None = None, **options: Any) -> Tensor:
    """Return the frequencies of the points of a transform, in cycles a unit of the distance `d` between samples.

    See Also
    --------
    rfftfreq, fftshift

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    options.setdefault("dtype", dtypes.get_default_dtype())
    middle = (n + 1) // 2
    numbers = [*range(middle), *range(middle - n, 0)]
    return _frequencies(numbers, n, d, out, options)


def rfftfreq(n: int, d: float = 1.0, *, out: Tensor | None = None, **options: Any) -> Tensor:
    """Return the frequencies of the points of :func:`rfft`.

    See Also
    --------
    fftfreq

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.fft.rfftfreq(4)
    tensor([0.0000, 0.2500, 0.5000])
    """
    options.setdefault("dtype", dtypes.get_default_dtype())
    return _frequencies(list(range(n // 2 + 1)), n, d, out, options)


def _frequencies(numbers: list[int], n: int, d: float, out: Tensor | None, options: dict[str, Any]) -> Tensor:
    check_memory("fft_fftfreq", options.pop("layout", None), options.pop("pin_memory", None))
    found = creation.tensor([number / (n * d) for number in numbers], **options)
    return found if out is None else into(out, "fft_fftfreq", [], lambda: found)


def fftshift(input: Tensor, dim: Any = None) -> Tensor:
    """Return a spectrum with the frequency 0 in the middle of the dimensions (of all unless given).

    See Also
    --------
    ifftshift, fftfreq

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.fft.fftshift(gs.arange(4))
    tensor([2, 3, 0, 1])
    """
    return _shifted(input, dim, lambda size: size // 2)


def ifftshift(input: Tensor, dim: Any = None) -> Tensor:
    """Return the inverse of :func:`fftshift`.

    See Also
    --------
    fftshift

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.fft.ifftshift(gs.arange(4))
    tensor([2, 3, 0, 1])
    """
    return _shifted(input, dim, lambda size: (size + 1) // 2)


def _shifted(input: Tensor, dim: Any, shift: Callable[[int], int]) -> Tensor:
    dims = list(range(input.dim())) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    return PUBLIC["roll"](input, [shift(input.shape[d]) for d in dims], dims)

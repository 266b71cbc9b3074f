"""Reductions and normalizations of the elements that a mask lets through, under PyTorch's names.

In each function `mask` is a tensor of bools that broadcasts to `input`: True where an element counts. A reduction in
which none counts is that of no elements: 0 for a sum, NaN for a mean. A result with the shape of `input` means nothing
in the places that the mask hides. A `dim` of None, or of no dimensions, is all dimensions. Results have the dtype of
`input` unless `dtype` is given; sums and products of integers are int64.

Examples
--------
>>> import gradscope as gs
>>> x = gs.tensor([[1.0, 5.0], [3.0, 4.0]])
>>> mask = gs.tensor([[True, False], [True, True]])
>>> gs.masked.mean(x, 1, mask=mask)
tensor([1.0000, 3.5000])
>>> gs.masked.softmax(x, 1, mask=mask)
tensor([[1.0000, 0.0000],
        [0.2689, 0.7311]])
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .runtime.memory import dtype as dtypes
from .runtime.ops.families import PUBLIC
from .runtime.ops.linalg.matrix_norms import vector_norm
from .runtime.tensor import creation
from .runtime.tensor.tensor import Tensor

__all__ = [
    "amax",
    "amin",
    "argmax",
    "argmin",
    "cumprod",
    "cumsum",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "mean",
    "median",
    "norm",
    "normalize",
    "prod",
    "softmax",
    "softmin",
    "std",
    "sum",
    "var",
]

Dims = int | Sequence[int] | None

# --- what all share ---------------------------------------------------------------------------------------------------


def _dims(dim: Dims, ndim: int) -> tuple[int, ...]:
    """Return dimensions in their order.

    Raises
    ------
    IndexError
        If there is no such dimension.
    RuntimeError
        If one is given twice.
    """
    given = (dim,) if isinstance(dim, int) else tuple(dim or range(ndim))
    limit = max(ndim, 1)
    for place, d in enumerate(given):
        if not -limit <= d < limit:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-limit}, {limit - 1}], but got {d})"
            )
        if d in given[:place]:
            raise RuntimeError(f"dim={d} appears multiple times in the list of dims\nName each once.")
    return tuple(sorted(d % limit for d in given))


def _mask_of(input: Tensor, mask: Tensor) -> Tensor:
    """Return a mask as bools of the shape of `input`."""
    if mask.dim() > input.dim():
        raise IndexError(
            f"the mask has {mask.dim()} dimensions and the input {input.dim()}\nA mask broadcasts to the input's shape."
        )
    return mask.broadcast_to(input.shape).bool()


def _filled(input: Tensor, mask: Tensor | None, number: float) -> Tensor:
    """Return `input` with `number` in the places that do not count; all do without a mask."""
    if mask is None:
        return input
    return PUBLIC["where"](
        _mask_of(input, mask), input, creation.tensor(number, dtype=input.dtype, device=input.device)
    )


def _least(kind: Any) -> float:
    """Return the least number of a dtype, which no maximum is changed by."""
    if kind.is_floating_point or kind.is_complex:
        return -math.inf
    return dtypes.iinfo(kind).min


def _greatest(kind: Any) -> float:
    """Return the greatest number of a dtype, which no minimum is changed by."""
    return math.inf if kind.is_floating_point else dtypes.iinfo(kind).max


def _wide(input: Tensor, dtype: Any) -> Any:
    """Return the dtype of a sum or product: int64 for integers and bools, unless given."""
    if dtype is not None:
        return dtype
    return input.dtype if input.is_floating_point() or input.is_complex() else dtypes.int64


# --- reductions -------------------------------------------------------------------------------------------------------


def sum(input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Tensor:
    """Return sums.

    See Also
    --------
    mean, prod, sum

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.masked.sum(gs.tensor([1.0, 2.0, 3.0]), mask=gs.tensor([True, False, True]))
    tensor(4.)
    """
    return _filled(input, mask, 0).sum(_dims(dim, input.dim()), bool(keepdim), dtype=_wide(input, dtype))


def prod(input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Tensor:
    """Return products.

    See Also
    --------
    sum, prod

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.masked.prod(gs.tensor([1.0, 2.0, 3.0]), mask=gs.tensor([True, False, True]))
    tensor(3.)
    """
    result = _filled(input, mask, 1).to(_wide(input, dtype))
    for d in reversed(_dims(dim, input.dim())):
        result = result.prod(d, bool(keepdim))
    return result


def amax(input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Tensor:
    """Return maxima; of no elements the least number of the dtype.

    See Also
    --------
    amin, argmax, amax

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.masked.amax(gs.tensor([1.0, 2.0, 3.0]), 0, mask=gs.tensor([True, True, False]))
    tensor(2.)
    """
    found = _filled(input, mask, _least(input.dtype)).amax(_dims(dim, input.dim()), bool(keepdim))
    return found.to(dtype or input.dtype)


def amin(input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Tensor:
    """Return minima; of no elements the greatest number of the dtype.

    See Also
    --------
    amax, argmin, amin

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.masked.amin(gs.tensor([1.0, 2.0, 3.0]), 0, mask=gs.tensor([False, True, True]))
    tensor(2.)
    """
    found = _filled(input, mask, _greatest(input.dtype)).amin(_dims(dim, input.dim()), bool(keepdim))
    return found.to(dtype or input.dtype)


def argmax(
    input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Tensor:
    """Return where the maxima are, in the dtype of `input`, as PyTorch does; give ``dtype=gradscope.int64``.

    See Also
    --------
    argmin, argmax

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.masked.argmax(gs.tensor([1.0, 2.0, 3.0]), 0, mask=gs.tensor([True, True, False]))
    tensor(1.)
    """
    return _filled(input, mask, _least(input.dtype)).argmax(dim, bool(keepdim)).to(dtype or input.dtype)


def argmin(
    input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Tensor:
    """Return where the minima are, in the dtype of `input`, as PyTorch does; give ``dtype=gradscope.int64``.

    See Also
    --------
    argmax, argmin

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.masked.argmin(gs.tensor([1.0, 2.0, 3.0]), 0, mask=gs.tensor([False, True, True]))
    tensor(1.)
    """
    return _filled(input, mask, _greatest(input.dtype)).argmin(dim, bool(keepdim)).to(dtype or input.dtype)


def _count(input: Tensor, dims: tuple[int, ...], keepdim: bool, mask: Any) -> Tensor:
    """Return of how many elements each result is."""
    counted = creation.ones(input.shape, dtype="bool", device=input.device) if mask is None else _mask_of(input, mask)
    return counted.sum(dims, keepdim)


def mean(input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Tensor:
    """Return means; of no elements NaN.

    Raises
    ------
    ValueError
        If the dtype is one of integers.

    See Also
    --------
    sum, median, mean

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.masked.mean(gs.tensor([1.0, 2.0, 3.0]), mask=gs.tensor([True, False, True]))
    tensor(2.)
    """
    kind = input.dtype if dtype is None else dtype
    if not (kind.is_floating_point or kind.is_complex):
        source = "Input" if dtype is None else "Optional"
        raise ValueError(
            f"mean(): Could not infer output dtype. {source} dtype must be either a floating point or complex dtype. "
            f"Got: {kind}"
        )
    dims = _dims(dim, input.dim())
    total = sum(input, dims, keepdim=keepdim, dtype=kind, mask=mask)
    return total / _count(input, dims, bool(keepdim), mask)


def median(input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Tensor:
    """Return medians, the lower of two; NaN does not count.

    Raises
    ------
    ValueError
        If of a dtype without NaN there are no elements in a row.

    See Also
    --------
    mean, median

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.masked.median(gs.tensor([1.0, 2.0, 3.0]), 0, mask=gs.tensor([True, True, False]))
    tensor(1.)
    """
    axis = _dims(dim, input.dim())[0]
    if input.is_floating_point():
        return _filled(input, mask, math.nan).nanmedian(axis, keepdim).values
    found = _filled(input.float(), mask, math.nan).nanmedian(axis, keepdim).values
    if found.isnan().any():
        raise ValueError(
            "masked median expects no fully masked out rows if dtype is not floating point\nConvert it with .float()."
        )
    return found.to(dtype or input.dtype)


def norm(
    input: Tensor,
    ord: float | None = 2.0,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """Return norms of the order `ord` of vectors.

    See Also
    --------
    normalize, norm

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.masked.norm(gs.tensor([3.0, 4.0, 5.0]), 2, 0, mask=gs.tensor([True, True, False]))
    tensor(5.)
    """
    filled = _filled(input, mask, math.inf if ord == -math.inf else 0)
    order = 2.0 if ord is None else ord
    return vector_norm(filled, order, _dims(dim, input.dim()), bool(keepdim), dtype=dtype or input.dtype)


def var(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """Return variances: the sum of squares is divided by the number of elements less `correction`, which is 1.

    With ``unbiased=False`` the correction is 0.

    See Also
    --------
    std, var

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.masked.var(gs.tensor([1.0, 3.0, 9.0]), 0, mask=gs.tensor([True, True, False]))
    tensor(2.)
    """
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given\ncorrection=0 is unbiased=False.")
    if correction is None:
        correction = 0.0 if unbiased is False else 1.0
    kind = dtype or (input.dtype if input.is_floating_point() or input.is_complex() else dtypes.float32)
    dims = _dims(dim, input.dim())
    count = _count(input, dims, True, mask)
    apart = input - sum(input, dims, keepdim=True, dtype=kind, mask=mask) / count
    squares = sum(apart * apart.conj(), dims, keepdim=keepdim, dtype=kind, mask=mask)
    return (squares / (count.reshape(squares.shape) - correction).clamp_min(0)).to(kind)


def std(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """Return standard deviations: the roots of :func:`var`.

    See Also
    --------
    var, std

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.masked.std(gs.tensor([1.0, 3.0, 9.0]), 0, mask=gs.tensor([True, True, False]))
    tensor(1.4142)
    """
    return var(input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask).sqrt()


def logsumexp(input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Tensor:
    """Return logarithms of the sums of exponentials.

    See Also
    --------
    logaddexp, logsumexp

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.masked.logsumexp(gs.tensor([0.0, 0.0, 9.0]), 0, mask=gs.tensor([True, True, False]))
    tensor(0.6931)
    """
    found = _filled(input, mask, _least(input.dtype)).logsumexp(_dims(dim, input.dim()), keepdim)
    return found.to(dtype or input.dtype)


# --- elementwise and along a dimension --------------------------------------------------------------------------------


def logaddexp(
    input: Tensor, other: Tensor, *, dtype: Any = None, input_mask: Any = None, other_mask: Any = None
) -> Tensor:
    """Return the logarithm of the sum of exponentials, in which each tensor counts where its own mask is True.

    See Also
    --------
    logsumexp, logaddexp

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.masked.logaddexp(gs.zeros(2), gs.zeros(2))
    tensor([0.6931, 0.6931])
    """
    first, second = _filled(input, input_mask, -math.inf), _filled(other, other_mask, -math.inf)
    return PUBLIC["logaddexp"](first, second).to(dtype or input.dtype)


def cumsum(input: Tensor, dim: int, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """Return running sums.

    See Also
    --------
    cumprod, cumsum

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.masked.cumsum(gs.tensor([1.0, 2.0, 3.0]), 0, mask=gs.tensor([True, False, True]))
    tensor([1., 1., 4.])
    """
    kind = dtype or input.dtype
    return _filled(input, mask, 0).cumsum(_dims(dim, input.dim())[0], dtype=kind).to(kind)


def cumprod(input: Tensor, dim: int, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """Return running products.

    See Also
    --------
    cumsum, cumprod

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.masked.cumprod(gs.tensor([1.0, 2.0, 3.0]), 0, mask=gs.tensor([True, False, True]))
    tensor([1., 1., 3.])
    """
    kind = dtype or input.dtype
    return _filled(input, mask, 1).cumprod(_dims(dim, input.dim())[0], dtype=kind).to(kind)


def softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """Return the softmax along a dimension; 0 where the mask is False.

    See Also
    --------
    log_softmax, softmin, softmax

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.masked.softmax(gs.tensor([1.0, 1.0, 3.0]), 0, mask=gs.tensor([True, True, False]))
    tensor([0.5000, 0.5000, 0.0000])
    """
    filled = _filled(input, mask, _least(input.dtype))
    return filled.softmax(_dims(dim, input.dim())[0], dtype=dtype or input.dtype)


def log_softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """Return the logarithm of :func:`softmax`.

    See Also
    --------
    softmax, log_softmax

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.masked.log_softmax(gs.tensor([1.0, 1.0]), 0, mask=gs.tensor([True, True]))
    tensor([-0.6931, -0.6931])
    """
    filled = _filled(input, mask, _least(input.dtype))
    return filled.log_softmax(_dims(dim, input.dim())[0], dtype=dtype or input.dtype)


def softmin(input: Tensor, dim: int, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """Return the softmax of the negative of `input` along a dimension.

    See Also
    --------
    softmax, nn.functional.softmin

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.masked.softmin(gs.tensor([1.0, 1.0, 3.0]), 0, mask=gs.tensor([True, True, False]))
    tensor([0.5000, 0.5000, 0.0000])
    """
    filled = _filled(input, mask, _greatest(input.dtype))
    return (-filled).softmax(_dims(dim, input.dim())[0], dtype=dtype or input.dtype)


def normalize(
    input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype: Any = None, mask: Any = None
) -> Tensor:
    """Return `input` divided by its norm along a dimension, or by `eps` where that is larger.

    See Also
    --------
    norm, nn.functional.normalize

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.masked.normalize(gs.tensor([3.0, 4.0, 5.0]), 2, 0, mask=gs.tensor([True, True, False]))
    tensor([0.6000, 0.8000, 0.0000])
    """
    size = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return _filled(input, mask, 0) / size.clamp_min(eps)

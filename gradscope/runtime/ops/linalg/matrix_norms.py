"""Norms of vectors and matrices."""

from __future__ import annotations

import math

from ...tensor.tensor import Tensor
from ..declaration.annotations import Array, Dims, DType, NormOrder
from ..declaration.registry import OPERATORS, public
from ..execution.inplace_and_out import into
from ..shape.reshape import axis_of
from .matrix_checks import need_float
from .svd_and_eigen import svdvals

__all__ = ["matrix_norm", "norm", "vector_norm"]


@public(namespace="linalg")
def vector_norm(
    x: Tensor,
    ord: NormOrder = 2,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: DType = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return the norm of order `ord` of all elements, or of those along dimension(s) `dim`.

    Parameters
    ----------
    ord : number
        Infinity and 0 (how many are not zero) too.
    dtype : dtype, optional
        What `x` is converted to first.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.linalg.vector_norm(gs.tensor([3.0, 4.0]))
    tensor(5.)
    """
    source = x if dtype is None else x.to(dtype)
    return OPERATORS["linalg_vector_norm"].function(source, ord, dim, keepdim, out=out)


@public(namespace="linalg")
def matrix_norm(
    A: Tensor,
    ord: NormOrder = "fro",
    dim: Dims = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: DType = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return the norm of matrices.

    Parameters
    ----------
    ord : {"fro", "nuc", 2, -2, 1, -1, inf, -inf}
        Frobenius; the sum, the largest or the smallest of the singular values; the extreme of the sums of columns
        (1, -1) or rows (inf, -inf).
    dim : pair of int
        The dimensions of the matrices.
    dtype : dtype, optional
        What `A` is converted to first.

    Raises
    ------
    RuntimeError
        For another order, or if `A` is not of a floating point or complex dtype.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.linalg.matrix_norm(gs.tensor([[3.0, 0.0], [0.0, 4.0]]))
    tensor(5.)
    """
    if out is not None:
        return into(out, "linalg.matrix_norm", [A], lambda: matrix_norm(A, ord, dim, keepdim, dtype=dtype), exact=True)
    rows, columns = _matrix_dims(A, dim)
    if ord not in ("fro", "nuc", 2, -2, 1, -1, math.inf, -math.inf):
        raise RuntimeError(
            f"linalg.matrix_norm: Order {ord} not supported.\nUse 'fro', 'nuc', 2, -2, 1, -1, inf or -inf."
        )
    source = A if dtype is None else A.to(dtype)
    if ord == "fro":
        return vector_norm(source, 2, dim, keepdim)
    if ord in ("nuc", 2, -2):
        return _norm_of_singular_values(source, ord, (rows, columns), keepdim)
    summed, chosen = (rows, columns) if ord in (1, -1) else (columns, rows)
    sums = vector_norm(source, 1, summed, keepdim)
    if not keepdim and chosen > summed:
        chosen -= 1
    return _extreme(sums, ord, chosen, keepdim)


def _extreme(values: Array, ord: NormOrder, dim: int, keepdim: bool) -> Array:
    """Return the largest or smallest of values that are not negative: the largest of none is 0."""
    if ord < 0:
        return values.amin(dim, keepdim)
    shape = tuple(values.shape)
    if shape[dim]:
        return values.amax(dim, keepdim)
    dim %= len(shape)
    return values.new_zeros((*shape[:dim], *([1] if keepdim else []), *shape[dim + 1 :]))


def _matrix_dims(A: Array, dim: Dims) -> tuple[int, int]:
    """Return the two dimensions, counted from the front, after PyTorch's checks."""
    name = "linalg.matrix_norm"
    if A.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    need_float(name, A._array)
    pair = (dim,) if isinstance(dim, int) else tuple(dim)
    if len(pair) != 2:
        raise RuntimeError(f"{name}: dim must be a 2-tuple. Got {' '.join(map(str, pair))}")
    first, second = (axis_of(axis, A.ndim) for axis in pair)
    if first == second:
        raise RuntimeError(f"{name}: dims must be different. Got ({pair[0]}, {pair[1]})")
    return first, second


def _norm_of_singular_values(A: Array, ord: NormOrder, dims: tuple[int, int], keepdim: bool) -> Array:
    if dims != (A.ndim - 2, A.ndim - 1):
        A = A.movedim(dims, (-2, -1))
    values = svdvals(A)
    if ord == "nuc":
        found = values.sum(-1, keepdim)
    else:
        found = _extreme(values, ord, -1, keepdim)
    return found.unsqueeze(-1).movedim((-2, -1), dims) if keepdim else found


@public(namespace="linalg")
def norm(
    A: Tensor,
    ord: NormOrder = None,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: DType = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return a vector or matrix norm, as `ord` and `dim` say; without them, the 2-norm of all elements.

    Parameters
    ----------
    ord : number, "fro" or "nuc", optional
        Of a vector the p of its p-norm. Of a matrix "fro" (Frobenius), "nuc" (the sum of the singular values), 2 and -2
        (the largest and the smallest of them), 1 and -1 (of the sums of columns), inf and -inf (of those of rows).
    dim : int or pair of int, optional
        One dimension of vectors, or the two of matrices.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.linalg.norm(gs.tensor([3.0, 4.0]))
    tensor(5.)
    """
    if out is not None:
        return into(out, "linalg.norm", [A], lambda: norm(A, ord, dim, keepdim, dtype=dtype), exact=True)
    dims = None if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    if dims is not None and len(dims) not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dims)}")
    if ord is None:
        return vector_norm(A, 2, dim, keepdim, dtype=dtype)
    if dims is None and A.ndim not in (1, 2):
        raise RuntimeError(
            f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {A.ndim}D."
        )
    count = A.ndim if dims is None else len(dims)
    if count == 1 and not isinstance(ord, str):
        return vector_norm(A, ord, dim, keepdim, dtype=dtype)
    return matrix_norm(A, ord, (0, 1) if dims is None else dims, keepdim, dtype=dtype)

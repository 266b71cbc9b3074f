"""Linear algebra under PyTorch's names: norms, determinants, inverses and products.

Examples
--------
>>> import gradscope as gs
>>> gs.linalg.norm(gs.tensor([3.0, 4.0]))
tensor(5.)
>>> gs.linalg.inv(gs.tensor([[2.0, 0.0], [0.0, 4.0]]))
tensor([[0.5000, 0.0000],
        [0.0000, 0.2500]])
"""

from __future__ import annotations

import math
from typing import Any

from .runtime.ops.catalogue import PUBLIC
from .runtime.ops.errors import LinAlgError
from .runtime.ops.registry import OPERATORS
from .runtime.ops.writes import into
from .runtime.tensor import Tensor

__all__ = [
    "LinAlgError",
    "cross",
    "det",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "norm",
    "slogdet",
    "solve",
    "vector_norm",
]

det = PUBLIC["det"]
slogdet = PUBLIC["slogdet"]
matmul = PUBLIC["matmul"]
matrix_power = PUBLIC["matrix_power"]


def inv(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the inverse of square matrices.

    Raises
    ------
    LinAlgError
        If a matrix is singular.
    RuntimeError
        If it is not square.
    """
    return OPERATORS["inverse"].function(A, out=out)


def solve(A: Tensor, B: Tensor, *, left: bool = True, out: Tensor | None = None) -> Tensor:
    """Return the solution X of ``A @ X = B``, or of ``X @ A = B``.

    Parameters
    ----------
    A : Tensor
        Square matrices of shape (..., n, n).
    B : Tensor
        Of shape (..., n, k); or (n) or that of `A` without its last dimension, for vectors.
    left : bool
        Whether `A` stands on the left.

    Raises
    ------
    LinAlgError
        If a matrix is singular.
    RuntimeError
        If the shapes or dtypes do not fit.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.linalg.solve(gs.tensor([[2.0, 0.0], [0.0, 4.0]]), gs.tensor([2.0, 2.0]))
    tensor([1.0000, 0.5000])
    """
    if left:
        return OPERATORS["linalg_solve"].function(A, B, out=out)
    if out is not None:
        return into(out, "linalg.solve", [A, B], lambda: solve(A, B, left=False))
    return OPERATORS["linalg_solve"].function(A.mT, B.mT).mT


def cross(input: Tensor, other: Tensor, *, dim: int = -1, out: Tensor | None = None) -> Tensor:
    """Return the cross products of vectors of three elements along `dim`."""
    return OPERATORS["linalg_cross"].function(input, other, dim=dim, out=out)


def vector_norm(
    x: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Tensor | None = None
) -> Tensor:
    """Return the norm of order `ord` of all elements, or of those along dimension(s) `dim`.

    Parameters
    ----------
    x : Tensor
    ord : number
        Infinity and 0 (how many are not zero) too.
    dim : int or sequence of int, optional
    keepdim : bool
    dtype : dtype, optional
        What `x` is converted to first.
    """
    source = x if dtype is None else x.to(dtype)
    return OPERATORS["linalg_vector_norm"].function(source, ord, dim, keepdim, out=out)


def matrix_norm(
    A: Tensor,
    ord: Any = "fro",
    dim: Any = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: Any = None,
) -> Tensor:
    """Return the norm of matrices: Frobenius, or the extreme of the sums of rows (inf, -inf) or columns (1, -1).

    Raises
    ------
    RuntimeError
        For another order: those of singular values (2, -2, "nuc") are not among them.
    """
    source = A if dtype is None else A.to(dtype)
    if source.ndim < 2:
        raise RuntimeError("linalg.matrix_norm: The input tensor A must have at least 2 dimensions.")
    if ord == "fro":
        return vector_norm(source, 2, dim, keepdim)
    if ord not in (1, -1, math.inf, -math.inf):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.\nUse 'fro', 1, -1, inf or -inf.")
    rows, columns = (axis % source.ndim for axis in dim)
    summed, chosen = (rows, columns) if ord in (1, -1) else (columns, rows)
    sums = vector_norm(source, 1, summed, True)
    extreme = sums.amax(chosen, True) if ord > 0 else sums.amin(chosen, True)
    return extreme if keepdim else extreme.squeeze((rows, columns))


def norm(
    A: Tensor,
    ord: Any = None,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
) -> Tensor:
    """Return a vector or matrix norm, as `ord` and `dim` say; without them, the 2-norm of all elements.

    Parameters
    ----------
    A : Tensor
    ord : number or "fro", optional
    dim : int or pair of int, optional
        One dimension of vectors, or the two of matrices.
    """
    pair = dim is not None and not isinstance(dim, int) and len(dim) == 2
    if ord is None or (not pair and ord != "fro" and (dim is not None or A.ndim == 1)):
        return vector_norm(A, 2 if ord is None else ord, dim, keepdim, dtype=dtype)
    if dim is None and A.ndim != 2:
        raise RuntimeError(
            f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {A.ndim}D."
        )
    return matrix_norm(A, ord, (0, 1) if dim is None else dim, keepdim, dtype=dtype)

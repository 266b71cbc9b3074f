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
from .runtime.ops.eigen import eig, eigh, eigvals, eigvalsh, svd, svdvals
from .runtime.ops.errors import LinAlgError
from .runtime.ops.factorizations import householder_product, qr
from .runtime.ops.lu import lu, lu_factor, lu_factor_ex, lu_solve
from .runtime.ops.matrix_checks import need_float
from .runtime.ops.matrix_products import multi_dot, vander, vecdot
from .runtime.ops.registry import OPERATORS
from .runtime.ops.shapes import axis_of
from .runtime.ops.solvers import cond, inv_ex, lstsq, matrix_rank, pinv, solve_ex, tensorinv, tensorsolve
from .runtime.ops.triangular import cholesky, cholesky_ex, solve_triangular
from .runtime.ops.writes import into
from .runtime.tensor import Tensor

__all__ = [
    "LinAlgError",
    "cholesky",
    "cholesky_ex",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "householder_product",
    "inv",
    "inv_ex",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_factor_ex",
    "lu_solve",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_ex",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensorinv",
    "tensorsolve",
    "vander",
    "vecdot",
    "vector_norm",
]

det = PUBLIC["det"]
matmul = PUBLIC["matmul"]
matrix_exp = PUBLIC["matrix_exp"]
matrix_power = PUBLIC["matrix_power"]


def slogdet(A: Tensor, *, out: Any = None) -> Any:
    """Return sign and logarithm of the absolute value of the determinant of square matrices."""
    return OPERATORS["linalg_slogdet"].function(A, out=out)


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """View the diagonals of matrices, as :func:`gradscope.diagonal` does, in their last two dimensions."""
    return OPERATORS["diagonal"].function(A, offset, dim1, dim2)


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
    return OPERATORS["linalg_solve"].function(A, B, left=left, out=out)


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
    out: Tensor | None = None,
) -> Tensor:
    """Return the norm of matrices.

    Parameters
    ----------
    A : Tensor
    ord : {"fro", "nuc", 2, -2, 1, -1, inf, -inf}
        Frobenius; the sum, the largest or the smallest of the singular values; the extreme of the sums of columns
        (1, -1) or rows (inf, -inf).
    dim : pair of int
        The dimensions of the matrices.
    keepdim : bool
    dtype : dtype, optional
        What `A` is converted to first.

    Raises
    ------
    RuntimeError
        For another order, or if `A` is not of a floating point or complex dtype.
    """
    if out is not None:
        return into(out, "linalg.matrix_norm", [A], lambda: matrix_norm(A, ord, dim, keepdim, dtype=dtype))
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
    return sums.amax(chosen, keepdim) if ord > 0 else sums.amin(chosen, keepdim)


def _matrix_dims(A: Tensor, dim: Any) -> tuple[int, int]:
    """Return the two dimensions, counted from the front, after PyTorch's checks."""
    name = "linalg.matrix_norm"
    if A.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    need_float(name, A._array)
    pair = (dim,) if isinstance(dim, int) else tuple(dim)
    if len(pair) != 2:
        raise RuntimeError(f"{name}: dim must be a 2-tuple. Got {', '.join(map(str, pair))}")
    first, second = (axis_of(axis, A.ndim) for axis in pair)
    if first == second:
        raise RuntimeError(f"{name}: dims must be different. Got ({pair[0]}, {pair[1]})")
    return first, second


def _norm_of_singular_values(A: Tensor, ord: Any, dims: tuple[int, int], keepdim: bool) -> Tensor:
    if dims != (A.ndim - 2, A.ndim - 1):
        A = A.movedim(dims, (-2, -1))
    values = svdvals(A)
    if ord == "nuc":
        found = values.sum(-1, keepdim)
    else:
        found = values.amax(-1, keepdim) if ord > 0 else values.amin(-1, keepdim)
    return found.unsqueeze(-1).movedim((-2, -1), dims) if keepdim else found


def norm(
    A: Tensor,
    ord: Any = None,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return a vector or matrix norm, as `ord` and `dim` say; without them, the 2-norm of all elements.

    Parameters
    ----------
    A : Tensor
    ord : number, "fro" or "nuc", optional
    dim : int or pair of int, optional
        One dimension of vectors, or the two of matrices.
    """
    if out is not None:
        return into(out, "linalg.norm", [A], lambda: norm(A, ord, dim, keepdim, dtype=dtype))
    dims = None if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    if isinstance(ord, str):
        return matrix_norm(A, ord, (0, 1) if dims is None else dims, keepdim, dtype=dtype)
    if ord is None:
        return vector_norm(A, 2, dim, keepdim, dtype=dtype)
    if dims is not None and len(dims) not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dims)}")
    if dims is None and A.ndim not in (1, 2):
        raise RuntimeError(
            f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {A.ndim}D."
        )
    if len(dims) == 1 if dims is not None else A.ndim == 1:
        return vector_norm(A, ord, dim, keepdim, dtype=dtype)
    return matrix_norm(A, ord, (0, 1) if dims is None else dims, keepdim, dtype=dtype)

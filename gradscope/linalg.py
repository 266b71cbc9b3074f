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

from typing import Any

from .runtime.ops.catalogue import PUBLIC
from .runtime.ops.eigen import eig, eigh, eigvals, eigvalsh, svd, svdvals
from .runtime.ops.errors import LinAlgError
from .runtime.ops.factorizations import householder_product, qr
from .runtime.ops.lu import lu, lu_factor, lu_factor_ex, lu_solve
from .runtime.ops.matrix_norms import matrix_norm, norm, vector_norm
from .runtime.ops.matrix_products import multi_dot, vander, vecdot
from .runtime.ops.registry import OPERATORS
from .runtime.ops.solvers import cond, inv_ex, lstsq, matrix_rank, pinv, solve_ex, tensorinv, tensorsolve
from .runtime.ops.triangular import cholesky, cholesky_ex, solve_triangular
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

"""Singular value decompositions of nearly low rank, by random projections.

References
----------
N. Halko, P.-G. Martinsson and J. A. Tropp, "Finding structure with randomness: probabilistic algorithms for
constructing approximate matrix decompositions", SIAM Review 53 (2011): algorithms 4.4 and 5.1.
"""

from __future__ import annotations

from ...tensor.tensor import Tensor
from ..declaration.annotations import Array
from ..declaration.registry import public
from ..random import random
from .qr import qr
from .svd_and_eigen import svd


def _basis(A: Array, q: int, niter: int) -> Array:
    """Return orthonormal columns that nearly span those of `A`: algorithm 4.4, subspace iteration."""
    Q = qr(A @ random.randn(A.shape[-1], q, dtype=A.dtype, device=A.device)).Q
    for _ in range(niter):
        Q = qr(A @ qr(A.mH @ Q).Q).Q
    return Q


@public(method=False)
def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return U, S and V of ``A - M``, nearly ``U @ diag(S) @ V.mH``, by random projections.

    Parameters
    ----------
    A : Tensor
        Of shape (..., m, n).
    q : int, optional
        How many singular values there are to be: somewhat more than the rank.
    niter : int, optional
        How many times the space is refined.
    M : Tensor, optional
        What is taken off, such as the mean; it broadcasts to `A`.

    Returns
    -------
    U, S, V : Tensor
        Of shapes (..., m, q), (..., q) and (..., n, q).

    Notes
    -----
    Numbers are drawn: seed with :func:`manual_seed` for the same result. :func:`linalg.svd` is quicker for matrices of
    moderate size.

    Examples
    --------
    >>> import gradscope as gs
    >>> A = gs.outer(gs.arange(1.0, 5.0), gs.arange(1.0, 4.0))
    >>> U, S, V = gs.svd_lowrank(A, q=1)
    >>> gs.allclose(U @ gs.diag(S) @ V.mH, A, atol=1e-4)
    True
    """
    apart = A if M is None else A - M
    wide = apart.shape[-2] < apart.shape[-1]
    tall = apart.mH if wide else apart
    Q = _basis(tall, 6 if q is None else q, 2 if niter is None else niter)
    U, S, Vh = svd(Q.mH @ tall, full_matrices=False)
    left, right = Q @ U, Vh.mH
    return (right, S, left) if wide else (left, S, right)


@public(method=False)
def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """Return the principal components of the rows of `A` as U, S and V of :func:`svd_lowrank`.

    The columns of V are the principal directions, and ``S ** 2 / (m - 1)`` the variances along them.

    Parameters
    ----------
    A : Tensor
        Of shape (..., m, n): m samples of n features.
    q : int, optional
        How many components; the least of 6, m and n unless given.
    center : bool
        Whether the means of the features are taken off.
    niter : int
        How many times the space is refined.

    Raises
    ------
    ValueError
        If `q` is more than m or n, or a number is negative.

    Examples
    --------
    >>> import gradscope as gs
    >>> u, s, v = gs.pca_lowrank(gs.randn(6, 4), q=2)
    >>> u.shape, s.shape, v.shape
    (gradscope.Size([6, 2]), gradscope.Size([2]), gradscope.Size([4, 2]))
    """
    m, n = A.shape[-2:]
    count = min(6, m, n) if q is None else q
    if not 0 <= count <= min(m, n):
        raise ValueError(
            f"q(={count}) must be non-negative integer and not greater than min(m, n)={min(m, n)}\n"
            f"The shape is {list(A.shape)}."
        )
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer\nGive 2 or more for close singular values.")
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, count, niter)

"""Functions of matrices under the names that stood in PyTorch before ``torch.linalg``, and still do."""

from __future__ import annotations

from collections import namedtuple

from ... import autocast, state
from ...memory import device as devices
from ...tensor.tensor import Tensor
from ..declaration.annotations import Results
from ..declaration.registry import METHODS, OPERATORS, public
from .lu import into_each, lu_factor_ex
from .lu import lu_solve as linalg_lu_solve
from .matrix_exponential import matrix_exp as linalg_matrix_exp
from .matrix_products import multi_dot
from .pinv_and_lstsq import pinv
from .qr import householder_product
from .qr import qr as linalg_qr
from .svd_and_eigen import svd as linalg_svd
from .svd_and_eigen import svdvals

_Svd = namedtuple("svd", ["U", "S", "V"])  # type: ignore[name-match]
_Qr = namedtuple("qr", ["Q", "R"])  # type: ignore[name-match]
_LuParts = namedtuple("lu_unpack", ["P", "L", "U"])  # type: ignore[name-match]


@public
def svd(self: Tensor, some: bool = True, compute_uv: bool = True, *, out: Tensor | None = None) -> Results:
    """Return U, S and V of ``self = U @ diag(S) @ V.mH``; see :func:`linalg.svd`, which returns ``V.mH``.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.svd(gs.tensor([[3.0, 0.0], [0.0, 4.0]])).S
    tensor([4., 3.])
    """
    shape = self._array.shape
    if len(shape) < 2:
        raise RuntimeError(
            f"linalg.svd: input should have at least 2 dimensions, but has {len(shape)} dimensions instead"
        )
    if compute_uv:
        U, S, Vh = linalg_svd(self, not some)
        found = _Svd(U, S, Vh.mH)
    else:
        U, V = (self.new_zeros((*shape[:-2], size, size)) for size in shape[-2:])
        found = _Svd(U, svdvals(self), V)
    return found if out is None else into_each(out, "svd", [self], found)


@public
def qr(self: Tensor, some: bool = True, *, out: Tensor | None = None) -> Results:
    """Return the QR decomposition; see :func:`linalg.qr`.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.tensor([[2.0, 0.0], [0.0, 3.0]]).qr()[1].abs()
    tensor([[2., 0.],
            [0., 3.]])
    """
    found = _Qr(*linalg_qr(self, "reduced" if some else "complete"))
    return found if out is None else into_each(out, "qr", [self], found)


@public
def pinverse(self: Tensor, rcond: float = 1e-15) -> Tensor:
    """Return the pseudoinverse; see :func:`linalg.pinv`.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.pinverse(gs.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    if state.casting and autocast.covers("pinverse", (self,)):
        return autocast.call("pinverse", pinverse, self, rcond)
    return pinv(self, rtol=rcond)


@public(alias=("linalg.matrix_exp",))
def matrix_exp(self: Tensor) -> Tensor:
    """Return the exponential of square matrices, which solves ``X' = self @ X``.

    Raises
    ------
    RuntimeError
        If they are not square, or not of a floating point or complex dtype.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.matrix_exp(gs.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    return linalg_matrix_exp(self)


@public(method=False)
def chain_matmul(*matrices: Tensor, out: Tensor | None = None) -> Tensor:
    """Return the product of matrices; see :func:`linalg.multi_dot`.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.chain_matmul(gs.ones(2, 3), gs.ones(3, 4)).shape
    gradscope.Size([2, 4])
    """
    factors = matrices[0] if len(matrices) == 1 and not hasattr(matrices[0], "_array") else matrices
    if len(factors) == 1:
        return factors[0]
    return multi_dot(factors, out=out)


@public
def orgqr(self: Tensor, input2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the first columns of a product of Householder reflections; see :func:`linalg.householder_product`.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.orgqr(gs.tensor([[1.0], [0.0]]), gs.tensor([2.0]))
    tensor([[-1.],
            [-0.]])
    """
    return householder_product(self, input2, out=out)


@public
def lu(self: Tensor, pivot: bool = True, get_infos: bool = False, out: Tensor | None = None) -> Results:
    """Return LU factors in one tensor, and pivots; see :func:`linalg.lu_factor`.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.tensor([[2.0, 0.0], [0.0, 3.0]]).lu()[1]
    tensor([1, 2], dtype=gradscope.int32)
    """
    LU, pivots, infos = lu_factor_ex(self, pivot=pivot, check_errors=not get_infos)
    found = (LU, pivots, infos) if get_infos else (LU, pivots)
    return found if out is None else into_each(out, "lu", [self], found)


@public
def lu_solve(self: Tensor, LU_data: Tensor, LU_pivots: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return X of ``A @ X = self``, given the LU factors of A; see :func:`linalg.lu_solve`.

    Examples
    --------
    >>> import gradscope as gs
    >>> lu, pivots = gs.linalg.lu_factor(gs.tensor([[2.0, 0.0], [0.0, 4.0]]))
    >>> gs.lu_solve(gs.tensor([[2.0], [4.0]]), lu, pivots)
    tensor([[1.],
            [1.]])
    """
    return linalg_lu_solve(LU_data, LU_pivots, self, out=out)


@public(method=False)
def lu_unpack(
    LU_data: Tensor,
    LU_pivots: Tensor,
    unpack_data: bool = True,
    unpack_pivots: bool = True,
    *,
    out: Tensor | None = None,
) -> Results:
    """Return P, L and U, given LU factors in one tensor and their pivots.

    Parameters
    ----------
    LU_data, LU_pivots : Tensor
        From :func:`linalg.lu_factor`.
    unpack_data, unpack_pivots : bool
        Whether L and U, and P, are wanted; what is not is empty.

    Examples
    --------
    >>> import gradscope as gs
    >>> lu, pivots = gs.linalg.lu_factor(gs.tensor([[1.0, 2.0], [3.0, 4.0]]))
    >>> gs.lu_unpack(lu, pivots)[2]
    tensor([[3.0000, 4.0000],
            [0.0000, 0.6667]])
    """
    L, U, P = OPERATORS["lu_parts"].function(LU_data, LU_pivots, unpack_data, unpack_pivots)
    found = _LuParts(P, L, U)
    return found if out is None else into_each(out, "lu_unpack", [LU_data], found)


@public(method=False)
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """Return the Vandermonde matrix of a vector: its powers from N - 1 down to 0, or from 0 up.

    Parameters
    ----------
    N : int, optional
        How many powers; the length of the vector unless given.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.vander(gs.tensor([1, 2, 3]))
    tensor([[1, 1, 1],
            [4, 2, 1],
            [9, 3, 1]])
    """
    if x._array.ndim != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    count = x._array.shape[0] if N is None else N
    if count < 0:
        raise RuntimeError("N must be non-negative.")
    xp = devices.array_module(x._array)
    integers = x._dtype.kind in "iub"
    kind = "int64" if integers else x._dtype
    result: Tensor = type(x)._wrap(xp.ones((x._array.shape[0], count), dtype=kind))
    if count > 1:
        result[:, 1:] = METHODS["unsqueeze"](x, 1)
        result[:, 1:] = METHODS["cumprod"](result[:, 1:].clone(), 1)
    return result if increasing else METHODS["flip"](result, (1,))

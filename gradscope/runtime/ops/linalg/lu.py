"""LU factors by elimination with partial pivoting, and what is solved with them."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from functools import partial
from math import prod

import numpy

from ...tensor.tensor import Tensor
from ..declaration.annotations import Argument, Array, Cases, Gradient, Make, Namespace, Out, Results, Shape
from ..declaration.references import each_matrix, solved
from ..declaration.registry import OPERATORS, operator, public
from ..declaration.samples import dominant
from ..execution import inplace_and_out
from ..execution.bare_functions import conj
from . import lapack
from .cholesky_and_triangular import triangular_solution
from .matrix_checks import adjoint as _adjoint
from .matrix_checks import (
    batch_of,
    first_failure,
    need_fitting,
    need_matrices,
    need_one_dtype,
    need_square,
    refuse_low,
)

__all__ = ["lu", "lu_factor", "lu_factor_ex", "lu_solve"]

_PANEL = 24
_FEW = 50
"""Below as many matrices, rows are put in order quicker one matrix after another than all together."""


def lu_in_place(xp: Namespace, A: Array) -> tuple[Array, Array, Array]:
    """Return both LU factors in one array, the pivots as LAPACK counts them, and where the first one is 0."""
    return lapack.lu(A) if lapack.is_quicker(A) else _eliminated(xp, A)


def _eliminated(xp: Namespace, A: Array) -> tuple[Array, Array, Array]:
    """Do the same to all matrices of a batch at once: Gaussian elimination, a panel of columns at a time."""
    m, n = A.shape[-2:]
    batch, k = A.shape[:-2], min(m, n)
    count = prod(batch)
    LU = xp.array(A.reshape(count, m, n), order="C", copy=True)
    pivots = xp.zeros((count, k), dtype="int32")
    rows, first = LU.reshape(count * m, n), xp.arange(count) * m
    for start in range(0, k, _PANEL):
        stop = min(start + _PANEL, k)
        for j in range(start, stop):
            _eliminate(xp, LU, rows, first, pivots, j, stop)
        if stop < n:
            panel, right = LU[:, start:stop, start:stop], LU[:, start:stop, stop:]
            right[...] = triangular_solution(xp, panel, right, False, True)
            LU[:, stop:, stop:] -= xp.matmul(LU[:, stop:, start:stop], LU[:, start:stop, stop:])
    zero = xp.diagonal(LU, 0, -2, -1) == 0
    place = zero.argmax(axis=-1) + 1 if k else xp.zeros(count, dtype="int64")
    infos = xp.where(zero.any(axis=-1), place, xp.zeros_like(place)).astype("int32")
    pivots += 1  # LAPACK counts from 1
    return LU.reshape(A.shape), pivots.reshape(*batch, k), infos.reshape(batch)


def _eliminate(xp: Namespace, LU: Array, rows: Array, first: Array, pivots: Array, j: int, stop: int) -> None:
    """Bring the largest element of column `j` to the diagonal and clear what is below it, in the columns of a panel.

    `rows` are those of all matrices, one below the other; `first` says where each matrix starts.
    """
    column = LU[:, j:, j]
    weight = abs(column) if LU.dtype.kind == "f" else abs(column.real) + abs(column.imag)  # as LAPACK weighs
    place = weight.argmax(axis=-1)
    place += j
    pivots[:, j] = place
    place += first
    top, chosen = LU[:, j], rows.take(place, axis=0)
    rows[place] = top
    top[...] = chosen
    pivot, below = chosen[:, j, None], LU[:, j + 1 :, j]
    below /= pivot + (pivot == 0)  # of a column of zeros nothing is left to clear
    if j + 1 < stop:
        LU[:, j + 1 :, j + 1 : stop] -= below[:, :, None] * chosen[:, None, j + 1 : stop]


def row_order(xp: Namespace, pivots: Array, size: int) -> Array:
    """Return the numbers of the rows in the order into which the pivots' exchanges bring them."""
    batch, k = pivots.shape[:-1], pivots.shape[-1]
    count = prod(batch)
    if xp is numpy and count < _FEW:
        orders = [_exchanged(swaps, size) for swaps in pivots.reshape(count, k).tolist()]
        return numpy.array(orders, dtype="int64").reshape(*batch, size)
    swaps = pivots.reshape(count, k).astype("int64") - 1
    order = xp.zeros((count, size), dtype="int64") + xp.arange(size)
    matrices = xp.arange(count)
    for j in range(k):
        chosen = order[matrices, swaps[:, j]]
        order[matrices, swaps[:, j]] = order[:, j]
        order[:, j] = chosen
    return order.reshape(*batch, size)


def _exchanged(swaps: list[int], size: int) -> list[int]:
    order = list(range(size))
    for j, swap in enumerate(swaps):
        order[j], order[swap - 1] = order[swap - 1], order[j]
    return order


def reordered(xp: Namespace, order: Array, B: Array) -> Array:
    """Return the rows of matrices in an order."""
    order, B = batch_of(xp, order[..., None], B)
    return xp.take_along_axis(B, order, axis=-2)


def permutation(xp: Namespace, pivots: Array, size: int, kind: numpy.dtype) -> Array:
    """Return the matrices P of ``P @ L @ U`` that the pivots describe."""
    return (xp.arange(size)[:, None] == row_order(xp, pivots, size)[..., None, :]).astype(kind)


def _parts(xp: Namespace, LU: Array) -> tuple[Array, Array]:
    k = min(LU.shape[-2:])
    L = xp.tril(LU[..., :k], -1) + xp.eye(LU.shape[-2], k, dtype=LU.dtype)
    return L, xp.triu(LU[..., :k, :])


def _lu_gradient(gL: Array, gU: Array, P: Array, L: Array, U: Array, F: Namespace) -> Array:
    """Return the gradient of ``A = P @ L @ U`` (M. B. Giles 2008 for square matrices; the rest follows from A's parts).

    A wide matrix has U = [U1, U2] with U2 = L^-1 P^T A2, a tall one L = [L1, L2] with L2 = A2 U^-1.
    """
    rows, columns = L.shape[-2], U.shape[-1]
    k = min(rows, columns)
    L1, U1 = L[..., :k, :], U[..., :k]
    lower = None if gL is None else F.matmul(_adjoint(L1, F), gL[..., :k, :])
    upper = None if gU is None else F.matmul(gU[..., :k], _adjoint(U1, F))
    if rows < columns and gU is not None:
        rest = F.matmul(gU[..., k:], _adjoint(U[..., k:], F))
        lower = -rest if lower is None else lower - rest
    if rows > columns and gL is not None:
        rest = F.matmul(_adjoint(L[..., k:, :], F), gL[..., k:, :])
        upper = -rest if upper is None else upper - rest
    halves = [F.tril(lower, -1)] if lower is not None else []
    halves += [F.triu(upper)] if upper is not None else []
    inner = halves[0] if len(halves) == 1 else halves[0] + halves[1]

    def after_lower(x: Array) -> Array:
        return F.linalg_solve_triangular(_adjoint(L1, F), x, upper=True, unitriangular=True)

    def before_upper(x: Array) -> Array:
        return F.linalg_solve_triangular(_adjoint(U1, F), x, upper=False, left=False)

    found = before_upper(after_lower(inner))
    if rows > columns:
        found = F.cat([found, F.zeros_like(L[..., k:, :]) if gL is None else before_upper(gL[..., k:, :])], -2)
    found = F.matmul(P, found)
    if rows < columns:
        rest = F.zeros_like(U[..., k:]) if gU is None else F.matmul(P, after_lower(gU[..., k:]))
        found = F.cat([found, rest], -1)
    return found


def _need_lu(name: str, A: Array, pivot: bool) -> None:
    if A.ndim < 2:
        raise RuntimeError(f"{name}: Expected tensor with 2 or more dimensions. Got size: {list(A.shape)} instead")
    refuse_low("lu_cpu", A)
    if not pivot:
        raise RuntimeError(
            "linalg.lu_factor: LU without pivoting is not implemented on the CPU\nLeave pivot=True: rows are exchanged."
        )


def _linalg_lu(xp: Namespace, A: Array, pivot: bool = True) -> tuple[Array, Array, Array]:
    _need_lu("linalg.lu", A, pivot)
    LU, pivots, _ = lu_in_place(xp, A)
    return (*_parts(xp, LU), permutation(xp, pivots, A.shape[-2], A.dtype))


def _lu_samples(make: Make) -> Cases:
    return [((dominant(make, 3),), {}), ((make(4, 2),), {}), ((make(2, 2, 3),), {})]


def _lu_reference(A: Array, pivot: bool = True) -> list[Array]:
    # SciPy loads when a test asks for the reference.
    from scipy.linalg import lu

    P, L, U = each_matrix(lu, A)
    return [L, U, P]


def _lu_factor_reference(A: Array, pivot: bool = True) -> list[Array]:
    # SciPy loads when a test asks for the reference.
    from scipy.linalg.lapack import get_lapack_funcs

    LU, pivots, info = each_matrix(lambda matrix: get_lapack_funcs("getrf", (matrix,))(matrix), A)
    return [LU, pivots + 1, info]


def _lu_parts_reference(LU: Array, pivots: Array) -> list[Array]:
    rows, columns = LU.shape[-2:]
    L = numpy.tril(LU, -1)[..., : min(rows, columns)] + numpy.eye(rows, min(rows, columns))
    return [L, numpy.triu(LU)[..., : min(rows, columns), :], _permutation_reference(pivots, rows)]


def _permutation_reference(pivots: Array, rows: int) -> Array:
    """Return P of exchanges of rows, made one after the other."""
    P = numpy.broadcast_to(numpy.eye(rows), (*pivots.shape[:-1], rows, rows)).copy()
    for place in numpy.ndindex(pivots.shape[:-1]):
        for row, other in enumerate(pivots[place] - 1):
            P[place][:, [row, other]] = P[place][:, [other, row]]
    return P


def _lu_solve_reference(LU: Array, pivots: Array, B: Array, left: bool = True, adjoint: bool = False) -> Array:
    L, U, P = _lu_parts_reference(LU, pivots)
    A = P @ L @ U
    return solved(numpy.swapaxes(A, -1, -2).conj() if adjoint else A, B, left)


operator(
    "linalg_lu_parts(Tensor A, *, bool pivot=True)",
    _linalg_lu,
    outputs=("L", "U", "P"),
    graded=2,
    method=False,
    public_name=False,
    node="LinalgLuBackward0",
    derivatives={"A": lambda g, P, L, U, pivot, F: _lu_gradient(g[0], g[1], P, L, U, F)},
    doc="Return L, U and P of ``A = P @ L @ U``.",
    samples=_lu_samples,
    reference=_lu_reference,
)


def _lu_factor_ex(
    xp: Namespace, A: Array, pivot: bool = True, check_errors: bool = False
) -> tuple[Array, Array, Array]:
    _need_lu("gradscope.lu_factor", A, pivot)
    LU, pivots, infos = lu_in_place(xp, A)
    if check_errors:
        _check_regular("gradscope.linalg.lu_factor_ex", infos)
    return LU, pivots, infos


def _check_regular(name: str, infos: Array) -> None:
    failed = first_failure(infos)
    if failed is not None:
        raise RuntimeError(
            f"{name}: {failed[0]}U[{failed[1]},{failed[1]}] is zero and using it on lu_solve would result in a "
            "division by zero. If you still want to perform the factorization, consider calling linalg.lu(A, pivot) or "
            "linalg.lu_factor_ex(A, pivot)"
        )


def _lu_factor_gradient(g: Gradient, LU: Array, pivots: Array, pivot: bool, F: Namespace) -> Gradient:
    k = min(LU.shape[-2:])
    L, U, P = F.lu_parts(LU, pivots)
    return _lu_gradient(F.tril(g[0][..., :k], -1), F.triu(g[0][..., :k, :]), P, L, U, F)


operator(
    "linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False)",
    _lu_factor_ex,
    outputs=("LU", "pivots", "info"),
    out=True,
    method=False,
    public_name=False,
    derivatives={"A": _lu_factor_gradient},
    doc="Return both LU factors in one tensor, the pivots, and where the first 0 on the diagonal of U is.",
    samples=_lu_samples,
    reference=_lu_factor_reference,
)


def _lu_parts(
    xp: Namespace, LU_data: Array, LU_pivots: Array, unpack_data: bool = True, unpack_pivots: bool = True
) -> tuple[Array, Array, Array]:
    need_matrices("lu_unpack", LU_data, "LU_data")
    if LU_pivots.dtype != "int32":
        raise RuntimeError(
            "gradscope.lu_unpack: LU_pivots is expected to be a contiguous tensor of gradscope.int32 dtype.\n"
            "Note: this function is intended to be used with the output produced by gradscope.linalg.lu_factor"
        )
    none = [xp.empty(0, dtype=LU_data.dtype) for _ in range(3)]
    L, U = _parts(xp, LU_data) if unpack_data else none[:2]
    return L, U, permutation(xp, LU_pivots, LU_data.shape[-2], LU_data.dtype) if unpack_pivots else none[2]


def _lu_parts_data(g: Gradient, LU_data_shape: Shape, F: Namespace) -> Gradient:
    gL, gU = g[0], g[1]
    rows, columns = LU_data_shape[-2:]
    if gL is not None:
        gL = F.tril(gL, -1)
        if rows < columns:
            gL = F.cat([gL, _zeros_beside(gL, columns - rows, F)], -1)
    if gU is not None:
        gU = F.triu(gU)
        if rows > columns:
            gU = F.cat([gU, F.transpose(_zeros_beside(F.transpose(gU, -1, -2), rows - columns, F), -1, -2)], -2)
    return gU if gL is None else gL if gU is None else gL + gU


def _zeros_beside(x: Array, count: int, F: Namespace) -> Array:
    """Return `count` columns of zeros, as high as the matrices `x`."""
    column = F.zeros_like(x[..., :1])
    return F.cat([column] * count, -1)


operator(
    "lu_parts(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True)",
    _lu_parts,
    outputs=("L", "U", "P"),
    graded=2,
    method=False,
    public_name=False,
    node="LuUnpackBackward0",
    derivatives={"LU_data": _lu_parts_data},
    doc="Return L, U and P, given LU factors in one tensor and their pivots.",
    samples=lambda make: [((make(*shape), _pivots(make, *shape)), {}) for shape in ((3, 3), (3, 2), (2, 2, 3))],
    reference=_lu_parts_reference,
)


def _pivots(make: Make, *shape: int) -> Tensor:
    """Return pivots for matrices of a shape: each row is exchanged with the last."""
    pivots = make(*shape[:-2], min(shape[-2:]), dtype="int32")
    pivots._array[...] = shape[-2]
    return pivots


def _lu_solution(xp: Namespace, LU: Array, pivots: Array, B: Array, left: bool, adjoint: bool) -> Array:
    """Return X of ``A @ X = B``, or of ``X @ A = B``, or with the adjoint of A."""
    if not left:
        turned = _lu_solution(xp, LU, pivots, conj(xp.swapaxes(B, -1, -2)), True, not adjoint)
        return xp.ascontiguousarray(conj(xp.swapaxes(turned, -1, -2)))
    order = row_order(xp, pivots, LU.shape[-1])
    if not adjoint:
        half = triangular_solution(xp, LU, reordered(xp, order, B), False, True)
        return triangular_solution(xp, LU, half, True)
    turned = conj(xp.swapaxes(LU, -1, -2))
    half = triangular_solution(xp, turned, B, False)
    return reordered(xp, xp.argsort(order, axis=-1), triangular_solution(xp, turned, half, True, True))


def _lu_solve(xp: Namespace, LU: Array, pivots: Array, B: Array, left: bool = True, adjoint: bool = False) -> Array:
    name = "linalg.lu_solve"
    need_square(name, LU)
    need_matrices(name, B, "B")
    message = name + ": Expected LU and B to have the same dtype, but found LU of type {} and B of type {} instead"
    need_one_dtype(message, LU, B)
    if pivots.dtype != "int32":
        raise RuntimeError(f"{name}: pivots should be a Tensor of scalar type gradscope.int32\nlu_factor() gives them.")
    if pivots.shape != LU.shape[:-1]:
        raise RuntimeError(
            f"{name}: Number of pivots per batch should be same as the dimension of the matrix\n"
            f"Their shapes are {list(pivots.shape)} and {list(LU.shape)}."
        )
    need_fitting(name, LU, B, left)
    refuse_low("lu_solve_cpu", LU)
    return _lu_solution(xp, LU, pivots, B, left, adjoint)


def _lu_solve_columns(g: Gradient, LU: Array, pivots: Array, left: bool, adjoint: bool, F: Namespace) -> Gradient:
    return F.linalg_lu_solve(LU, pivots, g, left=left, adjoint=not adjoint)


def _lu_solve_factors(
    g: Gradient, LU: Array, pivots: Array, result: Array, left: bool, adjoint: bool, F: Namespace
) -> Gradient:
    of_B, X = _lu_solve_columns(g, LU, pivots, left, adjoint, F), _adjoint(result, F)
    of_A = -(F.matmul(of_B, X) if left else F.matmul(X, of_B))
    L, U, P = F.lu_parts(LU, pivots)
    swapped = F.matmul(F.transpose(P, -1, -2), _adjoint(of_A, F) if adjoint else of_A)
    return F.tril(F.matmul(swapped, _adjoint(U, F)), -1) + F.triu(F.matmul(_adjoint(L, F), swapped))


operator(
    "linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False)",
    _lu_solve,
    out=True,
    method=False,
    public_name=False,
    derivatives={"LU": _lu_solve_factors, "B": _lu_solve_columns},
    doc="Solve equations, given the LU factors of their matrices.",
    samples=lambda make: [
        ((dominant(make, 3), _pivots(make, 3, 3), make(3, 2)), {}),
        ((dominant(make, 2, 2), _pivots(make, 2, 2, 2), make(3, 2)), {"left": False}),
        ((dominant(make, 3), _pivots(make, 3, 3), make(2, 3, 1)), {"adjoint": True}),
        ((dominant(make, 2), _pivots(make, 2, 2), make(1, 2)), {"left": False, "adjoint": True}),
    ],
    reference=_lu_solve_reference,
)

# --- what is public ---------------------------------------------------------------------------------------------------

_Lu = namedtuple("linalg_lu", ["P", "L", "U"])  # type: ignore[name-match]
_LuFactor = namedtuple("linalg_lu_factor", ["LU", "pivots"])  # type: ignore[name-match]


def _same(found: Tensor) -> Array:
    return found


def into_each(out: Out, name: str, operands: list[Argument], found: Sequence[Tensor]) -> Results:
    """Give a composite function of several results its ``out=``; return the tuple of the tensors written."""
    if not isinstance(out, (tuple, list)) or len(out) != len(found):
        raise TypeError(f"{name}(): argument 'out' must be tuple of Tensors, not {type(out).__name__}")
    pairs = zip(out, found, strict=True)
    written = [inplace_and_out.into(target, name, operands, partial(_same, part)) for target, part in pairs]
    return type(found)(*written) if hasattr(found, "_fields") else tuple(written)


@public(namespace="linalg")
def lu(A: Tensor, *, pivot: bool = True, out: Tensor | None = None) -> Results:
    """Return the LU decomposition ``A = P @ L @ U`` with partial pivoting.

    Parameters
    ----------
    A : Tensor
        Of shape (..., m, n).
    pivot : bool
        Whether rows are exchanged; they always are.

    Returns
    -------
    linalg_lu
        A named tuple of P, a permutation, L, lower triangular with ones on the diagonal, and U, upper triangular.

    Notes
    -----
    There is a gradient where the first min(m, n) columns and rows of ``P.mT @ A`` are regular.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.linalg.lu(gs.tensor([[1.0, 2.0], [2.0, 2.0]])).U
    tensor([[2., 2.],
            [0., 1.]])
    """
    L, U, P = OPERATORS["linalg_lu_parts"].function(A, pivot=pivot)
    found = _Lu(P, L, U)
    return found if out is None else into_each(out, "linalg.lu", [A], found)


@public(namespace="linalg")
def lu_factor(A: Tensor, *, pivot: bool = True, out: Tensor | None = None) -> Results:
    """Return both LU factors in one tensor, and the pivots, for :func:`lu_solve`.

    Raises
    ------
    RuntimeError
        If a diagonal element of U is 0.

    Examples
    --------
    >>> import gradscope as gs
    >>> LU, pivots = gs.linalg.lu_factor(gs.tensor([[1.0, 2.0], [4.0, 0.0]]))
    >>> gs.linalg.lu_solve(LU, pivots, gs.tensor([[3.0], [4.0]]))
    tensor([[1.],
            [1.]])
    """
    LU, pivots, infos = OPERATORS["linalg_lu_factor_ex"].function(A, pivot=pivot)
    _check_regular("gradscope.linalg.lu_factor", infos._array)
    found = _LuFactor(LU, pivots)
    return found if out is None else into_each(out, "linalg.lu_factor", [A], found)


@public(namespace="linalg")
def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False, out: Tensor | None = None) -> Results:
    """Return both LU factors in one tensor, the pivots, and 0 or where the first 0 on the diagonal of U is.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.linalg.lu_factor_ex(gs.tensor([[1.0, 2.0], [2.0, 2.0]])).info
    tensor(0, dtype=gradscope.int32)
    """
    return OPERATORS["linalg_lu_factor_ex"].function(A, pivot=pivot, check_errors=check_errors, out=out)


@public(namespace="linalg")
def lu_solve(
    LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False, out: Tensor | None = None
) -> Tensor:
    """Return X of ``A @ X = B``, given the LU factors of A by :func:`lu_factor`.

    Parameters
    ----------
    LU, pivots : Tensor
        Of shape (..., n, n) and (..., n).
    B : Tensor
        Of shape (..., n, k), or (..., k, n) where A stands on the right.
    left : bool
        Whether A stands on the left.
    adjoint : bool
        Whether the equation is of the adjoint of A.

    Examples
    --------
    >>> import gradscope as gs
    >>> lu, pivots = gs.linalg.lu_factor(gs.tensor([[2.0, 0.0], [0.0, 4.0]]))
    >>> gs.linalg.lu_solve(lu, pivots, gs.tensor([[2.0], [4.0]]))
    tensor([[1.],
            [1.]])
    """
    return OPERATORS["linalg_lu_solve"].function(LU, pivots, B, left=left, adjoint=adjoint, out=out)

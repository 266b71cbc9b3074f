"""Inverses and solutions that tell of failure, pseudoinverses, least squares, and what follows from singular values."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, prod

import numpy

from ... import autocast, state
from ...memory import device as devices
from ...memory.dtype import scalar_type
from ...tensor.tensor import Tensor
from ..declaration.annotations import Array, Gradient, Namespace, Number, Results
from ..declaration.references import each_matrix, solved
from ..declaration.registry import METHODS, OPERATORS, operator, public
from ..declaration.samples import dominant
from ..execution import inplace_and_out
from ..execution.array_errors import broadcast_mismatch
from ..execution.bare_functions import conj
from .cholesky_and_triangular import triangular_solution
from .determinant_and_inverse import SINGULAR, check_solve, inverse_self, need_regular_dtype, solve_other, solve_self
from .lu import lu_in_place, reordered, row_order
from .matrix_checks import (
    adjoint,
    batch_of,
    check_infos,
    epsilon,
    need_float,
    need_matrices,
    need_one_dtype,
    need_square,
)
from .svd_and_eigen import eigvalsh, svdvals

__all__ = ["cond", "inv_ex", "lstsq", "matrix_rank", "pinv", "solve_ex", "tensorinv", "tensorsolve"]

# --- inverses and solutions that tell of failure ----------------------------------------------------------------------


def _solution_with_info(xp: Namespace, A: Array, B: Array) -> tuple[Array, Array]:
    """Return X of ``A @ X = B``, and 0 or where U has the first 0 on its diagonal: X is not finite then."""
    if xp is numpy:
        try:
            return numpy.linalg.solve(A, B), numpy.zeros(A.shape[:-2], dtype="int32")
        except numpy.linalg.LinAlgError:
            pass
    LU, pivots, infos = lu_in_place(xp, A)
    half = triangular_solution(xp, LU, reordered(xp, row_order(xp, pivots, A.shape[-1]), B), False, True)
    return triangular_solution(xp, LU, half, True), infos


def _inv_ex(xp: Namespace, A: Array, check_errors: bool = False) -> tuple[Array, Array]:
    need_regular_dtype("inv", A)
    eye = xp.zeros(A.shape, dtype=A.dtype)
    eye[...] = xp.eye(A.shape[-1], dtype=A.dtype)
    inverse, infos = _solution_with_info(xp, A, eye)
    if check_errors:
        check_infos("linalg.inv_ex", infos, SINGULAR, "Its determinant is 0.")
    return inverse, infos


operator(
    "linalg_inv_ex(Tensor A, *, bool check_errors=False)",
    _inv_ex,
    outputs=("inverse", "info"),
    out=True,
    method=False,
    public_name=False,
    derivatives={"A": lambda g, inverse, F: inverse_self(g[0], inverse, F)},
    doc="Return inverses, and 0 or where elimination met a 0 on the diagonal.",
    samples=lambda make: [((dominant(make, 3),), {}), ((dominant(make, 2, 2),), {}), ((make(0, 0),), {})],
    reference=lambda A: (numpy.linalg.inv(A), numpy.zeros(A.shape[:-2], "int32")),
)


@public(namespace="linalg")
def inv_ex(A: Tensor, *, check_errors: bool = False, out: Tensor | None = None) -> Results:
    """Return the inverse of square matrices, and integers that are not 0 for singular ones, without raising.

    Parameters
    ----------
    A : Tensor
        Of shape (..., n, n).
    check_errors : bool
        Raise as :func:`inv` does.

    Returns
    -------
    linalg_inv_ex
        A named tuple of inverse, not finite where a matrix is singular, and info.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.linalg.inv_ex(gs.tensor([[2.0, 0.0], [0.0, 4.0]])).inverse
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    return OPERATORS["linalg_inv_ex"].function(A, check_errors=check_errors, out=out)


def _solve_ex(xp: Namespace, A: Array, B: Array, left: bool = True, check_errors: bool = False) -> tuple[Array, Array]:
    columns, vector = check_solve("linalg.solve", A, B, left)
    if left:
        X, infos = _solution_with_info(xp, A, columns)
    else:
        X, infos = _solution_with_info(xp, xp.swapaxes(A, -1, -2), xp.swapaxes(columns, -1, -2))
        X = xp.ascontiguousarray(xp.swapaxes(X, -1, -2))
    if check_errors:
        check_infos(
            "gradscope.linalg.solve_ex",
            infos,
            "The solver failed because the input matrix is singular.",
            "Its determinant is 0.",
        )
    return (X[..., 0] if vector else X), infos


operator(
    "linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False)",
    _solve_ex,
    outputs=("result", "info"),
    out=True,
    method=False,
    public_name=False,
    derivatives={
        "A": lambda g, A, B_shape, result, left, F: solve_self(g[0], A, B_shape, result, left, F),
        "B": lambda g, A, left, F: solve_other(g[0], A, left, F),
    },
    doc="Return the solution of equations, and 0 or where elimination met a 0 on the diagonal.",
    samples=lambda make: [
        ((dominant(make, 3), make(3, 2)), {}),
        ((dominant(make, 2, 2), make(2, 2)), {}),
        ((dominant(make, 3), make(2, 3)), {"left": False}),
    ],
    reference=lambda A, B, left=True: (solved(A, B, left), numpy.zeros(A.shape[:-2], "int32")),
)


@public(namespace="linalg")
def solve_ex(
    A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False, out: Tensor | None = None
) -> Results:
    """Return the solution of equations, and integers that are not 0 for singular matrices, without raising.

    Parameters
    ----------
    A, B : Tensor
        As for :func:`solve`.
    check_errors : bool
        Raise as :func:`solve` does.

    Returns
    -------
    linalg_solve_ex
        A named tuple of result, not finite where a matrix is singular, and info.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.linalg.solve_ex(gs.tensor([[2.0, 0.0], [0.0, 4.0]]), gs.tensor([2.0, 4.0])).result
    tensor([1., 1.])
    """
    return OPERATORS["linalg_solve_ex"].function(A, B, left=left, check_errors=check_errors, out=out)


# --- pseudoinverses ---------------------------------------------------------------------------------------------------


def _tolerance(xp: Namespace, A: Array, largest: Array, atol: Number, rtol: Number) -> Array:
    """Return what singular values must exceed to count: ``max(atol, rtol * largest)``, as columns of them."""
    atol, rtol = (getattr(value, "_array", value) for value in (atol, rtol))
    if rtol is None:
        # Where atol is given, rtol is 0 unless given too.
        usual = epsilon(xp, A) * max(A.shape[-2:])
        rtol = usual if atol is None else xp.where(xp.asarray(atol) > 0, 0.0, usual)
    atol = 0.0 if atol is None else atol
    absolute, relative = (v[..., None] if getattr(v, "ndim", 0) else v for v in (atol, rtol))
    return xp.maximum(xp.asarray(absolute), relative * largest)


def _pinv(xp: Namespace, self: Array, atol: Number = None, rtol: Number = None, hermitian: bool = False) -> Array:
    if self.ndim < 2 or self.dtype.kind not in "fc" or self.dtype.itemsize < 4:
        raise RuntimeError(
            f"linalg.pinv({scalar_type(self.dtype)}{{{list(self.shape)}}}): expected a tensor with 2 or more "
            "dimensions of float, double, cfloat or cdouble types"
        )
    if not self.size:
        return xp.empty((*self.shape[:-2], self.shape[-1], self.shape[-2]), dtype=self.dtype)
    if hermitian:
        need_square("linalg.pinv", self)
        values, V = OPERATORS["linalg_eigh"].run_forward(xp, self)
        size, left, right = abs(values), V, conj(xp.swapaxes(V, -1, -2))
    else:
        U, values, Vh = OPERATORS["linalg_svd"].run_forward(xp, self)
        size, left, right = values, conj(xp.swapaxes(Vh, -1, -2)), conj(xp.swapaxes(U, -1, -2))
    kept = size > _tolerance(xp, self, size.max(axis=-1, keepdims=True), atol, rtol)
    inverse = xp.where(kept, 1 / xp.where(kept, values, 1), 0).astype(self.dtype)
    return xp.matmul(left * inverse[..., None, :], right)


def _pinv_self(g: Gradient, self: Array, result: Array, F: Namespace) -> Gradient:
    # G. H. Golub and V. Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems whose
    # variables separate" (1973), equation 4.12.
    X, Xh, gh = result, adjoint(result, F), adjoint(g, F)
    right = F.matmul(F.matmul(gh, X), Xh)
    left = F.matmul(Xh, F.matmul(X, gh))
    right = right - F.matmul(self, F.matmul(X, right))
    left = left - F.matmul(F.matmul(left, X), self)
    return right + left - F.matmul(F.matmul(Xh, g), Xh)


operator(
    "linalg_pinv(Tensor self, *, Scalar? atol=None, Scalar? rtol=None, bool hermitian=False)",
    lambda xp, self, atol=None, rtol=None, hermitian=False: _pinv(xp, self, atol, rtol, hermitian),
    out="castable",
    method=False,
    public_name=False,
    derivatives={"self": _pinv_self},
    doc="Return the Moore-Penrose pseudoinverses of matrices.",
    samples=lambda make: [((make(3, 2),), {}), ((make(2, 2, 3),), {}), ((make(0, 2),), {})],
    reference="numpy.linalg.pinv",
)


@public(namespace="linalg")
def pinv(
    A: Tensor,
    rcond: Number = None,
    hermitian: bool = False,
    *,
    atol: Number = None,
    rtol: Number = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return the Moore-Penrose pseudoinverse of matrices.

    Parameters
    ----------
    A : Tensor
        Of shape (..., m, n).
    rcond : float or Tensor, optional
        The older name of `rtol`.
    hermitian : bool
        Whether `A` is Hermitian: eigenvalues are used, of its lower triangle.
    atol, rtol : float or Tensor, optional
        Singular values count as 0 up to ``max(atol, rtol * largest)``. `rtol` is ``max(m, n)`` times the resolution of
        the dtype, or 0 where `atol` is given.

    Notes
    -----
    The gradient is that of matrices whose rank does not change.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.linalg.pinv(gs.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    if rcond is not None:
        atol, rtol = 0.0, rcond
    return OPERATORS["linalg_pinv"].function(A, atol=atol, rtol=rtol, hermitian=hermitian, out=out)


# --- least squares ----------------------------------------------------------------------------------------------------

_DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


def _check_lstsq(A: Array, B: Array, driver: str | None) -> Array:
    """Return B as columns, after PyTorch's checks."""
    name = "gradscope.linalg.lstsq"
    if A.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if B.ndim < 1:
        raise RuntimeError(f"{name}: other must have at least 1 dimension.")
    message = name + ": Expected input and other to have the same dtype, but got input's dtype {} and other's dtype {}"
    need_one_dtype(message, A, B)
    if driver is not None and driver not in _DRIVERS:
        raise RuntimeError(f"{name}: parameter `driver` should be one of ({', '.join(_DRIVERS)})")
    if not 0 <= A.ndim - B.ndim <= 1:
        raise RuntimeError(
            f"{name}: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1\n"
            f"Their shapes are {list(A.shape)} and {list(B.shape)}."
        )
    columns = B if B.ndim == A.ndim else B[..., None]
    mismatch = broadcast_mismatch([A.shape[:-2], columns.shape[:-2]])
    if A.shape[-2] != columns.shape[-2]:
        raise RuntimeError(f"{name}: input.size(-2) should match other.size(-2)")
    if mismatch is not None:
        raise RuntimeError(f"{mismatch}\nThese are the batch dimensions of {list(A.shape)} and {list(B.shape)}.")
    if A.dtype.kind not in "fc" or A.dtype.itemsize < 4:
        raise RuntimeError("This function doesn't handle types other than float and double\nConvert it with .float().")
    return columns


def _refuse_numbers(A: Array, B: Array, driver: str) -> None:
    """Raise for numbers that LAPACK's routine `driver` does not take: NaN, for gelsd infinities in A."""
    for argument, array in (("input", A), ("other", B)):
        if numpy.isnan(array).any():
            raise RuntimeError(
                f"gradscope.linalg.lstsq: {argument} contains NaN.\nLook for where it comes from: isnan()."
            )
    if driver == "gelsd" and numpy.isinf(A).any():
        raise RuntimeError(
            "gradscope.linalg.lstsq: input contains infinities, which the driver gelsd does not take.\n"
            "Look for where they come from: isinf()."
        )


def _solution_of_full_rank(xp: Namespace, A: Array, B: Array) -> Array:
    """Return the solution by an orthogonal factor and a triangle, as gels does; that of zeros is 0."""
    tall = A.shape[-2] >= A.shape[-1]
    Q, R = xp.linalg.qr(A if tall else conj(xp.swapaxes(A, -1, -2)))
    zeros = (A == 0).all(axis=(-2, -1), keepdims=True)
    if xp is numpy:  # on a device nobody waits to ask
        _need_full_rank(R, zeros)
    R = xp.where(zeros, xp.eye(R.shape[-1], dtype=R.dtype), R)
    if tall:
        X = triangular_solution(xp, R, xp.matmul(conj(xp.swapaxes(Q, -1, -2)), B), True)
    else:
        X = xp.matmul(Q, triangular_solution(xp, conj(xp.swapaxes(R, -1, -2)), B, False))
    return xp.where(zeros, X.dtype.type(0), X)


def _need_full_rank(R: Array, zeros: Array) -> None:
    missing = numpy.diagonal(R, axis1=-2, axis2=-1) == 0
    if missing.shape[-1]:
        check_infos(
            "gradscope.linalg.lstsq",
            numpy.where(missing.any(axis=-1) & ~zeros[..., 0, 0], missing.argmax(axis=-1) + 1, 0),
            "The least squares solution could not be computed because the input matrix does not have full rank "
            "(error code: {}).",
            "Another driver, such as gelsd, finds the shortest solution.",
        )


def _shortest_solution(xp: Namespace, A: Array, B: Array, rcond: float | None) -> tuple[Array, Array, Array]:
    """Return the solution by singular values, the ranks, and the singular values."""
    U, S, Vh = OPERATORS["linalg_svd"].run_forward(xp, A)
    limit = epsilon(xp, A) * max(A.shape[-2:]) if rcond is None else rcond
    kept = limit * (S[..., :1] if S.shape[-1] else 0) < S
    inverse = xp.where(kept, 1 / xp.where(kept, S, 1), 0).astype(A.dtype)
    X = xp.matmul(conj(xp.swapaxes(Vh, -1, -2)), inverse[..., None] * xp.matmul(conj(xp.swapaxes(U, -1, -2)), B))
    return X, kept.sum(axis=-1), S


def _lstsq(
    xp: Namespace, self: Array, b: Array, rcond: float | None = None, driver: str | None = None
) -> tuple[Array, Array, Array, Array]:
    columns = _check_lstsq(self, b, driver)
    driver = driver or "gelsy"
    rows, unknowns = self.shape[-2:]
    if xp is numpy:  # on a device nobody waits to ask
        _refuse_numbers(self, b, driver)
    A, columns = batch_of(xp, self, columns)
    residuals, values, counted = (xp.empty(0, dtype=kind) for kind in (A.real.dtype, A.real.dtype, "int64"))
    if driver == "gels":
        X, full = _solution_of_full_rank(xp, A, columns), True
    else:
        X, rank, S = _shortest_solution(xp, A, columns, rcond)
        full = rows > unknowns and driver != "gelsy" and bool(devices.to_host(rank == unknowns).all())
        counted = rank.astype("int64")
        values = values if driver == "gelsy" else S
    # As in LAPACK, which scales all columns of a matrix by the largest element.
    X = xp.where(xp.isinf(columns).any(axis=(-2, -1), keepdims=True), X.dtype.type(numpy.nan), X)
    if rows > unknowns and full:
        apart = xp.matmul(A, X) - columns
        residuals = (apart * conj(apart)).real.sum(axis=-2)
    if b.ndim < self.ndim:
        X = X[..., 0]
    return X, residuals, counted, values


def _lstsq_both(
    g: Gradient, self: Array, b: Array, solution: Array, needs: Sequence[bool], F: Namespace
) -> tuple[Gradient, Gradient]:
    # X is pinv(A) @ B, and a residual the squared length of a column of A @ X - B, where A X - B has no part in A's
    # range: only A's own change and that of B count.
    g_solution, g_residuals = g[0], g[1]
    vector = len(b.shape) < len(self.shape)
    B, X = (F.unsqueeze(b, -1), F.unsqueeze(solution, -1)) if vector else (b, solution)
    of_A = of_B = None
    if g_solution is not None:
        inverse = F.linalg_pinv(self)
        gX = F.unsqueeze(g_solution, -1) if vector else g_solution
        of_B = F.matmul(adjoint(inverse, F), gX)
        of_A = _pinv_self(F.matmul(gX, adjoint(B, F)), self, inverse, F)
    if g_residuals is not None and g_residuals.shape[-1]:
        scaled = 2 * (F.matmul(self, X) - B) * F.unsqueeze(g_residuals, -2)
        of_rest = F.matmul(scaled, adjoint(X, F))
        of_A, of_B = (of_rest, -scaled) if of_A is None else (of_A + of_rest, of_B - scaled)
    if of_B is not None and vector:
        of_B = F.squeeze(of_B, -1)
    return (of_A if needs[0] else None, of_B if needs[1] else None)


def _by_a_denormal_triangle(self: Array, b: Array, rcond: float | None = None, driver: str | None = None) -> Array:
    denormal = (self != 0) & (numpy.abs(self) < numpy.finfo(numpy.float32).tiny)
    return denormal.any() & (driver == "gels")


def _lstsq_reference(self: Array, b: Array, rcond: float | None = None, driver: str | None = None) -> list[Array]:
    nothing = numpy.empty(0)
    X, residuals, rank, values = each_matrix(lambda A, B: numpy.linalg.lstsq(A, B, rcond), self, b)
    if driver == "gels":
        return [X, numpy.sum(numpy.abs(self @ X - b) ** 2, axis=-2), nothing, nothing]
    # The driver that PyTorch takes unless told, gelsy, says nothing of residuals and singular values.
    return [X, nothing, rank, nothing] if driver in (None, "gelsy") else [X, residuals, rank, values]


operator(
    "linalg_lstsq(Tensor self, Tensor b, *, float? rcond=None, str? driver=None)",
    lambda xp, self, b, rcond=None, driver=None: _lstsq(xp, self, b, rcond, driver),
    outputs=("solution", "residuals", "rank", "singular_values"),
    graded=2,
    method=False,
    public_name=False,
    out=True,
    joint=_lstsq_both,
    doc="Return least-squares solutions, squared residuals, ranks and singular values.",
    samples=lambda make: [
        ((make(3, 2), make(3, 2)), {}),
        ((make(2, 3, 2), make(2, 3)), {}),
        ((make(2, 3), make(2, 1)), {}),
        ((make(4, 2), make(4, 1)), {"driver": "gels"}),
    ],
    reference=_lstsq_reference,
    differs=(
        (_by_a_denormal_triangle, "gels divides by the diagonal of a triangle, and denormal numbers have no inverse"),
    ),
)


@public(namespace="linalg")
def lstsq(
    A: Tensor, b: Tensor, rcond: float | None = None, *, driver: str | None = None, out: Tensor | None = None
) -> Results:
    """Return the solution X of least ``‖A @ X - b‖``, the shortest where there are several.

    Parameters
    ----------
    A : Tensor
        Of shape (..., m, n).
    b : Tensor
        Of shape (..., m, k); with one dimension less than `A` it is a vector for each matrix.
    rcond : float, optional
        Singular values count as 0 up to `rcond` times the largest; max(m, n) times the resolution of the dtype.
    driver : {"gelsy", "gels", "gelsd", "gelss"}, optional
        What is computed beside the solution, as LAPACK's routine of this name does. All solve by singular values
        except gels, which takes matrices of full rank alone.

    Returns
    -------
    linalg_lstsq
        A named tuple of solution, residuals, rank and singular_values, empty where the driver does not compute them.

    Raises
    ------
    LinAlgError
        If the driver is gels and a matrix does not have full rank; one of zeros has the solution 0.
    RuntimeError
        If an argument contains NaN, or the driver is gelsd and `A` contains infinities.

    Notes
    -----
    On a GPU no numbers are refused: the program would have to wait for the answer.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.linalg.lstsq(gs.tensor([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]]), gs.tensor([[1.0], [4.0], [5.0]])).solution
    tensor([[1.],
            [2.]])
    """
    return OPERATORS["linalg_lstsq"].function(A, b, rcond=rcond, driver=driver, out=out)


# --- ranks and condition numbers --------------------------------------------------------------------------------------


@public(namespace="linalg")
def matrix_rank(
    A: Tensor,
    tol: Number = None,
    hermitian: bool = False,
    *,
    atol: Number = None,
    rtol: Number = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return the rank of matrices: how many singular values exceed ``max(atol, rtol * largest)``.

    Parameters
    ----------
    A : Tensor
        Of shape (..., m, n).
    tol : float or Tensor, optional
        The older name of `atol`, with an `rtol` of 0.
    hermitian : bool
        Whether `A` is Hermitian: eigenvalues are used, of its lower triangle.
    atol, rtol : float or Tensor, optional
        As for :func:`pinv`.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.linalg.matrix_rank(gs.tensor([[1.0, 2.0], [2.0, 4.0]]))
    tensor(1)
    """
    if tol is not None:
        atol, rtol = tol, 0.0
    if out is not None:
        options = {"atol": atol, "rtol": rtol, "hermitian": hermitian}
        return inplace_and_out.into(out, "linalg.matrix_rank", [], lambda: matrix_rank(A, **options))
    if state.casting and autocast.covers("linalg_matrix_rank", (A,)):
        options = {"atol": atol, "rtol": rtol, "hermitian": hermitian}
        return autocast.call("linalg_matrix_rank", lambda A: matrix_rank(A, **options), A)
    array = A._array
    need_matrices("gradscope.linalg.matrix_rank", array, "input")
    if array.dtype.kind not in "fc" or array.dtype.itemsize < 4:
        raise RuntimeError("This function doesn't handle types other than float and double\nConvert it with .float().")
    xp = devices.array_module(array)
    if not array.size:
        return type(A)._wrap(xp.zeros(array.shape[:-2], dtype="int64"))
    bare = A.detach()
    values = abs((eigvalsh(bare) if hermitian else svdvals(bare))._array)
    limit = _tolerance(xp, array, values.max(axis=-1, keepdims=True), atol, rtol)
    return type(A)._wrap(xp.asarray((values > limit).sum(axis=-1).astype("int64")))


@public(namespace="linalg")
def cond(A: Tensor, p: Number = None, *, out: Tensor | None = None) -> Tensor:
    """Return the condition number of matrices, the product of the norms of a matrix and of its inverse.

    Parameters
    ----------
    A : Tensor
        Of shape (..., n, n); (..., m, n) for 2, -2 and None.
    p : {None, 2, -2, 1, -1, inf, -inf, "fro", "nuc"}
        The norm; None is 2: the largest singular value over the smallest.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.linalg.cond(gs.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor(2.)
    """
    if out is not None:
        return inplace_and_out.into(out, "linalg.cond", [A], lambda: cond(A, p))
    if A._array.ndim < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    if p not in (None, 2, -2, 1, -1, inf, -inf, "fro", "nuc"):
        raise RuntimeError(
            f"linalg.cond got an invalid norm type: {p}\nUse None, 2, -2, 1, -1, inf, -inf, 'fro' or 'nuc'."
        )
    if not A._array.size:
        need_float("linalg.svd", A._array)
        return A.new_zeros(A._array.shape[:-2]).abs()
    if p in (None, 2, -2):
        values = svdvals(A)
        ratio = values[..., -1:] / values[..., :1] if p == -2 else values[..., :1] / values[..., -1:]
        return ratio.squeeze(-1)
    need_square(f"linalg.cond(ord={p})", A._array)
    if p == "nuc":
        return _nuclear_condition(A)
    inverse = inv_ex(A)[0]
    return METHODS["nan_to_num"](_norm(A, p) * _norm(inverse, p), inf, inf, -inf)


def _nuclear_condition(A: Array) -> Array:
    values = svdvals(A)
    return values.sum(-1) * values.reciprocal().sum(-1)


def _norm(A: Array, p: Number) -> Array:
    vector_norm = OPERATORS["linalg_vector_norm"].function
    if p == "fro":
        return vector_norm(A, 2, (-2, -1))
    sums = vector_norm(A, 1, -2 if p in (1, -1) else -1)
    return sums.amax(-1) if p > 0 else sums.amin(-1)


# --- equations of tensors ---------------------------------------------------------------------------------------------


@public(namespace="linalg")
def tensorinv(A: Tensor, ind: int = 2, *, out: Tensor | None = None) -> Tensor:
    """Return the inverse of a tensor as a map from its last dimensions to its first `ind`, under ``tensordot``.

    Raises
    ------
    RuntimeError
        If the first `ind` sizes have not the product of the others.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.linalg.tensorinv(gs.eye(4).view(2, 2, 2, 2)).shape
    gradscope.Size([2, 2, 2, 2])
    """
    if out is not None:
        return inplace_and_out.into(out, "linalg.tensorinv", [A], lambda: tensorinv(A, ind))
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    shape = tuple(A._array.shape)
    first, last = shape[:ind], shape[ind:]
    _need_equal_products("ind", prod(last), prod(first))
    inverse = METHODS["inverse"](METHODS["reshape"](A, prod(last), prod(first)))
    return METHODS["reshape"](inverse, *last, *first)


def _need_equal_products(count: str, last: int, first: int) -> None:
    if last != first:
        raise RuntimeError(
            f"Expected self to satisfy the requirement prod(self.shape[{count}:]) == prod(self.shape[:{count}]), but "
            f"got {last} != {first}"
        )


@public(namespace="linalg")
def tensorsolve(A: Tensor, other: Tensor, dims: Sequence[int] | None = None, *, out: Tensor | None = None) -> Tensor:
    """Return the solution X of ``tensordot(A, X, X.ndim) = other``.

    Parameters
    ----------
    A : Tensor
        Of shape ``other.shape + X.shape``.
    dims : sequence of int, optional
        Dimensions of `A` to be moved behind the others first.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.linalg.tensorsolve(gs.eye(4).view(2, 2, 2, 2), gs.ones(2, 2))
    tensor([[1., 1.],
            [1., 1.]])
    """
    if out is not None:
        return inplace_and_out.into(out, "linalg.tensorsolve", [A, other], lambda: tensorsolve(A, other, dims))
    if dims is not None:
        ndim = A._array.ndim
        A = A.movedim(tuple(dims), tuple(range(ndim - len(dims), ndim)))
    known = other._array.ndim
    rest = tuple(A._array.shape[known:])
    _need_equal_products("other.ndim", prod(rest), prod(A._array.shape[:known]))
    count = prod(rest)
    matrix = METHODS["reshape"](A, count, count)
    solution = OPERATORS["linalg_solve"].function(matrix, METHODS["reshape"](other, count))
    return METHODS["reshape"](solution, *rest)

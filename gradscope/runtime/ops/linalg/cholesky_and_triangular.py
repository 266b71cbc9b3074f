"""Triangular equations, and Cholesky factors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy

from ...memory import device
from ...tensor.tensor import Tensor
from ..declaration.annotations import Array, Gradient, Namespace, Results, Shape
from ..declaration.references import solved
from ..declaration.registry import OPERATORS, operator, public
from ..declaration.samples import dominant
from ..execution import inplace_and_out
from ..execution.bare_functions import conj, in_rows
from . import lapack
from .matrix_checks import (
    adjoint,
    batch_of,
    check_infos,
    need_fitting,
    need_float,
    need_matrices,
    need_one_dtype,
    need_square,
    refuse_low,
)

__all__ = ["cholesky", "cholesky_ex", "solve_triangular"]

# --- triangular equations ---------------------------------------------------------------------------------------------


def triangular_solution(xp: Namespace, A: Array, B: Array, upper: bool, unitriangular: bool = False) -> Array:
    """Return X of ``A @ X = B``, with infinities and NaN where the diagonal has a zero.

    The other triangle of `A` is not read.
    """
    A, B = batch_of(xp, A, B)
    if xp is not numpy:
        solve = device.linalg_function(A, "solve_triangular")
        return in_rows(xp, solve(A, B, lower=not upper, unit_diagonal=unitriangular)) if B.size else B.copy()
    if not lapack.is_quicker(A):
        try:
            return _eliminated(A, B, upper, unitriangular)
        except numpy.linalg.LinAlgError:
            pass
    return lapack.solve_triangles(A, B, upper, unitriangular)


def _eliminated(A: Array, B: Array, upper: bool, unitriangular: bool) -> Array:
    """Return X of ``A @ X = B`` for many small matrices: elimination finds nothing to do in an upper triangle."""
    triangle = (numpy.triu if upper else numpy.tril)(A, (1 if upper else -1) if unitriangular else 0)
    if unitriangular:
        triangle = triangle + numpy.eye(A.shape[-1], dtype=A.dtype)
    if upper:
        return numpy.linalg.solve(triangle, B)
    turned = numpy.linalg.solve(triangle[..., ::-1, ::-1], B[..., ::-1, :])
    return numpy.ascontiguousarray(turned[..., ::-1, :])


def _solve_triangular(
    xp: Namespace, self: Array, B: Array, upper: bool, left: bool = True, unitriangular: bool = False
) -> Array:
    name = "linalg.solve_triangular"
    need_matrices(name, self)
    need_matrices(name, B, "B")
    need_square(name, self)
    need_fitting(name, self, B, left)
    refuse_low("triangular_solve_cpu", self)
    if left:
        return triangular_solution(xp, self, B, upper, unitriangular)
    turned = triangular_solution(xp, xp.swapaxes(self, -1, -2), xp.swapaxes(B, -1, -2), not upper, unitriangular)
    return xp.ascontiguousarray(xp.swapaxes(turned, -1, -2))


def _solve_triangular_columns(
    g: Gradient, self: Array, upper: bool, left: bool, unitriangular: bool, F: Namespace
) -> Gradient:
    return F.linalg_solve_triangular(adjoint(self, F), g, upper=not upper, left=left, unitriangular=unitriangular)


def _solve_triangular_self(
    g: Gradient, self: Array, result: Array, upper: bool, left: bool, unitriangular: bool, F: Namespace
) -> Gradient:
    of_B = _solve_triangular_columns(g, self, upper, left, unitriangular, F)
    X = adjoint(result, F)
    whole = -(F.matmul(of_B, X) if left else F.matmul(X, of_B))
    return F.triu(whole, int(unitriangular)) if upper else F.tril(whole, -int(unitriangular))


def _triangle_reference(self: Array, B: Array, upper: bool, left: bool = True, unitriangular: bool = False) -> Array:
    A = numpy.triu(self) if upper else numpy.tril(self)
    diagonal = numpy.eye(A.shape[-1], dtype=bool)
    return solved(numpy.where(diagonal, 1, A) if unitriangular else A, B, left)


operator(
    "linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False)",
    lambda xp, self, B, upper, left=True, unitriangular=False: _solve_triangular(
        xp, self, B, upper, left, unitriangular
    ),
    out=True,
    method=False,
    public_name=False,
    derivatives={"self": _solve_triangular_self, "B": _solve_triangular_columns},
    doc="Return X of ``self @ X = B``, or of ``X @ self = B``, where `self` is triangular.",
    samples=lambda make: [
        ((dominant(make, 3), make(3, 2)), {"upper": True}),
        ((dominant(make, 2, 3), make(2, 3)), {"upper": False, "left": False}),
        ((dominant(make, 3), make(2, 3, 1)), {"upper": False, "unitriangular": True}),
        ((make(0, 0), make(0, 2)), {"upper": True}),
    ],
    reference=_triangle_reference,
)


@public(namespace="linalg")
def solve_triangular(
    A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False, out: Tensor | None = None
) -> Tensor:
    """Return the solution X of ``A @ X = B``, or of ``X @ A = B``, where `A` is triangular.

    Parameters
    ----------
    A : Tensor
        Of shape (..., n, n); its other triangle is not read.
    B : Tensor
        Of shape (..., n, k), or (..., k, n) where `A` stands on the right.
    upper : bool
        Whether `A` is upper triangular.
    left : bool
        Whether `A` stands on the left.
    unitriangular : bool
        Whether the diagonal of `A` is taken to be 1, and is not read.

    Raises
    ------
    RuntimeError
        If the shapes do not fit. A zero on the diagonal raises nothing: it gives infinities and NaN.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.linalg.solve_triangular(gs.tensor([[2.0, 1.0], [0.0, 4.0]]), gs.tensor([[4.0], [8.0]]), upper=True)
    tensor([[1.],
            [2.]])
    """
    return OPERATORS["linalg_solve_triangular"].function(
        A, B, upper=upper, left=left, unitriangular=unitriangular, out=out
    )


def _old_triangular_solve(
    xp: Namespace, self: Array, A: Array, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[Array, Array]:
    name = "gradscope.triangular_solve"
    for what, array in (("b", self), ("A", A)):
        if array.ndim < 2:
            raise RuntimeError(
                f"{name}: Expected {what} to have at least 2 dimensions, but it has {array.ndim} dimensions instead"
            )
    rows, columns = A.shape[-2:]
    message = "Expected b and A to have the same dtype, but found b of type {} and A of type {} instead."
    need_one_dtype(message, self, A)
    if rows != columns:
        raise RuntimeError(f"A must be batches of square matrices, but they are {rows} by {columns} matrices")
    if rows != self.shape[-2]:
        raise RuntimeError(
            f"Incompatible matrix sizes for triangular_solve: each A matrix is {rows} by {columns} but each b matrix "
            f"is {self.shape[-2]} by {self.shape[-1]}"
        )
    need_fitting(name, A, self)
    refuse_low("triangular_solve_cpu", A)
    turned = xp.swapaxes(A, -1, -2) if transpose else A
    X = triangular_solution(xp, turned, self, upper != transpose, unitriangular)
    return X, batch_of(xp, A, self)[0].copy()


def _old_triangular_solve_both(
    g: Gradient,
    self: Array,
    A: Array,
    solution: Array,
    upper: bool,
    transpose: bool,
    unitriangular: bool,
    needs: Sequence[bool],
    F: Namespace,
) -> tuple[Gradient, Gradient]:
    of_b, of_A = None, g[1]
    if g[0] is not None:
        M = F.transpose(A, -1, -2) if transpose else A
        up = upper != transpose
        of_b = _solve_triangular_columns(g[0], M, up, True, unitriangular, F)
        if needs[1]:
            of_M = _solve_triangular_self(g[0], M, solution, up, True, unitriangular, F)
            of_M = F.transpose(of_M, -1, -2) if transpose else of_M
            of_A = of_M if of_A is None else of_A + of_M
    return (of_b if needs[0] else None, of_A if needs[1] else None)


def _older_triangle_reference(
    self: Array, A: Array, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[Array, Array]:
    turned = numpy.swapaxes(A, -1, -2) if transpose else A
    return _triangle_reference(turned, self, upper != transpose, True, unitriangular), A


operator(
    "triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False)",
    _old_triangular_solve,
    outputs=("solution", "cloned_coefficient"),
    graded=2,
    out=True,
    joint=_old_triangular_solve_both,
    doc="Return X of ``A @ X = self`` and a copy of A; :func:`linalg.solve_triangular` is the newer form.",
    samples=lambda make: [
        ((make(3, 2), dominant(make, 3)), {}),
        ((make(2, 1), dominant(make, 2, 2), False, True), {}),
        ((make(3, 1), dominant(make, 3), True, False, True), {}),
    ],
    reference=_older_triangle_reference,
)

# --- Cholesky factors -------------------------------------------------------------------------------------------------

_NOT_POSITIVE = (
    "The factorization could not be completed because the input is not positive-definite (the leading minor of order "
    "{} is not positive-definite)."
)
_NOT_POSITIVE_HINT = "Add a small multiple of the identity, or look at its eigenvalues with linalg.eigvalsh()."


def factor_with_info(xp: Namespace, A: Array) -> tuple[Array, Array]:
    """Return the lower Cholesky factors, column by column, and the order of the first minor that is not positive.

    That order is 0 for a matrix that has a factor. The others are left as they were found at that column.
    """
    L = xp.tril(A)
    infos = xp.zeros(A.shape[:-2], dtype="int32")
    for j in range(A.shape[-1]):
        column = L[..., j:, j] - xp.matmul(L[..., j:, :j], conj(L[..., j, :j, None]))[..., 0]
        square = column[..., :1].real
        going, positive = (infos == 0)[..., None], square > 0
        root = xp.sqrt(xp.where(positive, square, 1))
        first = xp.arange(column.shape[-1]) == 0
        column = xp.where(first, xp.where(positive, root, square), xp.where(positive, column / root, L[..., j:, j]))
        L[..., j:, j] = xp.where(going, column, L[..., j:, j])
        infos = xp.where((going & ~positive)[..., 0], xp.asarray(j + 1, dtype="int32"), infos)
    return L, infos


def _lower_factor(xp: Namespace, name: str, A: Array, checked: bool) -> tuple[Array, Array]:
    # CuPy tells of a failure only where somebody asks, which would wait for the device: there the columns are counted.
    if checked or xp is numpy:
        try:
            L = xp.linalg.cholesky(A)
        except numpy.linalg.LinAlgError:
            L = None
        # NaN is no failure to NumPy, and of an infinite root it makes zeros.
        if L is not None and not (xp is numpy and not numpy.isfinite(numpy.diagonal(L, 0, -2, -1)).all()):
            return L, xp.zeros(A.shape[:-2], dtype="int32")
    L, infos = factor_with_info(xp, A)
    if checked:
        check_infos(name, infos, _NOT_POSITIVE, _NOT_POSITIVE_HINT)
    return L, infos


def _factor(xp: Namespace, name: str, self: Array, upper: bool, checked: bool) -> tuple[Array, Array]:
    refuse_low("cholesky_cpu", self)
    L, infos = _lower_factor(xp, name, _turned(xp, self) if upper else self, checked)
    return (_turned(xp, L) if upper else L), infos


def _turned(xp: Namespace, A: Array) -> Array:
    return xp.ascontiguousarray(conj(xp.swapaxes(A, -1, -2)))


def _cholesky_ex(xp: Namespace, self: Array, upper: bool = False, checked_as: str | None = None) -> tuple[Array, Array]:
    need_square("linalg.cholesky", self)
    need_float("linalg.cholesky", self)
    return _factor(xp, checked_as or "", self, upper, checked_as is not None)


def _cholesky_self(g: Gradient, L: Array, upper: bool, F: Namespace) -> Gradient:
    # I. Murray, "Differentiation of the Cholesky decomposition" (2016), equation 10. As in PyTorch it is Hermitian but
    # for what stands on the diagonal: an imaginary part there has no meaning, as that of L is real.
    if upper:
        g, L = adjoint(g, F), adjoint(L, F)
    inner = F.tril(F.matmul(adjoint(L, F), g), -1)
    diagonal = F.sum(conj(L) * g, -2)  # the diagonal of L^H g
    inner = inner + adjoint(inner, F) + F.diag_embed(diagonal)
    half = F.linalg_solve_triangular(adjoint(L, F), inner, upper=True)
    return F.linalg_solve_triangular(L, half, upper=False, left=False) * 0.5


def _cholesky_reference(self: Array, upper: bool = False) -> Array:
    return numpy.linalg.cholesky(self, upper=upper)


def _product_reference(factor: Array, upper: bool) -> Array:
    """Return the matrix of which `factor` is the Cholesky factor."""
    L = numpy.swapaxes(numpy.triu(factor), -1, -2).conj() if upper else numpy.tril(factor)
    return L @ numpy.swapaxes(L, -1, -2).conj()


operator(
    "linalg_cholesky_ex(Tensor self, *, bool upper=False, str? checked_as=None)",
    _cholesky_ex,
    outputs=("L", "info"),
    out=True,
    method=False,
    public_name=False,
    derivatives={"self": lambda g, L, upper, F: _cholesky_self(g[0], L, upper, F)},
    doc="Return Cholesky factors, and the order of the first minor that is not positive; 0 if all are.",
    samples=lambda make: [
        ((dominant(make, 3),), {}),
        ((dominant(make, 2, 2),), {"upper": True}),
        ((make(0, 0),), {}),
    ],
    reference=lambda self, upper=False: (_cholesky_reference(self, upper), numpy.zeros(self.shape[:-2], "int32")),
)


@public(namespace="linalg")
def cholesky(A: Tensor, *, upper: bool = False, out: Tensor | None = None) -> Tensor:
    """Return the Cholesky factors of Hermitian positive-definite matrices: L of ``A = L @ L.mH``.

    Parameters
    ----------
    A : Tensor
        Of shape (..., n, n); only one triangle is read.
    upper : bool
        Return the upper factor ``L.mH``, and read the upper triangle.

    Raises
    ------
    LinAlgError
        If a matrix is not positive-definite.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.linalg.cholesky(gs.tensor([[4.0, 2.0], [2.0, 2.0]]))
    tensor([[2., 0.],
            [1., 1.]])
    """
    if out is not None:
        return inplace_and_out.into(out, "linalg.cholesky", [A], lambda: cholesky(A, upper=upper), exact=True)
    return OPERATORS["linalg_cholesky_ex"].function(A, upper=upper, checked_as="linalg.cholesky")[0]


@public(namespace="linalg")
def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False, out: Tensor | None = None) -> Results:
    """Return Cholesky factors, and 0 or the order of the first minor that is not positive, without raising.

    Parameters
    ----------
    A : Tensor
        Of shape (..., n, n).
    check_errors : bool
        Raise as :func:`cholesky` does.

    Returns
    -------
    linalg_cholesky_ex
        A named tuple of L and info, integers of the batch shape.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.linalg.cholesky_ex(gs.tensor([[4.0, 2.0], [2.0, 5.0]])).L
    tensor([[2., 0.],
            [1., 2.]])
    """
    name = "linalg.cholesky_ex" if check_errors else None
    return OPERATORS["linalg_cholesky_ex"].function(A, upper=upper, checked_as=name, out=out)


def _cholesky(xp: Namespace, self: Array, upper: bool = False) -> Array:
    need_matrices("cholesky", self)
    if not self.size:
        return self.copy()
    need_square("cholesky", self)
    return _factor(xp, "cholesky", self, upper, True)[0]


operator(
    "cholesky(Tensor self, bool upper=False)",
    _cholesky,
    out="castable",
    derivatives={"self": lambda g, result, upper, F: _cholesky_self(g, result, upper, F)},
    doc="Return the Cholesky factors of positive-definite matrices; :func:`linalg.cholesky` is the newer form.",
    samples=lambda make: [((dominant(make, 3),), {}), ((dominant(make, 2, 2), True), {})],
    reference=_cholesky_reference,
)


def _factor_solution(xp: Namespace, L: Array, B: Array, upper: bool) -> Array:
    first = conj(xp.swapaxes(L, -1, -2)) if upper else L
    half = triangular_solution(xp, first, B, upper=False)
    return triangular_solution(xp, L if upper else conj(xp.swapaxes(L, -1, -2)), half, upper=True)


def _cholesky_solve(xp: Namespace, self: Array, input2: Array, upper: bool = False) -> Array:
    for name, array in (("b", self), ("u", input2)):
        if array.ndim < 2:
            raise RuntimeError(f"{name} should have at least 2 dimensions, but has {array.ndim} dimensions instead")
    rows, columns = input2.shape[-2:]
    if rows != columns:
        raise RuntimeError(f"A must be batches of square matrices, but they are {rows} by {columns} matrices")
    if rows != self.shape[-2]:
        raise RuntimeError(
            f"Incompatible matrix sizes for cholesky_solve: each A matrix is {rows} by {columns} but each b matrix "
            f"is {self.shape[-2]} by {self.shape[-1]}"
        )
    message = "Expected b and A to have the same dtype, but found b of type {} and A of type {} instead."
    need_one_dtype(message, self, input2)
    need_fitting("cholesky_solve", input2, self)
    refuse_low("cholesky_solve_cpu", self)
    return _factor_solution(xp, input2, self, upper)


def _cholesky_solve_input2(
    g: Gradient, self_shape: Shape, input2: Array, result: Array, upper: bool, F: Namespace
) -> Gradient:
    common = F.matmul(F.cholesky_solve(g, input2, upper), adjoint(result, F))
    common = common + adjoint(common, F)
    return -(F.matmul(input2, common) if upper else F.matmul(common, input2))


operator(
    "cholesky_solve(Tensor self, Tensor input2, bool upper=False)",
    _cholesky_solve,
    out="castable",
    derivatives={
        "self": lambda g, input2, upper, F: F.cholesky_solve(g, input2, upper),
        "input2": _cholesky_solve_input2,
    },
    doc="Return X of ``A @ X = self``, given the Cholesky factor `input2` of A.",
    samples=lambda make: [
        ((make(3, 2), dominant(make, 3)), {}),
        ((make(2, 1), dominant(make, 2, 2), True), {}),
    ],
    reference=lambda self, factor, upper=False: numpy.linalg.solve(_product_reference(factor, upper), self),
)


def _cholesky_inverse(xp: Namespace, self: Array, upper: bool = False) -> Array:
    need_square("cholesky_inverse", self)
    refuse_low("cholesky_inverse_out_cpu", self)
    return _factor_solution(xp, self, xp.eye(self.shape[-1], dtype=self.dtype), upper)


def _cholesky_inverse_self(g: Gradient, self: Array, result: Array, upper: bool, F: Namespace) -> Gradient:
    common = F.matmul(F.matmul(result, g + adjoint(g, F)), result)
    return -(F.matmul(self, common) if upper else F.matmul(common, self))


operator(
    "cholesky_inverse(Tensor self, bool upper=False)",
    _cholesky_inverse,
    out="castable",
    derivatives={"self": _cholesky_inverse_self},
    doc="Return the inverse of A, given its Cholesky factor.",
    samples=lambda make: [((dominant(make, 3),), {}), ((dominant(make, 2, 2), True), {})],
    reference=lambda self, upper=False: numpy.linalg.inv(_product_reference(self, upper)),
)

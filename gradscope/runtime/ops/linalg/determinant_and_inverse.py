"""Determinants, inverses, and products of vectors and matrices beyond matmul."""

from __future__ import annotations

import itertools
import math
from collections import namedtuple
from typing import NamedTuple

import numpy

from ... import autocast, state
from ...memory import device as devices
from ...memory.dtype import scalar_type
from ...tensor.tensor import Tensor
from ..declaration.annotations import Array, Gradient, Namespace, Results, Shape
from ..declaration.references import solved
from ..declaration.registry import METHODS, OPERATORS, operator, public
from ..execution import inplace_and_out
from ..execution.array_errors import LinAlgError
from ..execution.bare_functions import conj
from ..losses.distances import are_many, has_compiled_loops
from ..shape.reshape import axis_of
from .lu import lu_in_place
from .matrix_checks import (
    adjoint,
    batch_of,
    first_failure,
    is_vector,
    need_fitting,
    need_float,
    need_matrices,
    need_one_dtype,
    need_square,
    refuse_low,
)

# --- determinants and inverses ----------------------------------------------------------------------------------------


def need_regular_dtype(name: str, array: Array) -> None:
    """Raise for what are not square matrices of a dtype that is computed with."""
    need_square(f"linalg.{name}", array)
    need_float(f"linalg.{name}", array)
    if name == "det":
        refuse_low("lu_cpu", array)
    if array.dtype.itemsize < 4:
        raise RuntimeError(
            f"linalg.{name}: Low precision dtypes not supported. Got {scalar_type(array.dtype)}\n"
            "Convert it with .float()."
        )


def _det(xp: Namespace, self: Array) -> Array:
    need_regular_dtype("det", self)
    return xp.asarray(xp.linalg.det(self))


class _SingularValues(NamedTuple):
    """The singular value decomposition of square matrices, of which those with a NaN or an infinity are zeros."""

    u: Array
    s: Array
    vh: Array
    sign: Array  # the product of the determinants of u and vh, with two more dimensions
    finite: Array

    @classmethod
    def of(cls, xp: Namespace, matrices: Array) -> _SingularValues:
        """Decompose matrices."""
        # The decomposition of a matrix with a NaN or an infinity would not converge, and stop those beside it too.
        finite = xp.isfinite(matrices).all(axis=(-2, -1), keepdims=True)
        u, s, vh = xp.linalg.svd(xp.where(finite, matrices, 0))
        sign = xp.asarray(xp.linalg.det(u) * xp.linalg.det(vh))
        return cls(u, s, vh, sign[..., None, None], finite)

    def product_without(self, xp: Namespace, *places: int) -> Array:
        """Return the product of all singular values but some."""
        kept = [i for i in range(self.s.shape[-1]) if i not in places]
        return self.s[..., kept].prod(axis=-1)


def _cofactors(xp: Namespace, self: Array) -> Array:
    """Return the cofactors of square matrices, singular ones too.

    With the singular values s of ``u @ diag(s) @ vh`` they are ``det(u) det(vh) conj(u) @ diag(p) @ conj(vh)``, where
    each p is the product of the other singular values.
    """
    if not self.size:
        return self.copy()
    values = _SingularValues.of(xp, self)
    others = xp.stack([values.product_without(xp, i) for i in range(self.shape[-1])], axis=-1)
    found = values.sign * xp.matmul(conj(values.u) * others[..., None, :], conj(values.vh))
    return xp.where(values.finite, found, self.dtype.type(math.nan))


def _cofactors_derivative(xp: Namespace, self: Array, direction: Array) -> Array:
    """Return how the cofactors of square matrices change in a direction, of singular ones too.

    Between singular vectors, ``b = u^H direction v``, cofactors of the diagonal s change on the diagonal by the sum of
    ``p_ij b_jj`` over the other places j, and beside it by ``-p_ij b_ji``, where p_ij is the product of all singular
    values but the two.
    """
    size = self.shape[-1]
    if not self.size:
        return self.copy()
    values = _SingularValues.of(xp, self)
    u, vh = values.u, values.vh
    inside = xp.matmul(xp.matmul(conj(xp.swapaxes(u, -1, -2)), direction), conj(xp.swapaxes(vh, -1, -2)))
    found = xp.zeros_like(inside)
    for i, j in itertools.permutations(range(size), 2):
        without = values.product_without(xp, i, j)
        found[..., i, i] += without * inside[..., j, j]
        found[..., i, j] = -without * inside[..., j, i]
    turned = values.sign * xp.matmul(xp.matmul(conj(u), found), conj(vh))
    return xp.where(values.finite, turned, self.dtype.type(math.nan))


def _third_derivative(g: Gradient, self: Array, direction: Array, F: Namespace) -> Gradient:
    """Return the derivative of the determinant in two directions, and by the matrix, which must have an inverse.

    It is the determinant times what Jacobi's formula gives for its logarithm's derivatives, with x the inverse, a and b
    the traces of ``x g`` and ``x direction`` and c that of ``x g x direction``:
    ``(a b - c) x - a (x direction x) - b (x g x) + x g x direction x + x direction x g x``, transposed.
    """
    x, one = F.inverse(self), (*self.shape[:-2], 1, 1)
    first, second = F.matmul(x, g), F.matmul(x, direction)

    def trace(product: Array) -> Array:
        return F.reshape(F.sum(F.diagonal(product, 0, -2, -1), -1), one)

    both = F.matmul(first, second)
    a, b, c = trace(first), trace(second), trace(both)
    inside = (a * b - c) * x - F.matmul(a * second + b * first - both - F.matmul(second, first), x)
    return F.reshape(F.det(self), one) * F.transpose(inside, -1, -2)


operator(
    "det(Tensor self)",
    _det,
    node="LinalgDetBackward0",
    derivatives={
        "self": lambda g, self, F: F.reshape(g, (*self.shape[:-2], 1, 1)) * conj(F.cofactors(self)),
    },
    doc="Return the determinant of square matrices.",
    samples=lambda make: [((make(3, 3),), {}), ((make(2, 2, 2),), {}), ((make(1, 1),), {})],
    reference="numpy.linalg.det",
)


def _cofactors_reference(self: Array) -> Array:
    """The determinants of what is left when a row and a column are taken out, with their signs."""
    found = numpy.empty_like(self)
    for i, j in numpy.ndindex(self.shape[-2:]):
        minor = numpy.delete(numpy.delete(self, i, -2), j, -1)
        found[..., i, j] = (-1) ** (i + j) * numpy.linalg.det(minor)
    return found


operator(
    "cofactors(Tensor self)",
    _cofactors,
    method=False,
    public_name=False,
    derivatives={"self": lambda g, self, F: conj(F.cofactors_derivative(self, conj(g)))},
    doc="Return the cofactors of square matrices: the gradient of the determinant.",
    samples=lambda make: [((make(3, 3),), {}), ((make(2, 2, 2),), {})],
    reference=_cofactors_reference,
)


def _cofactors_derivative_reference(self: Array, direction: Array) -> Array:
    """The determinants of what is left when two rows and two columns are taken out, with their signs."""
    found = numpy.zeros_like(self)
    for i, j, row, column in numpy.ndindex(self.shape[-2:] * 2):
        if row != i and column != j:
            minor = numpy.delete(numpy.delete(self, [i, row], -2), [j, column], -1)
            sign = (-1) ** (i + j + row - (row > i) + column - (column > j))
            found[..., i, j] += sign * numpy.linalg.det(minor) * direction[..., row, column]
    return found


operator(
    "cofactors_derivative(Tensor self, Tensor direction)",
    _cofactors_derivative,
    method=False,
    public_name=False,
    # The second derivative of the determinant is symmetric: a direction and a gradient may change places.
    derivatives={
        "self": lambda g, self, direction, F: conj(_third_derivative(conj(g), self, direction, F)),
        "direction": lambda g, self, F: conj(F.cofactors_derivative(self, conj(g))),
    },
    doc="Return how the cofactors of square matrices change in a direction: the determinant's second derivative.",
    samples=lambda make: [((make(3, 3), make(3, 3)), {}), ((make(2, 2, 2), make(2, 2, 2)), {})],
    reference=_cofactors_derivative_reference,
)


def _inverse(xp: Namespace, self: Array) -> Array:
    need_regular_dtype("inv", self)
    if not self.size:
        return self.copy()
    try:
        return xp.linalg.inv(self)
    except numpy.linalg.LinAlgError:
        raise _singular("linalg.inv", xp, self, SINGULAR) from None


def _singular(name: str, xp: Namespace, A: Array, message: str) -> LinAlgError:
    """Return the error for the first singular matrix."""
    failed = first_failure(lu_in_place(xp, A)[2])
    if failed is None:  # rounded otherwise than by LAPACK, no pivot is exactly 0
        return LinAlgError(f"{name}: The input matrix is singular.\nIts determinant is 0, up to rounding.")
    return LinAlgError(f"{name}: {failed[0]}{message.format(failed[1])}\nIts determinant is 0.")


SINGULAR = "The diagonal element {} is zero, the inversion could not be completed because the input matrix is singular."


def inverse_self(g: Gradient, result: Array, F: Namespace) -> Gradient:
    """Return the gradient of matrices that were inverted."""
    turned = adjoint(result, F)
    return -F.matmul(F.matmul(turned, g), turned)


operator(
    "inverse(Tensor self)",
    _inverse,
    out=True,
    node="LinalgInvExBackward0",
    derivatives={"self": inverse_self},
    doc="Return the inverse of square matrices.",
    samples=lambda make: [((make(3, 3),), {}), ((make(2, 2, 2),), {}), ((make(0, 0),), {})],
    reference="numpy.linalg.inv",
)


def check_solve(name: str, A: Array, B: Array, left: bool) -> tuple[Array, bool]:
    """Return B as columns, and whether they were vectors, after PyTorch's checks."""
    need_regular_dtype(name.removeprefix("linalg."), A)
    need_one_dtype(
        name + ": Expected A and B to have the same dtype, but found A of type {} and B of type {} instead", A, B
    )
    vector = is_vector(A.shape, B.shape)
    columns = B[..., None] if vector else B
    need_matrices(name, columns, "B")
    need_fitting(name, A, columns, left)
    if vector and not left:
        raise RuntimeError(
            f"{name}: Vector broadcasting of the left hand side is not supported for left=False. In this case "
            "linalg.solve is equivalent to B / A.squeeze(-1)"
        )
    return columns, vector


def _solve(xp: Namespace, self: Array, other: Array, left: bool = True) -> Array:
    columns, vector = check_solve("linalg.solve", self, other, left)
    A, B = batch_of(xp, self, columns)
    if not left:
        A, B = xp.swapaxes(A, -1, -2), xp.swapaxes(B, -1, -2)
    try:
        X = xp.linalg.solve(A, B)
    except numpy.linalg.LinAlgError:
        message = "The solver failed because the input matrix is singular."
        raise _singular("gradscope.linalg.solve", xp, self, message) from None
    if not left:
        X = xp.ascontiguousarray(xp.swapaxes(X, -1, -2))
    return X[..., 0] if vector else X


def solve_other(g: Gradient, self: Array, left: bool, F: Namespace) -> Gradient:
    """Return the gradient of the right-hand sides of equations, infinite where elimination meets a 0 only this way."""
    return F.linalg_solve_ex(adjoint(self, F), g, left=left)[0]


def solve_self(g: Gradient, self: Array, other_shape: Shape, result: Array, left: bool, F: Namespace) -> Gradient:
    """Return the gradient of the matrices of equations."""
    of_other = solve_other(g, self, left, F)
    if is_vector(self.shape, other_shape):
        return -F.unsqueeze(of_other, -1) * conj(F.unsqueeze(result, -2))
    return -(F.matmul(of_other, adjoint(result, F)) if left else F.matmul(adjoint(result, F), of_other))


def _solve_reference(self: Array, other: Array, left: bool = True) -> Array:
    return solved(self, other, left)


operator(
    "linalg_solve(Tensor self, Tensor other, *, bool left=True)",
    lambda xp, self, other, left=True: _solve(xp, self, other, left),
    out=True,
    method=False,
    public_name=False,
    node="LinalgSolveExBackward0",
    derivatives={"self": solve_self, "other": solve_other},
    doc="Return the solution x of ``self @ x = other``.",
    samples=lambda make: [
        ((make(3, 3), make(3, 2)), {}),
        ((make(2, 3, 3), make(3)), {}),
        ((make(2, 2, 2), make(2, 2)), {}),
        ((make(2, 2), make(3, 2, 1)), {}),
        ((make(2, 2), make(3, 2)), {"left": False}),
    ],
    reference=_solve_reference,
)


def _slogdet(xp: Namespace, A: Array) -> tuple[Array, Array]:
    need_regular_dtype("slogdet", A)
    sign, logarithm = xp.linalg.slogdet(A)
    return xp.asarray(sign), xp.asarray(logarithm)


def _slogdet_gradient(g: Gradient, A: Array, sign: Array, F: Namespace) -> Gradient:
    # d log det A is the trace of A^-1 dA: its real part changes the logarithm, its imaginary part turns a complex sign.
    g_sign, factor = g
    if sign.dtype.kind == "c" and g_sign is not None:
        turn = conj(sign) * g_sign
        turn = turn - F.real(turn)
        factor = turn if factor is None else factor + turn
    if factor is None:
        return F.zeros_like(A)
    return F.reshape(factor, (*A.shape[:-2], 1, 1)) * adjoint(F.linalg_inv_ex(A)[0], F)


def _slogdet_reference(A: Array) -> tuple[Array, Array]:
    return tuple(numpy.linalg.slogdet(A))


operator(
    "linalg_slogdet(Tensor A)",
    _slogdet,
    outputs=("sign", "logabsdet"),
    graded=2,
    out=True,
    derivatives={"A": _slogdet_gradient},
    doc="Return sign and logarithm of the absolute value of the determinant of square matrices.",
    samples=lambda make: [((make(3, 3),), {}), ((make(2, 2, 2),), {})],
    reference=_slogdet_reference,
)

_Slogdet = namedtuple("slogdet", ["sign", "logabsdet"])  # type: ignore[name-match]


@public
def slogdet(self: Tensor, *, out: Tensor | None = None) -> Results:
    """Return sign and logarithm of the absolute value of the determinant of square matrices.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.slogdet(gs.tensor([[0.0, 1.0], [1.0, 0.0]]))
    slogdet(sign=tensor(-1.), logabsdet=tensor(0.))
    """
    return _Slogdet(*OPERATORS["linalg_slogdet"].function(self, out=out))


@public
def logdet(self: Tensor) -> Tensor:
    """Return the logarithm of the determinant of square matrices: NaN where it is a negative number.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.logdet(gs.tensor([[2.0, 0.0], [0.0, 3.0]]))
    tensor(1.7918)
    """
    sign, logarithm = slogdet(self)
    if sign.is_complex():
        return sign.log() + logarithm
    nan = sign.new_full((), math.nan)
    return OPERATORS["where.self"].function(sign == -1, nan, logarithm)


@public(alias=("linalg.matrix_power",))
def matrix_power(self: Tensor, n: int, *, out: Tensor | None = None) -> Tensor:
    """Return the `n`-th power of square matrices; a negative one is that of the inverse.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.matrix_power(gs.tensor([[1.0, 1.0], [0.0, 1.0]]), 3)
    tensor([[1., 3.],
            [0., 1.]])
    """
    if out is not None:
        return inplace_and_out.into(out, "matrix_power", [self], lambda: matrix_power(self, n), exact=True)
    need_square("linalg.matrix_power", self._array)
    if not hasattr(n, "__index__"):
        raise TypeError(
            f"linalg_matrix_power(): argument 'n' (position 2) must be int, not {type(n).__name__}\n"
            "For other powers, take those of the eigenvalues: linalg.eigh()."
        )
    if n < 0:
        return matrix_power(METHODS["inverse"](self), -n)
    if n == 0:
        eye = devices.array_module(self._array).eye(self._array.shape[-1], dtype=self._dtype)
        return self.clone().copy_(self._wrap(eye))  # of the graph, as in PyTorch: its gradient is 0
    result: Array = None
    square = self
    while n:
        if n & 1:
            result = square if result is None else METHODS["matmul"](result, square)
        n >>= 1
        square = METHODS["matmul"](square, square) if n else square
    return result if result is not self else self.clone()


# --- products ---------------------------------------------------------------------------------------------------------


def _cross(xp: Namespace, self: Array, other: Array, dim: int = -1) -> Array:
    if self.ndim != other.ndim:
        raise RuntimeError(
            f"linalg.cross: inputs must have the same number of dimensions.\nThey have {self.ndim} and {other.ndim}."
        )
    axis = axis_of(dim, self.ndim)
    for array in (self, other):
        if array.ndim == 0 or array.shape[axis] != 3:
            raise RuntimeError(
                f"linalg.cross: inputs dimension {dim} must have length 3. Got {_length(self, axis)} and "
                f"{_length(other, axis)}"
            )

    def part(array: Array, i: int) -> Array:
        return array[(*(slice(None),) * axis, slice(i, i + 1))]

    parts = [part(self, (i + 1) % 3) * part(other, (i + 2) % 3) for i in range(3)]
    parts = [p - part(self, (i + 2) % 3) * part(other, (i + 1) % 3) for i, p in enumerate(parts)]
    return xp.concatenate(parts, axis=axis)


def _length(array: Array, axis: int) -> Array:
    return array.shape[axis] if axis < array.ndim else "none"


def _cross_reference(self: Array, other: Array, dim: int = -1) -> Array:
    a, b = numpy.moveaxis(self, dim, 0), numpy.moveaxis(other, dim, 0)
    return numpy.stack([a[i - 2] * b[i - 1] - a[i - 1] * b[i - 2] for i in range(3)], dim)


operator(
    "linalg_cross(Tensor self, Tensor other, *, int dim=-1)",
    lambda xp, self, other, dim=-1: _cross(xp, self, other, dim),
    out="exact",
    derivatives={
        "self": lambda g, other, dim, F: F.linalg_cross(conj(other), g, dim=dim),
        "other": lambda g, self, dim, F: F.linalg_cross(g, conj(self), dim=dim),
    },
    doc="Return the cross products of vectors of three elements along a dimension.",
    samples=lambda make: [((make(2, 3), make(2, 3)), {}), ((make(3, 2), make(3, 1)), {"dim": 0})],
    reference=_cross_reference,
)


@public
def cross(self: Tensor, other: Tensor, dim: int | None = None, *, out: Tensor | None = None) -> Tensor:
    """Return the cross products along `dim`, or along the first dimension of size 3.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.cross(gs.tensor([1.0, 0.0, 0.0]), gs.tensor([0.0, 1.0, 0.0]), dim=0)
    tensor([0., 0., 1.])
    """
    if dim is None:
        found = [axis for axis, size in enumerate(self._array.shape) if size == 3]
        if not found:
            raise RuntimeError(f"no dimension of size 3 in input\nIts shape is {list(self._array.shape)}.")
        dim = found[0]
    return OPERATORS["linalg_cross"].function(self, other, dim=dim, out=out)


@public
def kron(self: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the Kronecker product: each element of `self` times `other`, as a block.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.kron(gs.tensor([1, 2]), gs.tensor([1, 10]))
    tensor([ 1, 10,  2, 20])
    """
    if out is not None:
        return inplace_and_out.into(out, "kron", [self, other], lambda: kron(self, other))
    ndim = max(self._array.ndim, other._array.ndim)
    shapes = [(1,) * (ndim - t._array.ndim) + t._array.shape for t in (self, other)]
    rows = [size for a in shapes[0] for size in (a, 1)]
    columns = [size for b in shapes[1] for size in (1, b)]
    product = METHODS["reshape"](self, *rows) * METHODS["reshape"](other, *columns)
    return OPERATORS["unsafe_view"].function(product, tuple(a * b for a, b in zip(*shapes, strict=True)))


@public
def ger(self: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Another name of :func:`outer`.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.ger(gs.tensor([1.0, 2.0]), gs.tensor([3.0, 4.0]))
    tensor([[3., 4.],
            [6., 8.]])
    """
    return METHODS["outer"](self, vec2, out=out)


def _vdot(xp: Namespace, self: Array, other: Array) -> Array:
    return OPERATORS["dot"].run_forward(xp, conj(self), other)


operator(
    "vdot(Tensor self, Tensor other)",
    _vdot,
    out=True,
    derivatives={"self": lambda g, other: conj(g) * other, "other": lambda g, self: g * self},
    doc="Return the inner product of the conjugate of `self` with `other`.",
    samples=lambda make: [((make(3), make(3)), {})],
    reference="numpy.vdot",
)


# --- distances --------------------------------------------------------------------------------------------------------


@public(method=False)
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str | None = None) -> Tensor:
    """Return the `p`-norm distances between the rows of batches of matrices.

    Parameters
    ----------
    x1 : Tensor
        Of shape (..., P, M).
    x2 : Tensor
        Of shape (..., R, M); the result has shape (..., P, R).
    compute_mode
        Taken for PyTorch's sake: distances have the digits of differences.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.cdist(gs.tensor([[0.0, 0.0]]), gs.tensor([[3.0, 4.0], [0.0, 1.0]]))
    tensor([[5., 1.]])
    """
    if state.casting and autocast.covers("cdist", (x1, x2)):
        return autocast.call("cdist", cdist, x1, x2, p, compute_mode)
    for name, x in (("X1", x1), ("X2", x2)):
        if x._array.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {x._array.ndim}D")
    if x1._array.shape[-1] != x2._array.shape[-1]:
        raise RuntimeError(
            f"X1 and X2 must have the same number of columns. X1: {x1._array.shape[-1]} X2: {x2._array.shape[-1]}"
        )
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    if (p == 2 and are_many(x1._array, x2._array)) or has_compiled_loops(x1._array, x2._array, p):
        return OPERATORS["cdist.rows"].function(x1, x2, float(p))
    apart = METHODS["unsqueeze"](x1, -2) - METHODS["unsqueeze"](x2, -3)
    if not x1._array.shape[-1]:
        return METHODS["sum"](apart, -1)
    if p == 0:  # how many differ, of derivative 0; NaN stays
        return METHODS["sum"](METHODS["clamp_max"](METHODS["ceil"](METHODS["abs"](apart)), 1), -1)
    distance = METHODS["norm"](apart, p, -1)
    if p != 2 and p >= 1:
        return distance
    # Rows that are equal send back nothing, of an infinite gradient too: that of a norm would be NaN.
    return METHODS["masked_fill"](distance, distance == 0, 0)


# --- under their names in linalg --------------------------------------------------------------------------------------


@public(namespace="linalg")
def det(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the determinant of square matrices.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.linalg.det(gs.tensor([[2.0, 1.0], [1.0, 3.0]]))
    tensor(5.)
    """
    determinant = OPERATORS["det"].function
    return (
        determinant(A)
        if out is None
        else inplace_and_out.into(out, "linalg.det", [A], lambda: determinant(A), exact=True)
    )


@public(namespace="linalg")
def inv(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the inverse of square matrices.

    Raises
    ------
    LinAlgError
        If a matrix is singular.
    RuntimeError
        If it is not square.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.linalg.inv(gs.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    return OPERATORS["inverse"].function(A, out=out)


@public(namespace="linalg")
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


@public(namespace="linalg")
def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """View the diagonals of matrices, as :func:`gradscope.diagonal` does, in their last two dimensions.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.linalg.diagonal(gs.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([1., 4.])
    """
    return OPERATORS["diagonal"].function(A, offset, dim1, dim2)

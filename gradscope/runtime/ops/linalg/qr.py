"""QR factors, and products of Householder reflections."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy

from ...tensor.tensor import Tensor
from ..declaration.annotations import Array, Gradient, Namespace, Results
from ..declaration.references import each_matrix
from ..declaration.registry import OPERATORS, operator, public
from ..declaration.samples import dominant
from ..execution.bare_functions import conj
from . import lapack
from .matrix_checks import adjoint, need_float, need_matrices, need_one_dtype, refuse_low

__all__ = ["householder_product", "qr"]

# --- QR ---------------------------------------------------------------------------------------------------------------


def _qr(xp: Namespace, A: Array, mode: str = "reduced") -> tuple[Array, Array]:
    need_matrices("linalg.qr", A)
    need_float("linalg.qr", A)
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    refuse_low("geqrf_cpu", A)
    if mode == "r":
        return xp.empty(0, dtype=A.dtype), xp.linalg.qr(A, "r")
    Q, R = xp.linalg.qr(A, mode)
    return Q, R


def _qr_gradient(g: Gradient, Q: Array, R: Array, mode: str, F: Namespace) -> Gradient:
    if mode == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use "
            "linalg.qr(A, mode='reduced') if you are going to differentiate through linalg.qr."
        )
    rows, columns = Q.shape[-2], R.shape[-1]
    if mode == "complete" and rows > columns:
        raise RuntimeError(
            "The QR decomposition is not differentiable when mode='complete' and nrows > ncols.\nUse mode='reduced'."
        )
    gQ, gR = g
    if rows >= columns:
        return _tall_gradient(gQ, gR, Q, R, F)
    # A wide matrix is [X, Y] with X = Q R1 square and Y = Q R2: R2 = Q^H Y is one more use of Q
    # (D. Roberts and L. Roberts, "QR and LQ decomposition matrix backpropagation algorithms for square, wide, and
    # deep matrices and their software implementation", 2020).
    R1, R2 = R[..., :rows], R[..., rows:]
    if gR is None:
        return F.cat([_tall_gradient(gQ, None, Q, R1, F), F.zeros_like(R2)], -1)
    more = F.matmul(F.matmul(Q, R2), adjoint(gR[..., rows:], F))
    gX = _tall_gradient(more if gQ is None else gQ + more, gR[..., :rows], Q, R1, F)
    return F.cat([gX, F.matmul(Q, gR[..., rows:])], -1)


def _tall_gradient(gQ: Array, gR: Array, Q: Array, R: Array, F: Namespace) -> Array:
    """Return the gradient of matrices with no more columns than rows.

    S. F. Walter and L. Lehmann, "Algorithmic differentiation of linear algebra functions with application in optimum
    experimental design" (2010); H.-J. Liao, J.-G. Liu, L. Wang and T. Xiang, "Differentiable programming tensor
    networks" (2019).
    """
    turn = None if gR is None else F.matmul(gR, adjoint(R, F))
    if gQ is not None:
        of_Q = F.matmul(adjoint(Q, F), gQ)
        turn = -of_Q if turn is None else turn - of_Q
    upper = F.triu(turn)
    diagonal = F.diagonal(upper, 0, -2, -1)
    symmetric = upper + adjoint(upper, F) - F.diag_embed(F.real(diagonal) if R.dtype.kind == "c" else diagonal)
    whole = F.matmul(Q, symmetric)
    return F.linalg_solve_triangular(adjoint(R, F), whole if gQ is None else whole + gQ, upper=False, left=False)


operator(
    "linalg_qr(Tensor A, str mode='reduced')",
    _qr,
    outputs=("Q", "R"),
    graded=2,
    out=True,
    method=False,
    public_name=False,
    derivatives={"A": _qr_gradient},
    doc="Return the QR decomposition of matrices.",
    samples=lambda make: [
        ((dominant(make, 3),), {}),
        ((make(4, 2),), {}),
        ((make(2, 2, 3),), {}),
        ((make(2, 3), "complete"), {}),
    ],
    reference="numpy.linalg.qr",
)


@public(namespace="linalg")
def qr(A: Tensor, mode: str = "reduced", *, out: Tensor | None = None) -> Results:
    """Return the QR decomposition ``A = Q @ R``: Q with orthonormal columns, R upper triangular.

    Parameters
    ----------
    A : Tensor
        Of shape (..., m, n).
    mode : {"reduced", "complete", "r"}
        Whether Q has min(m, n) or m columns, or only R is computed.

    Returns
    -------
    linalg_qr
        A named tuple of Q (empty where it was not asked for) and R.

    Notes
    -----
    There is a gradient where the first min(m, n) columns of `A` are linearly independent, and none in the modes "r",
    and "complete" with m > n.

    Examples
    --------
    >>> import gradscope as gs
    >>> Q, R = gs.linalg.qr(gs.tensor([[3.0, 1.0], [4.0, 2.0]]))
    >>> gs.allclose(Q @ R, gs.tensor([[3.0, 1.0], [4.0, 2.0]]))
    True
    """
    return OPERATORS["linalg_qr"].function(A, mode, out=out)


# --- Householder reflections ------------------------------------------------------------------------------------------


def _geqrf(xp: Namespace, self: Array) -> tuple[Array, Array]:
    if self.ndim < 2:
        raise RuntimeError("gradscope.geqrf: input must have at least 2 dimensions.")
    refuse_low("geqrf_cpu", self)
    raw, tau = xp.linalg.qr(self, "raw")
    return xp.ascontiguousarray(xp.swapaxes(raw, -1, -2)).astype(self.dtype, copy=False), tau.astype(self.dtype)


def _no_geqrf_derivative(g: Gradient) -> Gradient:
    raise NotImplementedError("the derivative for 'geqrf' is not implemented.\nUse linalg.qr(), which has one.")


def _geqrf_reference(self: Array) -> list[Array]:
    # SciPy loads when a test asks for the reference.
    from scipy.linalg.lapack import get_lapack_funcs

    return each_matrix(lambda A: get_lapack_funcs("geqrf", (A,))(A)[:2], self)


def _reflected_reference(vectors: Array, tau: Array) -> Array:
    """Return the product of Householder reflections ``1 - tau v v'``, as square matrices."""
    size = vectors.shape[-2]
    product = numpy.broadcast_to(numpy.eye(size), (*vectors.shape[:-2], size, size))
    for column in range(tau.shape[-1]):
        v = numpy.where(numpy.arange(size) > column, vectors[..., column], 0)
        v[..., column] = 1
        product = product - tau[..., column, None, None] * (product @ v[..., None]) @ v[..., None, :].conj()
    return product


def _ormqr_reference(vectors: Array, tau: Array, other: Array, left: bool = True, transpose: bool = False) -> Array:
    Q = _reflected_reference(vectors, tau)
    Q = numpy.swapaxes(Q, -1, -2).conj() if transpose else Q
    return Q @ other if left else other @ Q


operator(
    "geqrf(Tensor self)",
    _geqrf,
    outputs=("a", "tau"),
    graded=2,
    out=True,
    derivatives={"self": _no_geqrf_derivative},
    doc="Return a QR decomposition as LAPACK keeps it: R and, below its diagonal, Householder vectors; their factors.",
    samples=lambda make: [((make(3, 2).detach(),), {}), ((make(2, 2, 3).detach(),), {})],
    reference=_geqrf_reference,
)


def _vector(xp: Namespace, self: Array, i: int) -> Array:
    """Return the i-th Householder vector, as a column: 1 on the diagonal of `self`, and what is below it."""
    column = xp.tril(self, -1)[..., i : i + 1]
    column[..., i, :] = 1
    return column


def _householder_product(xp: Namespace, input: Array, tau: Array) -> Array:
    name = "gradscope.linalg.householder_product"
    if input.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if input.shape[-2] < input.shape[-1]:
        raise RuntimeError(f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1]")
    if input.shape[-1] < tau.shape[-1]:
        raise RuntimeError(f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]")
    if input.shape[:-2] != tau.shape[:-1]:
        raise RuntimeError(
            f"{name}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got {list(tau.shape[:-1])}"
        )
    need_one_dtype(name + ": tau dtype {1} does not match input dtype {0}", input, tau)
    refuse_low("orgqr_cpu", input)
    if tau.size and lapack.is_quicker(input):
        return lapack.product_of_reflections(input, tau)
    Q = xp.zeros(input.shape, dtype=input.dtype)
    Q[...] = xp.eye(*input.shape[-2:], dtype=input.dtype)
    return _reflect(xp, input, tau, Q, reversed(range(tau.shape[-1])))


def _reflect(xp: Namespace, input: Array, tau: Array, C: Array, order: Iterable[int]) -> Array:
    """Apply reflections to the array C, which is written, in the order of their numbers."""
    for i in order:
        v = _vector(xp, input, i)
        C -= tau[..., i, None, None] * v * xp.matmul(conj(xp.swapaxes(v, -1, -2)), C)
    return C


def _reflections(g: Gradient, input: Array, tau: Array, Q: Array, F: Namespace) -> tuple[Gradient, Gradient]:
    """Return the gradients of the vectors and factors of the reflections H1 H2 ... that Q is a product of.

    ``Q = H1 Q2`` with ``Q2 = H2 Q3`` and so on: from the first reflection on, each is taken off, by its inverse, which
    has the factor ``tau / (tau |v|^2 - 1)``.
    """
    found, factors = [], []
    size = input.shape[-1]
    below, unit = F.tril(input, -1), F.tril(F.triu(F.ones_like(input)))
    for i in range(tau.shape[-1]):
        v, factor = below[..., i : i + 1] + unit[..., i : i + 1], F.unsqueeze(tau[..., i : i + 1], -1)
        vh = adjoint(v, F)
        inverse = factor / (factor * F.matmul(vh, v) - 1)
        Q = Q - inverse * F.matmul(v, F.matmul(vh, Q))
        row, of_row = F.matmul(vh, Q), F.matmul(vh, g)
        factors.append(-F.sum(of_row * conj(row), (-2, -1)))
        found.append(-conj(factor) * F.matmul(g, adjoint(row, F)) - factor * F.matmul(Q, adjoint(of_row, F)))
        g = g - conj(factor) * F.matmul(v, of_row)
    if not found:
        return None, None
    found += [F.zeros_like(found[0])] * (size - len(found))
    return F.tril(F.cat(found, -1), -1), F.stack(factors, -1)


operator(
    "linalg_householder_product(Tensor input, Tensor tau)",
    _householder_product,
    out="castable",
    method=False,
    public_name=False,
    joint=lambda g, input, tau, result, F: _reflections(g, input, tau, result, F),
    doc="Return the first columns of a product of Householder reflections.",
    samples=lambda make: [
        ((make(4, 2), make(2)), {}),
        ((make(2, 3, 3), make(2, 2)), {}),
        ((make(3, 2), make(0)), {}),
    ],
    reference=lambda input, tau: _reflected_reference(input, tau)[..., : input.shape[-1]],
)


@public(namespace="linalg")
def householder_product(A: Tensor, tau: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the first n columns of a product of Householder reflections, such as Q from ``geqrf``.

    Parameters
    ----------
    A : Tensor
        Of shape (..., m, n): below the diagonal of each column, a Householder vector.
    tau : Tensor
        Of shape (..., k) with k <= n: the factors of the reflections ``I - tau * v @ v.mH``.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.linalg.householder_product(gs.tensor([[1.0], [0.0]]), gs.tensor([2.0]))
    tensor([[-1.],
            [-0.]])
    """
    return OPERATORS["linalg_householder_product"].function(A, tau, out=out)


def _check_ormqr(self: Array, input2: Array, input3: Array, left: bool) -> None:
    name, side = "gradscope.ormqr", -2 if left else -1
    if self.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if input3.ndim < 2:
        raise RuntimeError(f"{name}: other must have at least 2 dimensions.")
    if input2.shape[-1] > self.shape[-1]:
        raise RuntimeError(f"{name}: tau.shape[-1] must be less than or equal to input.shape[-1]")
    if input2.shape[-1] != min(input3.shape[side], self.shape[-1]):
        raise RuntimeError(f"{name}: tau.shape[-1] must be equal to min(other.shape[{side}], input.shape[-1])")
    if input3.shape[side] != self.shape[-2]:
        raise RuntimeError(f"{name}: other.shape[{side}] must be equal to input.shape[-2]")
    for what, array, first in (("tau", input2, self.shape[:-2]), ("other", input3, self.shape[:-2])):
        rest = 1 if what == "tau" else 2
        if array.ndim - rest != self.ndim - 2:
            wanted = "one dimension less than" if rest == 1 else "the same dimensions as"
            raise RuntimeError(
                f"{name}: Expected {what} to have {wanted} input, but got {what}.ndim equal to {array.ndim} and "
                f"input.ndim is equal to {self.ndim}"
            )
        batch = array.shape[:-rest]
        if batch != first:
            raise RuntimeError(
                f"{name}: Expected batch dimensions of {what} to be equal to input.shape[:-2], but got {list(batch)}"
            )
        pair = f"{name}: Expected input and {what} to have the same dtype"
        need_one_dtype(pair + ", but input has dtype{} and " + what + " has dtype {}", self, array)


def _ormqr(
    xp: Namespace, self: Array, input2: Array, input3: Array, left: bool = True, transpose: bool = False
) -> Array:
    _check_ormqr(self, input2, input3, left)
    refuse_low("ormqr_cpu", self)
    if input2.size and lapack.is_quicker(input3):
        return lapack.multiply_reflections(self, input2, input3, left, transpose)
    # C Q is the adjoint of Q^H C^H; the adjoint of Q has the adjoint reflections in the other order.
    C = input3.copy() if left else conj(xp.swapaxes(input3, -1, -2)).copy()
    order = range(input2.shape[-1])
    if transpose == left:
        found = _reflect(xp, self, conj(input2), C, order)
    else:
        found = _reflect(xp, self, input2, C, reversed(order))
    return found if left else xp.ascontiguousarray(conj(xp.swapaxes(found, -1, -2)))


def _ormqr_all(
    g: Gradient,
    self: Array,
    input2: Array,
    input3: Array,
    left: bool,
    transpose: bool,
    needs: Sequence[bool],
    F: Namespace,
) -> tuple[Gradient, ...]:
    of_C = F.ormqr(self, input2, g, left, not transpose) if needs[2] else None
    if not (needs[0] or needs[1]):
        return None, None, of_C
    of_Q = F.matmul(g, adjoint(input3, F)) if left else F.matmul(adjoint(input3, F), g)
    if transpose:
        of_Q = F.matmul(input3, adjoint(g, F)) if left else F.matmul(adjoint(g, F), input3)
    eye = F.diag_embed(F.ones_like(F.sum(of_Q, -1)))
    return (*_reflections(of_Q, self, input2, F.ormqr(self, input2, eye), F), of_C)


operator(
    "ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False)",
    _ormqr,
    out="castable",
    joint=_ormqr_all,
    doc="Multiply matrices by a product of Householder reflections, or by its adjoint, from the left or the right.",
    samples=lambda make: [
        ((make(4, 2), make(2), make(4, 3)), {}),
        ((make(2, 3, 3), make(2, 3), make(2, 2, 3), False), {}),
        ((make(3, 2), make(2), make(3, 1), True, True), {}),
        ((make(3, 2), make(2), make(2, 3), False, True), {}),
    ],
    reference=_ormqr_reference,
)

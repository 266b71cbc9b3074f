"""Singular values, eigenvalues, and their vectors.

The derivatives are those of S. F. Walter and L. Lehmann, "Algorithmic differentiation of linear algebra functions with
application in optimum experimental design" (2010), and of M. B. Giles, "An extended collection of matrix derivative
results for forward and reverse mode algorithmic differentiation" (2008), in their complex form. Vectors are unique up
to a sign or a phase: a loss has a gradient only if it does not depend on it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy

from ...memory import device as devices
from ...memory.dtype import INEXACT, scalar_type
from ...tensor import tangents
from ...tensor.tensor import Tensor
from ..declaration.annotations import Array, Gradient, Namespace, Operand, Results
from ..declaration.registry import OPERATORS, operator, public
from ..declaration.samples import dominant
from ..execution import forward_mode, general, inplace_and_out
from ..execution.array_errors import LinAlgError
from ..execution.bare_functions import conj
from .matrix_checks import adjoint, first_failure, need_float, need_matrices, need_square, refuse_low

__all__ = ["eig", "eigh", "eigvals", "eigvalsh", "svd", "svdvals"]


# --- what the derivatives share ---------------------------------------------------------------------------------------


def _need_invariance(name: str, slopes: Array, rest: str) -> None:
    """Raise where a loss depends on the phases of complex vectors: its slopes along them must be real, and no NaN.

    Only host arrays are looked at: it would make a program wait for the device.
    """
    array = getattr(slopes, "_array", slopes)
    if type(array) is devices.ndarray and not (abs(array.imag) <= 1e-2).all():
        raise RuntimeError(
            f"{name}: The {rest}\n"
            "Use what does not depend on it, such as absolute values, or products of a vector with its conjugate."
        )


_SINGULAR_PHASES = (
    "singular vectors in the complex case are specified up to multiplication by e^{i phi}. The specified loss function "
    "depends on this phase term, making it ill-defined."
)
_EIGEN_PHASES = (
    "eigenvectors in the complex case are specified up to multiplication by e^{i phi}. The specified loss function "
    "depends on this quantity, so it is ill-defined."
)


def _diagonal(x: Array, F: Namespace) -> Array:
    return F.diagonal(x, 0, -2, -1)


def _skew(x: Array, F: Namespace) -> Array:
    return x - adjoint(x, F)


def _differences(values: Array, F: Namespace) -> Array:
    """Return ``values[k] - values[j]`` at (j, k), with 1 on the diagonal."""
    return F.unsqueeze(values, -2) - F.unsqueeze(values, -1) + F.diag_embed(F.ones_like(values))


def _across(values: Array, F: Namespace) -> Array:
    """Return values as a row, to scale columns with."""
    return F.unsqueeze(values, -2)


def _down(values: Array, F: Namespace) -> Array:
    """Return values as a column, to scale rows with."""
    return F.unsqueeze(values, -1)


def _narrow(x: Array, dim: int, size: int, F: Namespace) -> Array:
    return x if x.shape[dim] == size else F.slice(x, dim, 0, size, 1)


# --- singular values --------------------------------------------------------------------------------------------------


def _check_svd(A: Array, driver: str | None = None) -> None:
    need_matrices("linalg.svd", A)
    need_float("linalg.svd", A)
    refuse_low("linalg_svd_cpu", A)
    if driver is not None:
        raise RuntimeError(
            "gradscope.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."
        )


def _svd(xp: Namespace, A: Array, full_matrices: bool = False, driver: str | None = None) -> tuple[Array, Array, Array]:
    _check_svd(A, driver)
    U, S, Vh = _decomposed(xp, A, lambda bare: xp.linalg.svd(bare, full_matrices=full_matrices))
    return U, S, Vh


def _singular_values(xp: Namespace, A: Array) -> Array:
    _check_svd(A)
    (S,) = _decomposed(xp, A, lambda bare: (xp.linalg.svd(bare, compute_uv=False),))
    return S


def _decomposed(xp: Namespace, A: Array, decompose: Callable[[Array], tuple[Array, ...]]) -> tuple[Array, ...]:
    """Return singular values, with or without vectors: NaN for a matrix with infinities, as in PyTorch.

    Raises
    ------
    LinAlgError
        For a matrix with NaN, or without end.
    """
    try:
        found = decompose(A)
    except numpy.linalg.LinAlgError:
        return _of_finite(xp, A, decompose)
    # NumPy does not always tell. On a device nobody waits to ask.
    if xp is numpy and any(numpy.isnan(part).any() for part in found):
        return _of_finite(xp, A, decompose)
    return found


def _of_finite(xp: Namespace, A: Array, decompose: Callable[[Array], tuple[Array, ...]]) -> tuple[Array, ...]:
    infinite = xp.isinf(A).any(axis=(-2, -1))
    if not devices.to_host(infinite).any() or devices.to_host(xp.isnan(A)).any():
        raise _not_converged("linalg.svd", xp, A)
    found = decompose(xp.where(infinite[..., None, None], A.dtype.type(0), A))
    return tuple(_nan_at(xp, infinite, part) for part in found)


def _nan_at(xp: Namespace, which: Array, values: Array) -> Array:
    """Return what belongs to the matrices of a batch, with NaN for `which` of them."""
    which = which.reshape(which.shape + (1,) * (values.ndim - which.ndim))
    return xp.where(which, values.dtype.type(numpy.nan), values)


def _not_converged(name: str, xp: Namespace, A: Array) -> LinAlgError:
    """Return the error of an iteration without end, with the first matrix that has a NaN or an infinity."""
    failed = first_failure((~xp.isfinite(A)).any(axis=(-2, -1)))
    if failed is None:
        return LinAlgError(
            f"{name}: The algorithm failed to converge because the input matrix is ill-conditioned or has too many "
            "repeated singular values.\nScale it, or compute in float64."
        )
    return LinAlgError(
        f"{name}: {failed[0]}The algorithm failed to converge because the input matrix contained non-finite values.\n"
        "Look for where they come from: isfinite()."
    )


def _twist(of_U: Array, of_V: Array, S: Array, F: Namespace) -> Array:
    """Return the gradient between the bases, from the skew parts of ``U.mH @ gU`` and of ``Vh @ gVh.mH``."""
    differences, parts = _differences(S * S, F), []
    if of_U is not None:
        parts.append(of_U / differences * _across(S, F))
    if of_V is not None:
        parts.append(_down(S, F) * (of_V / differences))
    twist = parts[0] if len(parts) == 1 else parts[0] + parts[1]
    if twist.dtype.kind != "c":
        return twist
    _need_invariance("svd_backward", sum(_diagonal(x, F) for x in (of_U, of_V) if x is not None), _SINGULAR_PHASES)
    twist = twist - F.diag_embed(_diagonal(twist, F))
    return twist if of_U is None else twist + F.diag_embed(_diagonal(of_U, F) / (2 * S))


def _svd_gradient(g: Gradient, U: Array, S: Array, Vh: Array, F: Namespace) -> Gradient:
    gU, gS, gVh = g
    k, rows, columns = S.shape[-1], U.shape[-2], Vh.shape[-1]
    U, Vh = _narrow(U, -1, k, F), _narrow(Vh, -2, k, F)
    if gU is None and gVh is None:
        return F.matmul(U * _across(gS, F), Vh)
    gU, gVh = gU if gU is None else _narrow(gU, -1, k, F), gVh if gVh is None else _narrow(gVh, -2, k, F)
    of_U = None if gU is None else F.matmul(adjoint(U, F), gU)
    of_V = None if gVh is None else F.matmul(gVh, adjoint(Vh, F))
    inner = _twist(None if of_U is None else _skew(of_U, F), None if of_V is None else -_skew(of_V, F), S, F)
    if gS is not None:
        inner = inner + F.diag_embed(gS)
    # What lies outside the bases is divided first, as in PyTorch: a singular value of 0 makes NaN, not an infinity.
    if gU is not None and rows > k:
        outside = gU / _across(S, F)
        outside = outside - F.matmul(U, F.matmul(adjoint(U, F), outside))
        return F.matmul(F.matmul(U, inner) + outside, Vh)
    if gVh is not None and columns > k:
        outside = gVh / _down(S, F)
        outside = outside - F.matmul(F.matmul(outside, adjoint(Vh, F)), Vh)
        return F.matmul(U, F.matmul(inner, Vh) + outside)
    return F.matmul(F.matmul(U, inner), Vh)


operator(
    "linalg_svd(Tensor A, bool full_matrices=False, *, str? driver=None)",
    _svd,
    outputs=("U", "S", "Vh"),
    graded=3,
    out=True,
    method=False,
    public_name=False,
    derivatives={"A": _svd_gradient},
    doc="Return the singular value decomposition of matrices.",
    samples=lambda make: [
        ((make(3, 3),), {}),
        ((make(4, 2),), {}),
        ((make(2, 2, 3),), {}),
        ((make(2, 3), True), {}),
    ],
    reference=lambda A, full_matrices=False: numpy.linalg.svd(A, full_matrices),
)


@public(namespace="linalg")
def svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None, out: Tensor | None = None) -> Results:
    """Return the singular value decomposition ``A = U @ diag(S) @ Vh``, the singular values in descending order.

    Parameters
    ----------
    A : Tensor
        Of shape (..., m, n).
    full_matrices : bool
        Whether U and Vh are square, or have as many columns and rows as there are singular values.
    driver : None
        For PyTorch's sake.

    Returns
    -------
    linalg_svd
        A named tuple of U, S and Vh.

    Raises
    ------
    LinAlgError
        If a matrix has a NaN or an infinity.

    Notes
    -----
    The gradient through U and Vh is infinite or NaN where singular values repeat. It is that of a loss which does not
    depend on signs and phases of singular vectors, nor on the further ones that `full_matrices` gives.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.linalg.svd(gs.tensor([[3.0, 0.0], [0.0, 4.0]])).S
    tensor([4., 3.])
    """
    return OPERATORS["linalg_svd"].function(A, full_matrices, driver=driver, out=out)


operator(
    "linalg_singular_values(Tensor A)",
    lambda xp, A: _singular_values(xp, A),
    method=False,
    public_name=False,
    doc="Return singular values only, which takes a fraction of the time.",
    samples=lambda make: [((make(3, 2),), {})],
    reference="numpy.linalg.svdvals",
)


def _recorded(*tensors: Operand) -> bool:
    """Whether a call is to be differentiated, so that vectors are needed where only values were asked for."""
    return general.wants_grad(list(tensors)) or (tangents.active() and forward_mode.has_tangent(tensors))


@public(namespace="linalg")
def svdvals(A: Tensor, *, driver: str | None = None, out: Tensor | None = None) -> Tensor:
    """Return the singular values of matrices, in descending order.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.linalg.svdvals(gs.tensor([[3.0, 0.0], [0.0, 4.0]]))
    tensor([4., 3.])
    """
    if out is not None:
        return inplace_and_out.into(out, "linalg.svdvals", [A], lambda: svdvals(A, driver=driver), exact=True)
    if driver is None and not _recorded(A):
        return OPERATORS["linalg_singular_values"].function(A)
    return svd(A, False, driver=driver)[1]


# --- Hermitian matrices -----------------------------------------------------------------------------------------------


def _check_hermitian(name: str, A: Array, UPLO: str) -> str:
    need_square(name, A)
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    refuse_low("linalg_eigh_cpu", A)
    return UPLO.upper()


def _eigh(xp: Namespace, A: Array, UPLO: str = "L") -> tuple[Array, Array]:
    triangle = _check_hermitian("linalg.eigh", A, UPLO)
    try:
        L, V = xp.linalg.eigh(A, UPLO=triangle)
    except numpy.linalg.LinAlgError:
        finite, bare = _finite_part("linalg.eigh", xp, A)
        L, V = xp.linalg.eigh(bare, UPLO=triangle)
        return xp.where(finite[..., 0], L, numpy.nan), xp.where(finite, V, A.dtype.type(numpy.nan))
    return L, V


def _finite_part(name: str, xp: Namespace, A: Array) -> tuple[Array, Array]:
    """Return which matrices are finite, and zeros in place of the others; raise where all are."""
    finite = xp.isfinite(A).all(axis=(-2, -1), keepdims=True)
    if devices.to_host(finite).all():
        raise _not_converged(name, xp, A)
    return finite, xp.where(finite, A, A.dtype.type(0))


def _eigenvalues_of_hermitian(xp: Namespace, A: Array, UPLO: str = "L") -> Array:
    triangle = _check_hermitian("linalg.eigh", A, UPLO)
    try:
        return xp.linalg.eigvalsh(A, UPLO=triangle)
    except numpy.linalg.LinAlgError:
        finite, bare = _finite_part("linalg.eigh", xp, A)
        return xp.where(finite[..., 0], xp.linalg.eigvalsh(bare, UPLO=triangle), numpy.nan)


def _eigh_gradient(g: Gradient, eigenvalues: Array, eigenvectors: Array, F: Namespace) -> Gradient:
    gL, gV = g
    L, V = eigenvalues, eigenvectors
    if gV is None:
        return F.matmul(V * _across(gL, F), adjoint(V, F))
    turn = F.matmul(adjoint(V, F), gV)
    if V.dtype.kind == "c":
        _need_invariance("linalg_eigh_backward", _diagonal(turn, F), _EIGEN_PHASES)
    inner = _skew(turn, F) * 0.5 / _differences(L, F)
    if V.dtype.kind == "c":
        inner = inner - F.diag_embed(_diagonal(inner, F))
    if gL is not None:
        inner = inner + F.diag_embed(gL)
    return F.matmul(F.matmul(V, inner), adjoint(V, F))


operator(
    "linalg_eigh(Tensor A, str UPLO='L')",
    _eigh,
    outputs=("eigenvalues", "eigenvectors"),
    graded=2,
    out=True,
    method=False,
    public_name=False,
    derivatives={"A": _eigh_gradient},
    doc="Return eigenvalues and eigenvectors of Hermitian matrices.",
    samples=lambda make: [((make(3, 3),), {}), ((make(2, 2, 2), "U"), {}), ((make(0, 0),), {})],
    reference=lambda A, UPLO="L": tuple(numpy.linalg.eigh(A, UPLO)),
)
operator(
    "linalg_hermitian_eigenvalues(Tensor A, str UPLO='L')",
    _eigenvalues_of_hermitian,
    method=False,
    public_name=False,
    doc="Return eigenvalues of Hermitian matrices only, which takes a fraction of the time.",
    samples=lambda make: [((make(3, 3),), {})],
    reference="numpy.linalg.eigvalsh",
)


@public(namespace="linalg")
def eigh(A: Tensor, UPLO: str = "L", *, out: Tensor | None = None) -> Results:
    """Return eigenvalues, in ascending order, and eigenvectors of Hermitian matrices.

    Parameters
    ----------
    A : Tensor
        Of shape (..., n, n); only one triangle is read.
    UPLO : {"L", "U"}
        Which.

    Returns
    -------
    linalg_eigh
        A named tuple of eigenvalues and eigenvectors, the columns of a unitary matrix.

    Notes
    -----
    The gradient through eigenvectors is infinite or NaN where eigenvalues repeat, and is that of a loss which does not
    depend on their signs and phases.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.linalg.eigh(gs.tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    tensor([1., 2.])
    """
    return OPERATORS["linalg_eigh"].function(A, UPLO, out=out)


@public(namespace="linalg")
def eigvalsh(A: Tensor, UPLO: str = "L", *, out: Tensor | None = None) -> Tensor:
    """Return the eigenvalues of Hermitian matrices, in ascending order; see :func:`eigh`.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.linalg.eigvalsh(gs.tensor([[2.0, 1.0], [1.0, 2.0]]))
    tensor([1., 3.])
    """
    if out is not None:
        return inplace_and_out.into(out, "linalg.eigvalsh", [A], lambda: eigvalsh(A, UPLO), exact=True)
    if not _recorded(A):
        return OPERATORS["linalg_hermitian_eigenvalues"].function(A, UPLO)
    return eigh(A, UPLO)[0]


# --- all square matrices ----------------------------------------------------------------------------------------------


def _check_square(name: str, A: Array) -> None:
    need_square(name, A)
    if A.dtype.kind not in INEXACT:
        raise RuntimeError(f"Unknown Complex ScalarType for {scalar_type(A.dtype)}\nConvert it with .float().")
    refuse_low("linalg_eig_out_cpu", A)


def _general(xp: Namespace, routine: str, A: Array) -> Array:
    """Return what ``eig`` or ``eigvals`` of an array module finds, complex.

    CuPy has them from version 14 on; before, the host computes them.
    """
    module, source = xp, A
    if not hasattr(xp.linalg, routine):
        module, source = numpy, devices.to_host(A)
    kind = numpy.result_type(A.dtype, numpy.complex64)
    try:
        found = getattr(module.linalg, routine)(source)
    except numpy.linalg.LinAlgError:
        raise _not_finite() from None
    parts = [part.astype(kind) for part in (found if isinstance(found, tuple) else (found,))]
    return parts if module is xp else [devices.to_device(part, devices.device_of(A)) for part in parts]


def _not_finite() -> RuntimeError:
    return RuntimeError(
        "gradscope.linalg.eig: input tensor should not contain infs or NaNs.\n"
        "Look for where they come from: isfinite()."
    )


def _eig(xp: Namespace, A: Array) -> tuple[Array, Array]:
    _check_square("linalg.eig", A)
    L, V = _general(xp, "eig", A)
    return L, V


def _eigvals(xp: Namespace, A: Array) -> Array:
    _check_square("linalg.eigvals", A)
    return _general(xp, "eigvals", A)[0]


def _eig_gradient(g: Gradient, eigenvalues: Array, eigenvectors: Array, F: Namespace) -> Gradient:
    gL, gV = g
    L, V = eigenvalues, eigenvectors
    Vh = adjoint(V, F)
    if gV is None:
        return F.linalg_solve(Vh, _down(gL, F) * Vh)
    turn = F.matmul(Vh, gV)
    slopes = _diagonal(turn, F)
    _need_invariance("linalg_eig_backward", slopes, _EIGEN_PHASES)
    # Eigenvectors have length 1: what a loss would gain by their length is taken out.
    turn = turn - F.matmul(Vh, V * _across(F.real(slopes), F))
    inner = turn / conj(_differences(L, F))
    inner = inner - F.diag_embed(_diagonal(inner, F))
    if gL is not None:
        inner = inner + F.diag_embed(gL)
    return F.linalg_solve(Vh, F.matmul(inner, Vh))


def _eig_reference(A: Array) -> tuple[Array, Array]:
    values, vectors = numpy.linalg.eig(A)
    return values.astype(complex), vectors.astype(complex)


operator(
    "linalg_eig(Tensor A)",
    _eig,
    outputs=("eigenvalues", "eigenvectors"),
    graded=2,
    out=True,
    method=False,
    public_name=False,
    derivatives={"A": _eig_gradient},
    doc="Return eigenvalues and eigenvectors of square matrices, complex ones.",
    samples=lambda make: [((dominant(make, 3),), {}), ((dominant(make, 2, 2),), {}), ((make(0, 0),), {})],
    reference=_eig_reference,
)
operator(
    "linalg_general_eigenvalues(Tensor A)",
    _eigvals,
    method=False,
    public_name=False,
    doc="Return eigenvalues of square matrices only, which takes a fraction of the time.",
    samples=lambda make: [((dominant(make, 3),), {})],
    reference=lambda A: _eig_reference(A)[0],
)


@public(namespace="linalg")
def eig(A: Tensor, *, out: Tensor | None = None) -> Results:
    """Return eigenvalues and eigenvectors of square matrices; both are complex, those of real matrices too.

    Parameters
    ----------
    A : Tensor
        Of shape (..., n, n).

    Returns
    -------
    linalg_eig
        A named tuple of eigenvalues, in no particular order, and eigenvectors, columns of length 1.

    Notes
    -----
    The gradient through eigenvectors is infinite or NaN where eigenvalues repeat, and is that of a loss which does not
    depend on their phases.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.linalg.eig(gs.tensor([[2.0, 0.0], [0.0, 3.0]])).eigenvalues
    tensor([2.+0.j, 3.+0.j])
    """
    return OPERATORS["linalg_eig"].function(A, out=out)


@public(namespace="linalg")
def eigvals(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the eigenvalues of square matrices, complex, in no particular order; see :func:`eig`.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.linalg.eigvals(gs.tensor([[2.0, 0.0], [0.0, 3.0]]))
    tensor([2.+0.j, 3.+0.j])
    """
    if out is not None:
        return inplace_and_out.into(out, "linalg.eigvals", [A], lambda: eigvals(A), exact=True)
    if not _recorded(A):
        return OPERATORS["linalg_general_eigenvalues"].function(A)
    return eig(A)[0]

"""LDL factors of symmetric and Hermitian matrices that need not be positive-definite, by LAPACK."""

from __future__ import annotations

from collections import namedtuple

import numpy

from ...memory.dtype import scalar_type
from ...tensor.tensor import Tensor
from ..declaration.annotations import Array, Make, Namespace, Results
from ..declaration.references import each_matrix
from ..declaration.registry import OPERATORS, not_implemented, operator, public
from ..declaration.samples import dominant
from . import lapack
from .lu import into_each
from .matrix_checks import batch_of, first_failure, need_float, need_matrices, need_one_dtype, need_square, refuse_low

_LdlFactor = namedtuple("linalg_ldl_factor", ["LD", "pivots"])  # type: ignore[name-match]


def _need_host(name: str, xp: Namespace) -> None:
    if xp is not numpy:
        raise NotImplementedError(
            f"{name} is not implemented for '{xp.__name__}' tensors: CuPy has no such factorization.\n"
            "Move the tensor to the CPU: tensor.cpu()."
        )


def _ldl_factor_ex(
    xp: Namespace, self: Array, hermitian: bool = False, check_errors: bool = False
) -> tuple[Array, Array, Array]:
    name = "gradscope.linalg.ldl_factor_ex"
    need_square(name, self)
    need_float(name, self)
    refuse_low("ldl_factor_cpu", self)
    _need_host(name, xp)
    LD, pivots, infos = lapack.ldl(self, hermitian)
    if check_errors:
        _check_regular(name, infos)
    return LD, pivots, infos


def _check_regular(name: str, infos: Array) -> None:
    failed = first_failure(infos)
    if failed is not None:
        raise RuntimeError(
            f"{name}: {failed[0]}D[{failed[1]},{failed[1]}] is zero, and ldl_solve would divide by it.\n"
            "Use ldl_factor_ex(A), which does not raise, and look at its info."
        )


def _symmetric(make: Make, *shape: int) -> Tensor:
    x = dominant(make, *shape)
    x._array[...] = x._array + x._array.swapaxes(-1, -2)
    return x.detach()


def _ldl_reference(self: Array, hermitian: bool = False) -> list[Array]:
    # SciPy loads when a test asks for the reference.
    from scipy.linalg.lapack import get_lapack_funcs

    name = "hetrf" if hermitian and self.dtype.kind == "c" else "sytrf"
    LD, pivots = each_matrix(lambda A: get_lapack_funcs(name, (A,))(A, lower=1)[:2], self)
    return [numpy.tril(LD), pivots, numpy.zeros(self.shape[:-2], "int32")]


def _ldl_solve_reference(LD: Array, pivots: Array, B: Array, hermitian: bool = False) -> Array:
    """For pivots that exchange nothing."""
    L = numpy.tril(LD, -1) + numpy.eye(LD.shape[-1])
    turned = numpy.swapaxes(L, -1, -2)
    D = LD * numpy.eye(LD.shape[-1])
    return numpy.linalg.solve(L @ D @ (turned.conj() if hermitian else turned), B)


operator(
    "linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False)",
    _ldl_factor_ex,
    outputs=("LD", "pivots", "info"),
    out=True,
    node="NotImplemented",
    derivatives=not_implemented("linalg_ldl_factor_ex", "self"),
    doc=(
        "Return L and D of ``P @ L @ D @ L.mT @ P.mT = self`` in one tensor, the pivots, and D's first 0.\n\n"
        "Only the lower triangle of the matrices is read; with `hermitian` they are equal to their adjoints."
    ),
    samples=lambda make: [((_symmetric(make, 3),), {}), ((_symmetric(make, 2, 2),), {"hermitian": True})],
    reference=_ldl_reference,
)


@public(namespace="linalg")
def ldl_factor(A: Tensor, *, hermitian: bool = False, out: Tensor | None = None) -> Results:
    """Return the LDL factors of symmetric matrices in one tensor, and the pivots, for :func:`ldl_solve`.

    Parameters
    ----------
    A : Tensor
        Of shape (..., n, n); only the lower triangle is read.
    hermitian : bool
        Whether complex matrices are equal to their adjoints, or to their transposes.

    Returns
    -------
    linalg_ldl_factor
        A named tuple of LD and pivots, as LAPACK's ``sytrf`` and ``hetrf`` have them. There is no gradient.

    Raises
    ------
    RuntimeError
        If D has a zero.

    Examples
    --------
    >>> import gradscope as gs
    >>> LD, pivots = gs.linalg.ldl_factor(gs.tensor([[0.0, 2.0], [2.0, 0.0]]))
    >>> gs.linalg.ldl_solve(LD, pivots, gs.tensor([[2.0], [4.0]]))
    tensor([[2.],
            [1.]])
    """
    LD, pivots, infos = OPERATORS["linalg_ldl_factor_ex"].function(A, hermitian=hermitian)
    _check_regular("gradscope.linalg.ldl_factor", infos._array)
    found = _LdlFactor(LD, pivots)
    return found if out is None else into_each(out, "linalg.ldl_factor", [A], found)


def _ldl_solve(xp: Namespace, LD: Array, pivots: Array, B: Array, hermitian: bool = False) -> Array:
    name = "gradscope.linalg.ldl_solve"
    need_square(name, LD)
    need_float(name, LD)
    need_matrices(name, B, "B")
    if pivots.dtype.kind not in "iu":
        kind = scalar_type(pivots.dtype)
        raise RuntimeError(f"{name}: Expected pivots to be integers. Got {kind}\nldl_factor() gives them.")
    if pivots.shape != LD.shape[:-1]:
        raise RuntimeError(
            f"{name}: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
            f"{list(pivots.shape)} instead\nThat of LD is {list(LD.shape)}."
        )
    if LD.shape[-1] != B.shape[-2]:
        raise RuntimeError(
            f"Incompatible matrix sizes for {name}: each A matrix is {LD.shape[-1]} by {LD.shape[-1]} but each b "
            f"matrix is {B.shape[-2]} by {B.shape[-1]}"
        )
    need_one_dtype("Expected b and A to have the same dtype, but found b of type {} and A of type {} instead.", B, LD)
    refuse_low("ldl_solve_cpu", LD)
    _need_host(name, xp)
    LD, B, pivots = batch_of(xp, LD, B, pivots[..., None])
    return lapack.solve_ldl(LD, pivots[..., 0], B, hermitian)


operator(
    "linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False)",
    _ldl_solve,
    out=True,
    node="NotImplemented",
    derivatives=not_implemented("linalg_ldl_solve", "LD", "B"),
    doc="Return X of ``A @ X = B``, given the LDL factors of A by :func:`ldl_factor`.",
    samples=lambda make: [
        ((_symmetric(make, 3), _pivots(make, 3), make(3, 2).detach()), {}),
        ((_symmetric(make, 2, 2), _pivots(make, 2, 2), make(2, 1).detach()), {"hermitian": True}),
    ],
    reference=_ldl_solve_reference,
)


def _pivots(make: Make, *shape: int) -> Tensor:
    """Return pivots that exchange nothing."""
    pivots = make(*shape, dtype="int32")
    pivots._array[...] = numpy.arange(1, shape[-1] + 1)
    return pivots

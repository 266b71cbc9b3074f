"""The exponential of matrices."""

from __future__ import annotations

from ...memory import device as devices
from ..declaration.annotations import Array, Gradient, Namespace
from ..declaration.registry import operator
from ..execution.bare_functions import in_rows
from .matrix_checks import adjoint, need_float, need_square

__all__ = ["matrix_exp"]

# Coefficients of the [m/m] Padé approximant of exp, and the 1-norm up to which it is exact to the resolution of the
# dtype: N. J. Higham, "The scaling and squaring method for the matrix exponential revisited" (2005), tables 2.3 and
# (for single precision) "Functions of Matrices" (2008), section 10.3.
_DOUBLE = (
    (
        64764752532480000.0,
        32382376266240000.0,
        7771770303897600.0,
        1187353796428800.0,
        129060195264000.0,
        10559470521600.0,
        670442572800.0,
        33522128640.0,
        1323241920.0,
        40840800.0,
        960960.0,
        16380.0,
        182.0,
        1.0,
    ),
    5.371920351148152,
)
_SINGLE = ((17297280.0, 8648640.0, 1995840.0, 277200.0, 25200.0, 1512.0, 56.0, 1.0), 3.925724783138660)


def _matrix_exp(xp: Namespace, self: Array) -> Array:
    need_square("linalg.matrix_exp", self)
    need_float("linalg.matrix_exp", self)
    if not self.size:
        return self.copy()
    if self.dtype.itemsize < 4:
        return _matrix_exp(xp, self.astype("float32")).astype(self.dtype)
    coefficients, limit = _DOUBLE if self.dtype.name in ("float64", "complex128") else _SINGLE
    norm = abs(self).sum(axis=-2, keepdims=True).max(axis=-1, keepdims=True)
    halvings = xp.ceil(xp.log2(xp.maximum(norm / limit, 1)))
    halvings = xp.where(xp.isfinite(halvings), halvings, 0)
    found = _pade(xp, self * (2.0**-halvings).astype(norm.dtype), coefficients)
    # How often to square is asked of the device once, as PyTorch does.
    for nr in range(int(devices.to_host(halvings.max()))):
        found = xp.where(halvings > nr, xp.matmul(found, found), found)
    return in_rows(xp, found)


def _pade(xp: Namespace, A: Array, coefficients: tuple[float, ...]) -> Array:
    """Return the Padé approximant ``(V - U)^-1 (V + U)`` of exp: U has its odd powers, V its even ones."""
    eye = xp.eye(A.shape[-1], dtype=A.dtype)
    power, square = eye, xp.matmul(A, A)
    odd, even = coefficients[1] * eye, coefficients[0] * eye
    for nr in range(2, len(coefficients), 2):
        power = xp.matmul(power, square) if nr > 2 else square
        even, odd = even + coefficients[nr] * power, odd + coefficients[nr + 1] * power
    U = xp.matmul(A, odd)
    return xp.linalg.solve(even - U, even + U)


def _matrix_exp_self(g: Gradient, self: Array, F: Namespace) -> Gradient:
    # The upper right block of exp([[A, E], [0, A]]) is the derivative of exp at A along E, whose adjoint takes A^H for
    # A (R. Mathias, "A chain rule for matrix functions and applications", 1996).
    size, A = self.shape[-1], adjoint(self, F)
    upper = F.cat([A, g], -1)
    lower = F.cat([F.zeros_like(A), A], -1)
    return F.linalg_matrix_exp(F.cat([upper, lower], -2))[..., :size, size:]


matrix_exp = operator(
    "linalg_matrix_exp(Tensor self)",
    _matrix_exp,
    method=False,
    public_name=False,
    derivatives={"self": _matrix_exp_self},
    doc="Return the exponential of square matrices.",
    samples=lambda make: [((make(3, 3),), {}), ((make(2, 2, 2, low=-9, high=9),), {}), ((make(0, 0),), {})],
    reference="scipy.linalg.expm",
).function

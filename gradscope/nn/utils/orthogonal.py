"""The parametrization of orthogonal matrices, by three maps from all matrices onto them.

The maps are the matrix exponential and the Cayley transform of skew-symmetric matrices (Lezcano-Casado and
Martinez-Rubio, "Cheap orthogonal constraints in neural networks", 2019; trivializations: Lezcano-Casado, 2019), and
products of Householder reflections.
"""

from __future__ import annotations

from typing import Any

from ...runtime.memory.dtype import finfo
from ...runtime.ops.declaration.registry import OPERATORS
from ...runtime.ops.families import PUBLIC
from ...runtime.ops.random.random import randn
from ...runtime.tensor.creation import eye, zeros
from ...runtime.tensor.tensor import Tensor
from ..modules.module import Module
from .parametrize import register_parametrization

__all__ = ["orthogonal"]

_MAPS = ("matrix_exp", "cayley", "householder")


class _Orthogonal(Module):
    base: Tensor | None

    def __init__(self, weight: Any, orthogonal_map: str, use_trivialization: bool) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.\nUse matrix_exp.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        self.trivialized = use_trivialization
        if use_trivialization:
            # What the map is multiplied by; right_inverse() sets it.
            self.register_buffer("base", None)

    def forward(self, X: Any) -> Any:
        wide = X.size(-2) < X.size(-1)
        X = X.mT if wide else X
        Q = _reflected(X) if self.orthogonal_map == "householder" else self._of_skew(X)
        if self.trivialized:
            Q = self.base @ Q
        return Q.mT if wide else Q

    def _of_skew(self, X: Any) -> Any:
        n, k = X.shape[-2:]
        X = X.tril()
        if n != k:
            X = PUBLIC["cat"]([X, zeros(*X.shape[:-1], n - k, dtype=X.dtype, device=X.device)], -1)
        A = X - X.mH
        if self.orthogonal_map == "matrix_exp":
            Q = PUBLIC["matrix_exp"](A)
        else:
            one = eye(n, dtype=X.dtype, device=X.device)
            Q = OPERATORS["linalg_solve"].function(one - 0.5 * A, one + 0.5 * A)
        return Q[..., :k] if n != k else Q

    def right_inverse(self, Q: Any) -> Any:
        """Return a matrix that is mapped to `Q`, or to the orthogonal matrix of its QR decomposition."""
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {Q.shape}."
            )
        wide = Q.size(-2) < Q.size(-1)
        Q = Q.mT if wide else Q
        X = self._trivial(Q) if self.trivialized else self._reflections(Q)
        return X.mT if wide else X

    def _reflections(self, Q: Any) -> Any:
        if self.orthogonal_map != "householder":
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                "use_trivialization=False."
            )
        A, tau = PUBLIC["geqrf"](Q)
        # The diagonal, which the reflections do not use, is the sign of each column.
        diagonal = A.diagonal(dim1=-2, dim2=-1)
        diagonal.sign_()
        diagonal.mul_(1 - 2 * (tau == 0).to(A.dtype))
        return A

    def _trivial(self, Q: Any) -> Any:
        n, k = Q.shape[-2:]
        if n != k:
            rest = randn(*Q.shape[:-1], n - k, dtype=Q.dtype, device=Q.device)
            base = _orthogonalized(PUBLIC["cat"]([Q, rest], -1))
        else:
            base = Q.clone() if _is_orthogonal(Q) else _orthogonalized(Q)
        self.base = base
        # All maps take this to the identity.
        X = zeros(*Q.shape, dtype=Q.dtype, device=Q.device)
        X.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return X


def _reflected(X: Any) -> Any:
    A = X.tril(-1)
    tau = 2.0 / (1.0 + (A * A).sum(-2))
    Q = OPERATORS["linalg_householder_product"].function(A, tau)
    return Q * X.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)


def _orthogonalized(A: Any) -> Any:
    """Return the orthogonal factor of the QR decomposition whose R has a positive diagonal."""
    X, tau = PUBLIC["geqrf"](A)
    Q = OPERATORS["linalg_householder_product"].function(X, tau)
    return Q * X.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


def _is_orthogonal(Q: Any) -> bool:
    n, k = Q.shape[-2:]
    one = eye(k, dtype=Q.dtype, device=Q.device)
    return bool(((Q.mH @ Q - one).abs() <= 10 * n * finfo(Q.dtype).eps).all())


def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Module:
    """Parametrize a weight so that it stays orthogonal; unitary, where it is complex.

    Parameters
    ----------
    orthogonal_map : {"matrix_exp", "cayley", "householder"}, optional
        The map onto orthogonal matrices: matrix_exp for square and complex ones, householder for others.
    use_trivialization : bool
        Whether the map is multiplied by a fixed matrix, in whose surroundings it is used; assigning sets that.

    Returns
    -------
    Module
        The same.

    Raises
    ------
    ValueError
        If the weight is no matrix, or there is no such map.

    See Also
    --------
    nn.utils.parametrize.register_parametrization, nn.init.orthogonal_

    Examples
    --------
    >>> import gradscope as gs
    >>> layer = orthogonal(gs.nn.Linear(4, 3))
    >>> gs.allclose(layer.weight @ layer.weight.T, gs.eye(3), atol=1e-5)
    True
    """
    weight: Any = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1)
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in _MAPS:
        names = ", ".join(f'"{name}"' for name in _MAPS)
        raise ValueError(f"orthogonal_map has to be one of {names}. Got: {orthogonal_map}")
    return register_parametrization(module, name, _Orthogonal(weight, orthogonal_map, use_trivialization), unsafe=True)

"""Parametrizations of weights: by length and direction, divided by the largest singular value, orthogonal."""

from __future__ import annotations

import functools
from typing import Any

from ...runtime.modes import no_grad
from ...runtime.tensor.tensor import Tensor
from ..modules.module import Module
from .orthogonal import orthogonal
from .parametrize import register_parametrization
from .spectral_norm import as_matrix, check_iterations, default_dim, iterate, random_unit, unit
from .weight_norm import norm_except_dim, normalized

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Any:
        return normalized(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Return the lengths and the directions of a weight."""
        return norm_except_dim(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Parametrize a weight by its lengths (``original0``) and directions (``original1``).

    Parameters
    ----------
    dim : int, optional
        Over which dimension there is a length each; None has one for all.

    Returns
    -------
    Module
        The same.

    References
    ----------
    Salimans and Kingma, "Weight normalization", 2016.

    See Also
    --------
    spectral_norm, nn.utils.parametrize.register_parametrization

    Examples
    --------
    >>> import gradscope as gs
    >>> layer = gs.nn.utils.parametrizations.weight_norm(gs.nn.Linear(3, 2))
    >>> [name for name, _ in layer.named_parameters()]
    ['bias', 'parametrizations.weight.original0', 'parametrizations.weight.original1']
    """
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)
    module._register_load_state_dict_pre_hook(functools.partial(_rename_older, name))
    return module


def _rename_older(name: str, state_dict: Any, prefix: str, *_: Any) -> None:
    """Give what :func:`gradscope.nn.utils.weight_norm` has saved of a weight the names of its parametrization."""
    older = (f"{prefix}{name}_g", f"{prefix}{name}_v")
    if all(key in state_dict for key in older):
        for index, key in enumerate(older):
            state_dict[f"{prefix}parametrizations.{name}.original{index}"] = state_dict.pop(key)


class _SpectralNorm(Module):
    _u: Tensor
    _v: Tensor

    def __init__(self, weight: Any, n_power_iterations: int, dim: int, eps: float) -> None:
        super().__init__()
        if dim >= weight.ndim or dim < -weight.ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{weight.ndim}, {weight.ndim - 1}] but got {dim})"
            )
        check_iterations(n_power_iterations)
        self.dim = dim % weight.ndim
        self.eps = eps
        if weight.ndim == 1:
            return
        self.n_power_iterations = n_power_iterations
        with no_grad():
            matrix = as_matrix(weight.detach(), self.dim)
            rows, columns = matrix.shape
            self.register_buffer("_u", random_unit(rows, matrix, eps))
            self.register_buffer("_v", random_unit(columns, matrix, eps))
            iterate(matrix, self._u, self._v, 15, eps)

    def forward(self, weight: Any) -> Any:
        if weight.ndim == 1:
            return unit(weight, self.eps)
        matrix: Any = as_matrix(weight, self.dim)
        if self.training:
            iterate(matrix, self._u, self._v, self.n_power_iterations, self.eps)
        # The graph keeps these, and the next forward writes into the buffers.
        u, v = self._u.clone(), self._v.clone()
        return weight / u.dot(matrix.mv(v))

    def right_inverse(self, value: Tensor) -> Tensor:
        """Return a weight: that it has a singular value of 1 is not checked."""
        return value


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Parametrize a weight as itself divided by its largest singular value.

    Parameters
    ----------
    n_power_iterations : int
        Each time the weight is read in training.
    eps : float
        Norms are at least this.
    dim : int, optional
        The dimension of the outputs: 0, and 1 for transposed convolutions.

    Returns
    -------
    Module
        The same.

    References
    ----------
    Miyato et al., "Spectral normalization for generative adversarial networks", 2018.

    See Also
    --------
    weight_norm, nn.utils.parametrize.register_parametrization

    Examples
    --------
    >>> import gradscope as gs
    >>> layer = gs.nn.utils.parametrizations.spectral_norm(gs.nn.Linear(3, 2))
    >>> [name for name, _ in layer.named_parameters()]
    ['bias', 'parametrizations.weight.original']
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    made = _SpectralNorm(weight, n_power_iterations, default_dim(module) if dim is None else dim, eps)
    return register_parametrization(module, name, made)

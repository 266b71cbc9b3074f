"""Spectral normalisation, see Miyato et al., "Spectral normalization for generative adversarial networks", 2018.

The largest singular value comes from power iteration: one step in each forward of training.
"""

from __future__ import annotations

from typing import Any

from ...runtime.modes import no_grad
from ...runtime.ops.declaration.registry import OPERATORS
from ...runtime.ops.random.random import randn
from ...runtime.tensor.tensor import Tensor
from ..modules.conv import ConvTranspose1d, ConvTranspose2d
from ..modules.module import Module
from ..parameter import Parameter

__all__ = ["remove_spectral_norm", "spectral_norm"]


def unit(vector: Tensor, eps: float) -> Any:
    """Return a vector divided by its norm, or by `eps` where that is larger."""
    return vector / OPERATORS["linalg_vector_norm"].function(vector, 2).clamp(min=eps)


def as_matrix(weight: Any, dim: int) -> Any:
    """Return a weight with `dim` as rows and all else as columns."""
    if dim != 0:
        weight = weight.permute(dim, *(axis for axis in range(weight.ndim) if axis != dim))
    return weight.reshape(weight.shape[0], -1)


def random_unit(size: int, like: Tensor, eps: float) -> Tensor:
    """Return a random vector of norm 1 with the dtype and on the device of `like`."""
    return unit(randn(size, dtype=like.dtype, device=like.device), eps)


def iterate(matrix: Any, u: Any, v: Any, count: int, eps: float) -> None:
    """Turn `u` and `v` towards the singular vectors of the largest singular value, in place."""
    with no_grad():
        matrix = matrix.detach()
        for _ in range(count):
            u.copy_(unit(matrix.mv(v), eps))
            v.copy_(unit(matrix.T.mv(u), eps))


def default_dim(module: Module) -> int:
    """Return which dimension of the weight of `module` is that of its outputs."""
    return 1 if isinstance(module, (ConvTranspose1d, ConvTranspose2d)) else 0


def check_iterations(count: int) -> None:
    """Raise ValueError unless there is a power iteration to be done."""
    if count <= 0:
        raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={count}")


class SpectralNorm:
    """Computes the weight of a module before each of its forwards."""

    def __init__(self, name: str, n_power_iterations: int, dim: int, eps: float) -> None:
        check_iterations(n_power_iterations)
        self.name = name
        self.n_power_iterations = n_power_iterations
        self.dim = dim
        self.eps = eps

    def compute(self, module: Module, iterated: bool) -> Any:
        """Return the weight divided by its largest singular value."""
        weight, u, v = (getattr(module, f"{self.name}_{part}") for part in ("orig", "u", "v"))
        matrix = as_matrix(weight, self.dim)
        if iterated:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(unit(matrix.T.mv(u), self.eps))
                    u.copy_(unit(matrix.mv(v), self.eps))
            # The graph keeps these, and the next forward writes into the buffers.
            u, v = u.clone(), v.clone()
        return weight / u.dot(matrix.mv(v))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute(module, module.training))

    def note_version(self, module: Module, state_dict: Any, prefix: str, local_metadata: dict[str, Any]) -> None:
        """Say in the metadata of a state that it holds `v`."""
        local_metadata.setdefault("spectral_norm", {})[self.name + ".version"] = 1

    def complete(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        *_: Any,
    ) -> None:
        """Compute the `v` that states before version 1 lack, from the normalised weight that they hold instead.

        There the weight is ``orig / sigma``, with ``sigma = u @ orig @ v`` and `u` along ``orig @ v``: so `v` solves
        ``orig @ v = sigma * u``, by least squares.
        """
        version = local_metadata.get("spectral_norm", {}).get(self.name + ".version")
        key = prefix + self.name
        crafted = version is None and key + "_v" in state_dict and key not in state_dict
        if (version is not None and version >= 1) or crafted:
            return
        missing = [key + part for part in ("_orig", "", "_u") if key + part not in state_dict]
        if missing:
            missing_keys.extend(missing if strict else ())
            return
        with no_grad():
            original, weight, u = state_dict[key + "_orig"], state_dict.pop(key), state_dict[key + "_u"]
            matrix = as_matrix(original, self.dim)
            v = OPERATORS["linalg_pinv"].function(matrix).mv(u)
            state_dict[key + "_v"] = v * ((original / weight).mean() / u.dot(matrix.mv(v)))


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divide a weight by its largest singular value in each forward; return the module.

    Parameters
    ----------
    n_power_iterations : int
        In each forward of training.
    eps : float
        Norms are at least this.
    dim : int, optional
        The dimension of the outputs: 0, and 1 for transposed convolutions.

    See Also
    --------
    gradscope.nn.utils.parametrizations.spectral_norm : as a parametrization.

    Examples
    --------
    >>> import gradscope as gs
    >>> layer = gs.nn.utils.spectral_norm(gs.nn.Linear(3, 2))
    >>> hasattr(layer, "weight_orig")
    True
    """
    if _hook_of(module, name) is not None:
        raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
    hook = SpectralNorm(name, n_power_iterations, default_dim(module) if dim is None else dim, eps)
    weight = module._parameters[name]
    if weight is None:
        raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
    rows, columns = as_matrix(weight.detach(), hook.dim).shape
    del module._parameters[name]
    module.register_parameter(f"{name}_orig", weight)
    # An attribute for now: reading the module before its first forward finds the weight as it was.
    setattr(module, name, weight.detach())
    module.register_buffer(f"{name}_u", random_unit(rows, weight, eps))
    module.register_buffer(f"{name}_v", random_unit(columns, weight, eps))
    module.register_forward_pre_hook(hook)
    module._register_state_dict_hook(hook.note_version)
    module._register_load_state_dict_pre_hook(hook.complete)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Make a normalised weight a parameter again; return the module.

    Raises
    ------
    ValueError
        If the weight is not normalised.

    See Also
    --------
    spectral_norm : normalises it.

    Examples
    --------
    >>> import gradscope as gs
    >>> layer = gs.nn.utils.spectral_norm(gs.nn.Linear(3, 2))
    >>> _ = gs.nn.utils.remove_spectral_norm(layer)
    >>> sorted(name for name, _ in layer.named_parameters()), [name for name, _ in layer.named_buffers()]
    (['bias', 'weight'], [])
    """
    key = _hook_of(module, name)
    if key is None:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    hook: Any = module._forward_pre_hooks.pop(key)
    with no_grad():
        weight = hook.compute(module, False)
    delattr(module, name)
    for part in ("u", "v", "orig"):
        delattr(module, f"{name}_{part}")
    module.register_parameter(name, Parameter(weight.detach()))
    for table in (module._state_dict_hooks, module._load_state_dict_pre_hooks):
        for key in [key for key, other in table.items() if getattr(other, "__self__", None) is hook]:
            del table[key]
    return module


def _hook_of(module: Module, name: str) -> int | None:
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            return key
    return None

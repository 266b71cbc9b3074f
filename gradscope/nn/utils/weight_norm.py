"""Weight normalisation, see Salimans and Kingma, "Weight normalization", 2016: a weight as length and direction."""

from __future__ import annotations

from typing import Any

from ...runtime.ops.declaration.registry import OPERATORS
from ...runtime.ops.families import PUBLIC
from ...runtime.tensor.tensor import Tensor
from ...runtime.user_warnings import warn
from ..modules.module import Module
from ..parameter import Parameter

__all__ = ["norm_except_dim", "remove_weight_norm", "weight_norm"]


def norm_except_dim(v: Tensor, dim: int = 0) -> Tensor:
    """Return the 2-norms of `v` over all dimensions but `dim`, which broadcast to it; of all elements for -1."""
    others = None if dim == -1 else [axis for axis in range(v.ndim) if axis != dim % v.ndim]
    if others == []:
        return PUBLIC["abs"](v)
    return OPERATORS["linalg_vector_norm"].function(v, 2, others, others is not None)


def normalized(v: Tensor, g: Tensor, dim: int = 0) -> Any:
    """Return the tensor of direction `v` and lengths `g`."""
    return v * (g / norm_except_dim(v, dim))


class WeightNorm:
    """Computes the weight of a module before each of its forwards."""

    def __init__(self, name: str, dim: int) -> None:
        self.name = name
        self.dim = dim

    def compute(self, module: Module) -> Any:
        """Return the weight."""
        return normalized(getattr(module, f"{self.name}_v"), getattr(module, f"{self.name}_g"), self.dim)

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute(module))


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Replace a parameter by its lengths ``<name>_g`` and directions ``<name>_v``; return the module.

    Parameters
    ----------
    dim : int, optional
        Over which dimension there is a length each; None has one for all.

    See Also
    --------
    gradscope.nn.utils.parametrizations.weight_norm : in the form that is not deprecated.

    Examples
    --------
    >>> import warnings
    >>> import gradscope as gs
    >>> with warnings.catch_warnings(action="ignore"):
    ...     layer = gs.nn.utils.weight_norm(gs.nn.Linear(3, 2))
    >>> layer.weight_g.shape, layer.weight_v.shape
    (gradscope.Size([2, 1]), gradscope.Size([2, 3]))
    """
    warn(
        "`gradscope.nn.utils.weight_norm` is deprecated in favor of `gradscope.nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
    )
    if _hook_of(module, name) is not None:
        raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
    hook = WeightNorm(name, -1 if dim is None else dim)
    weight = getattr(module, name)
    del module._parameters[name]
    module.register_parameter(f"{name}_g", Parameter(norm_except_dim(weight.detach(), hook.dim)))
    module.register_parameter(f"{name}_v", Parameter(weight.detach()))
    setattr(module, name, hook.compute(module))
    module.register_forward_pre_hook(hook)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Make a normalised weight a parameter again; return the module.

    Raises
    ------
    ValueError
        If the weight is not normalised.

    See Also
    --------
    weight_norm : normalises it.

    Examples
    --------
    >>> import warnings
    >>> import gradscope as gs
    >>> with warnings.catch_warnings(action="ignore"):
    ...     layer = gs.nn.utils.weight_norm(gs.nn.Linear(3, 2))
    >>> _ = gs.nn.utils.remove_weight_norm(layer)
    >>> sorted(name for name, _ in layer.named_parameters())
    ['bias', 'weight']
    """
    key = _hook_of(module, name)
    if key is None:
        raise ValueError(f"weight_norm of '{name}' not found in {module}")
    weight = module._forward_pre_hooks.pop(key).compute(module)  # type: ignore[attr-defined]
    delattr(module, name)
    del module._parameters[f"{name}_g"], module._parameters[f"{name}_v"]
    setattr(module, name, Parameter(weight.detach()))
    return module


def _hook_of(module: Module, name: str) -> int | None:
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            return key
    return None

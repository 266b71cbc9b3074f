"""Muon.

References
----------
K. Jordan and others, "Muon: an optimizer for hidden layers in neural networks", 2024.
J. Liu and others, "Muon is scalable for LLM training", 2025: the second adjustment of the learning rate.
"""

from __future__ import annotations

import math
from typing import Any

from ..runtime.memory import device as devices
from .optimizer import ParameterwiseOptimizer, check_one, move_towards, plain_number, zeros_state

__all__ = ["Muon"]

_ADJUSTMENTS = ("original", "match_rms_adamw")


class Muon(ParameterwiseOptimizer):
    """Muon: the step of a matrix is its momentum brought near to the closest orthogonal matrix.

    PyTorch computes that in bfloat16, here it is in the parameter's dtype: the two agree to about two digits.

    Parameters
    ----------
    params : iterable
        Matrices, or groups of them, see :class:`Optimizer`.
    lr : float
        Learning rate.
    weight_decay : float
        Shrinks the parameter by ``lr * weight_decay`` beside the step.
    momentum : float
        The share of the momentum that stays.
    nesterov : bool
        Look ahead along the momentum.
    ns_coefficients : tuple of float
        Of the polynomial of fifth degree that is applied to the singular values.
    eps : float
        The smallest norm by which the momentum is divided.
    ns_steps : int
        How often the polynomial is applied.
    adjust_lr_fn : {"original", "match_rms_adamw"}, optional
        How the shape of the matrix changes the learning rate.

    Raises
    ------
    ValueError
        If a parameter is no matrix, or a number is out of range.

    See Also
    --------
    SGD, AdamW

    Examples
    --------
    >>> import gradscope as gs
    >>> w = gs.nn.Parameter(gs.eye(2))
    >>> optimizer = gs.optim.Muon([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.shape
    gradscope.Size([2, 2])
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        check_one(lr)
        for name, value in (("Learning rate", lr), ("momentum", momentum), ("weight decay", weight_decay)):
            if not plain_number(value) >= 0:
                raise ValueError(f"{name} should be >= 0 but is: {value}")
        if adjust_lr_fn is not None and adjust_lr_fn not in _ADJUSTMENTS:
            raise ValueError(
                f"Adjust learning rate function {adjust_lr_fn} is not supported\nUse one of: {', '.join(_ADJUSTMENTS)}."
            )
        super().__init__(
            params,
            {
                "lr": lr,
                "weight_decay": weight_decay,
                "momentum": momentum,
                "nesterov": nesterov,
                "ns_coefficients": ns_coefficients,
                "eps": eps,
                "ns_steps": ns_steps,
                "adjust_lr_fn": adjust_lr_fn,
            },
        )
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.ndim != 2:
                    raise ValueError(
                        f"Muon only supports 2D parameters whereas we found a parameter with size: {parameter.size()}"
                    )

    def _writes(self, group: dict[str, Any]) -> int:
        return 2  # the decay and the step are one write each

    def _update(self, parameter: Any, grad: Any, group: dict[str, Any]) -> None:
        grad = grad._array
        state = self.state[parameter]
        if not state:
            state["momentum_buffer"] = zeros_state(parameter)
        array, momentum = parameter._array, state["momentum_buffer"]._array
        xp = devices.array_module(array)
        keep = group["momentum"]
        move_towards(xp, momentum, grad, 1 - keep, xp.empty_like(momentum))
        direction = grad + (momentum - grad) * keep if group["nesterov"] else momentum
        step = orthogonalized(xp, direction, group["ns_coefficients"], group["ns_steps"], group["eps"])
        lr = plain_number(group["lr"])
        array *= 1 - lr * group["weight_decay"]
        array -= step * (lr * _factor(group["adjust_lr_fn"], array.shape))


def _factor(adjustment: str | None, shape: tuple[int, ...]) -> float:
    """Return what the learning rate of a matrix is multiplied by."""
    rows, columns = shape
    if adjustment == "match_rms_adamw":
        return 0.2 * math.sqrt(max(rows, columns))
    return math.sqrt(max(1, rows / columns))


def orthogonalized(xp: Any, matrix: Any, coefficients: tuple[float, float, float], steps: int, eps: float) -> Any:
    """Return a matrix with the singular vectors of `matrix` and singular values near 1, by Newton-Schulz steps."""
    a, b, c = coefficients
    tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.T if tall else matrix
    x = x / xp.maximum(xp.sqrt((x * x).sum()), eps)
    for _ in range(steps):
        gram = x @ x.T
        x = a * x + (b * gram + c * (gram @ gram)) @ x
    return x.T if tall else x

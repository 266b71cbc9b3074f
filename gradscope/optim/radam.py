"""RAdam.

References
----------
L. Liu et al., "On the variance of the adaptive learning rate and beyond", ICLR 2020.
"""

from __future__ import annotations

import math
from typing import Any

from .moments import MomentOptimizer
from .optimizer import check_settings, counted, setting

__all__ = ["RAdam"]


class RAdam(MomentOptimizer):
    """RAdam: Adam that divides by the second moment only once enough gradients have gone into it.

    Parameters
    ----------
    params : iterable
        Parameters or groups, see :class:`Optimizer`.
    lr : float
        Learning rate.
    betas : tuple of float
        Decay of the two running moments.
    eps : float
        Added to the denominator.
    weight_decay : float
        Adds ``weight_decay * parameter`` to the gradient; shrinks the parameter instead if decoupled.
    decoupled_weight_decay : bool
        Shrink the parameter by ``lr * weight_decay`` before the step, as :class:`AdamW` does.
    maximize, foreach, capturable, differentiable : bool
        See :class:`Optimizer`.

    See Also
    --------
    Adam, NAdam

    Examples
    --------
    >>> import gradscope as gs
    >>> w = gs.nn.Parameter(gs.tensor([1.0]))
    >>> optimizer = gs.optim.RAdam([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([0.8000])
    """

    _elementwise = True

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_settings(lr=lr, eps=eps, betas=betas, weight_decay=weight_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "decoupled_weight_decay": decoupled_weight_decay,
                "differentiable": differentiable,
            },
        )

    def _update(self, parameter: Any, grad: Any, group: dict[str, Any]) -> None:
        state = self._state_of(parameter, "exp_avg", "exp_avg_sq")
        count = counted(state)
        beta1, beta2 = self._betas(group)
        step_size = setting(group, "lr") / (1 - beta1**count)
        rectified = rectification(beta2, count)
        if rectified is not None:
            step_size = step_size * (rectified * math.sqrt(1 - beta2**count))
        for xp, p, _, mean, square, w, _ in self._with_moments(
            group, parameter, grad, state["exp_avg"], state["exp_avg_sq"]
        ):
            if rectified is None:
                xp.multiply(mean, step_size, out=w)
            else:
                xp.sqrt(square, out=w)
                w += group["eps"]
                xp.divide(mean, w, out=w)
                w *= step_size
            p -= w


def rectification(beta2: float, count: float) -> float | None:
    """Return the factor of the adaptive step, or None while its variance is not bounded."""
    longest = 2 / (1 - beta2) - 1
    length = longest - 2 * count * beta2**count / (1 - beta2**count)
    if length <= 5:
        return None
    return math.sqrt((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length))

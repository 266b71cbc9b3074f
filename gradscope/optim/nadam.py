"""NAdam.

References
----------
T. Dozat, "Incorporating Nesterov momentum into Adam", ICLR workshop 2016.
"""

from __future__ import annotations

from typing import Any

from .moments import MomentOptimizer
from .optimizer import check_settings, counted, setting

__all__ = ["NAdam"]


class NAdam(MomentOptimizer):
    """NAdam: Adam with Nesterov's momentum.

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
    momentum_decay : float
        How fast the momentum warms up.
    decoupled_weight_decay : bool
        Shrink the parameter by ``lr * weight_decay`` before the step, as :class:`AdamW` does.
    maximize, foreach, capturable, differentiable : bool
        See :class:`Optimizer`.

    See Also
    --------
    Adam, RAdam

    Examples
    --------
    >>> import gradscope as gs
    >>> w = gs.nn.Parameter(gs.tensor([1.0]))
    >>> optimizer = gs.optim.NAdam([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([0.8944])
    """

    _elementwise = True

    def __init__(
        self,
        params: Any,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_settings(lr=lr, eps=eps, betas=betas, weight_decay=weight_decay, momentum_decay=momentum_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "momentum_decay": momentum_decay,
                "decoupled_weight_decay": decoupled_weight_decay,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "differentiable": differentiable,
            },
        )

    def _writes(self, group: dict[str, Any]) -> int:
        # The gradient's share and the momentum's; PyTorch shrinks the parameter in a write of its own.
        return 3 if group["weight_decay"] and group["decoupled_weight_decay"] else 2

    def _update(self, parameter: Any, grad: Any, group: dict[str, Any]) -> None:
        state = self._state_of(parameter, "exp_avg", "exp_avg_sq", mu_product=1)
        count = counted(state)
        beta1, beta2 = self._betas(group)
        lr, slowness = setting(group, "lr"), group["momentum_decay"]
        mu = beta1 * (1 - 0.5 * 0.96 ** (count * slowness))
        mu_next = beta1 * (1 - 0.5 * 0.96 ** ((count + 1) * slowness))
        product = state["mu_product"]._array
        product *= mu
        of_gradient = lr * (1 - mu) / (1 - float(product))
        of_mean = lr * mu_next / (1 - float(product) * mu_next)
        correction, held = 1 - beta2**count, (state["exp_avg"], state["exp_avg_sq"])
        for xp, p, g, mean, square, w, t in self._with_moments(group, parameter, grad, *held):
            xp.divide(square, correction, out=w)
            xp.sqrt(w, out=w)
            w += group["eps"]
            xp.divide(g, w, out=t)
            t *= of_gradient
            p -= t
            xp.divide(mean, w, out=t)
            t *= of_mean
            p -= t

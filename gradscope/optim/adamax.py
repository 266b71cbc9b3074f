"""Adamax.

References
----------
D. Kingma, J. Ba, "Adam: a method for stochastic optimization", ICLR 2015, section 7.1.
"""

from __future__ import annotations

from typing import Any

from .optimizer import ParameterwiseOptimizer, check_settings, counted, descent, move_towards, plain_number, setting

__all__ = ["Adamax"]


class Adamax(ParameterwiseOptimizer):
    """Adamax: Adam with a decaying maximum of the gradient's size in the place of its second moment.

    Parameters
    ----------
    params : iterable
        Parameters or groups, see :class:`Optimizer`.
    lr : float
        Learning rate.
    betas : tuple of float
        Decay of the running mean and of the running maximum.
    eps : float
        Added to the size of the gradient.
    weight_decay : float
        Adds ``weight_decay * parameter`` to the gradient.
    maximize, foreach, capturable, differentiable : bool
        See :class:`Optimizer`.

    See Also
    --------
    Adam

    Examples
    --------
    >>> import gradscope as gs
    >>> w = gs.nn.Parameter(gs.tensor([1.0]))
    >>> optimizer = gs.optim.Adamax([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([0.9000])
    """

    _elementwise = True

    def __init__(
        self,
        params: Any,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_settings(lr=lr, eps=eps, betas=betas, weight_decay=weight_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def _update(self, parameter: Any, grad: Any, group: dict[str, Any]) -> None:
        state = self._state_of(parameter, "exp_avg", "exp_inf")
        beta1, beta2 = plain_number(group["betas"][0]), plain_number(group["betas"][1])
        step_size = setting(group, "lr") / (1 - beta1 ** counted(state))
        for xp, p, g, mean, largest, w, t in self._blocks(
            2, group, parameter, grad, state["exp_avg"], state["exp_inf"]
        ):
            g = descent(xp, p, g, group["weight_decay"], group["maximize"], t)
            move_towards(xp, mean, g, 1 - beta1, w)
            largest *= beta2
            xp.absolute(g, out=w)
            w += group["eps"]
            xp.maximum(largest, w, out=largest)
            xp.divide(mean, largest, out=w)
            w *= step_size
            p -= w

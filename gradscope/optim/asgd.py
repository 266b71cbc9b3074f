"""Averaged stochastic gradient descent.

References
----------
B. Polyak, A. Juditsky, "Acceleration of stochastic approximation by averaging", SIAM J. Control Optim. 30, 1992.
"""

from __future__ import annotations

from typing import Any

from .optimizer import ParameterwiseOptimizer, check_settings, counted, descent, plain_number, scalar_state

__all__ = ["ASGD"]


class ASGD(ParameterwiseOptimizer):
    """Averaged stochastic gradient descent: the state ``"ax"`` is the mean of the parameters from step `t0` on.

    Parameters
    ----------
    params : iterable
        Parameters or groups, see :class:`Optimizer`.
    lr : float
        Learning rate of the first step; that of step ``t`` is ``lr / (1 + lambd * lr * t) ** alpha``.
    lambd : float
        Decay of the parameters and of the learning rate.
    alpha : float
        Power of the learning rate's decay.
    t0 : float
        The step at which averaging starts.
    weight_decay : float
        Adds ``weight_decay * parameter`` to the gradient.
    maximize, foreach, capturable, differentiable : bool
        See :class:`Optimizer`.

    See Also
    --------
    SGD, optim.swa_utils.AveragedModel

    Examples
    --------
    >>> import gradscope as gs
    >>> w = gs.nn.Parameter(gs.tensor([1.0]))
    >>> optimizer = gs.optim.ASGD([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([0.8000])
    """

    _elementwise = True

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_settings(lr=lr, weight_decay=weight_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "lambd": lambd,
                "alpha": alpha,
                "t0": t0,
                "weight_decay": weight_decay,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def _writes(self, group: dict[str, Any]) -> int:
        # PyTorch shrinks the parameter in a write of its own.
        return 2

    def _update(self, parameter: Any, grad: Any, group: dict[str, Any]) -> None:
        lr, lambd = plain_number(group["lr"]), group["lambd"]
        state = self._state_of(parameter, "ax", eta=lr, mu=1)
        count = counted(state)
        eta, mu = float(state["eta"]._array), float(state["mu"]._array)
        for xp, p, g, average, w, t in self._blocks(2, group, parameter, grad, state["ax"]):
            g = descent(xp, p, g, group["weight_decay"], group["maximize"], t)
            p *= 1 - lambd * eta
            xp.multiply(g, eta, out=w)
            p -= w
            if mu == 1:
                average[...] = p
            else:
                xp.subtract(p, average, out=w)
                w *= mu
                average += w
        # These are in the default dtype, whatever dtype a loaded state has.
        state["eta"]._array[...] = scalar_state(lr / (1 + lambd * lr * count) ** group["alpha"])._array
        state["mu"]._array[...] = scalar_state(1 / max(1, count - group["t0"]))._array

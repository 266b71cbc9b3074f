"""Adagrad.

References
----------
J. Duchi, E. Hazan, Y. Singer, "Adaptive subgradient methods for online learning and stochastic optimization",
JMLR 12, 2011.
"""

from __future__ import annotations

from typing import Any

from ..runtime.memory import device as devices
from ..runtime.tensor.tensor import Tensor
from .optimizer import ParameterwiseOptimizer, check_settings, counted, descent, scalar_state, setting

__all__ = ["Adagrad"]


class Adagrad(ParameterwiseOptimizer):
    """Adagrad: the gradient is divided by the root of the sum of all its squares so far.

    Parameters
    ----------
    params : iterable
        Parameters or groups, see :class:`Optimizer`.
    lr : float
        Learning rate.
    lr_decay : float
        The learning rate of step ``t`` (from 0) is ``lr / (1 + t * lr_decay)``.
    weight_decay : float
        Adds ``weight_decay * parameter`` to the gradient.
    initial_accumulator_value : float
        Where the sums of squares start.
    eps : float
        Added to the denominator.
    maximize, foreach, differentiable, fused : bool
        See :class:`Optimizer`.

    See Also
    --------
    Adadelta, RMSprop

    Examples
    --------
    >>> import gradscope as gs
    >>> w = gs.nn.Parameter(gs.tensor([1.0]))
    >>> optimizer = gs.optim.Adagrad([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([0.9000])
    """

    _elementwise = True

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_settings(lr=lr, lr_decay=lr_decay, weight_decay=weight_decay)
        check_settings(initial_accumulator_value=initial_accumulator_value, eps=eps)
        super().__init__(
            params,
            {
                "lr": lr,
                "lr_decay": lr_decay,
                "eps": eps,
                "weight_decay": weight_decay,
                "initial_accumulator_value": initial_accumulator_value,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "fused": fused,
            },
        )
        for group in self.param_groups:
            for parameter in group["params"]:
                self._start(parameter)

    def _start(self, parameter: Tensor) -> dict[str, Any]:
        """Return the state before the first step."""
        array = parameter._array
        value = self.defaults["initial_accumulator_value"]
        if array.dtype.kind == "c":
            value = complex(value, value)
        state = self.state[parameter]
        state["step"] = scalar_state(0)
        state["sum"] = Tensor._wrap(devices.array_module(array).full_like(array, value))
        return state

    def _update(self, parameter: Any, grad: Any, group: dict[str, Any]) -> None:
        state = self._held(parameter) or self._start(parameter)
        lr = setting(group, "lr") / (1 + (counted(state) - 1) * group["lr_decay"])
        for xp, p, g, total, w, t in self._blocks(2, group, parameter, grad, state["sum"]):
            g = descent(xp, p, g, group["weight_decay"], group["maximize"], t)
            xp.multiply(g, g, out=w)
            total += w
            xp.sqrt(total, out=w)
            w += group["eps"]
            xp.divide(g, w, out=w)
            w *= lr
            p -= w

"""Adadelta.

References
----------
M. Zeiler, "ADADELTA: an adaptive learning rate method", arXiv:1212.5701.
"""

from __future__ import annotations

from typing import Any

from .optimizer import ParameterwiseOptimizer, check_settings, counted, descent, mix_square, setting

__all__ = ["Adadelta"]


class Adadelta(ParameterwiseOptimizer):
    """Adadelta: steps as long as recent steps were, relative to recent gradients.

    Parameters
    ----------
    params : iterable
        Parameters or groups, see :class:`Optimizer`.
    lr : float
        Factor of the step.
    rho : float
        Decay of the running means of squared gradients and squared steps.
    eps : float
        Added under both roots.
    weight_decay : float
        Adds ``weight_decay * parameter`` to the gradient.
    maximize, foreach, capturable, differentiable : bool
        See :class:`Optimizer`.

    See Also
    --------
    Adagrad, RMSprop

    Examples
    --------
    >>> import gradscope as gs
    >>> w = gs.nn.Parameter(gs.tensor([1.0]))
    >>> optimizer = gs.optim.Adadelta([w], lr=1.0)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([0.9968])
    """

    _elementwise = True

    def __init__(
        self,
        params: Any,
        lr: Any = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_settings(lr=lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}\nIt is from 0 to 1.")
        check_settings(eps=eps, weight_decay=weight_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "rho": rho,
                "eps": eps,
                "weight_decay": weight_decay,
                "maximize": maximize,
                "capturable": capturable,
                "foreach": foreach,
                "differentiable": differentiable,
            },
        )

    def _update(self, parameter: Any, grad: Any, group: dict[str, Any]) -> None:
        state = self._state_of(parameter, "square_avg", "acc_delta")
        counted(state)
        rho, eps, lr = group["rho"], group["eps"], setting(group, "lr")
        for xp, p, g, square, moved, w, t, delta in self._blocks(
            3, group, parameter, grad, state["square_avg"], state["acc_delta"]
        ):
            g = descent(xp, p, g, group["weight_decay"], group["maximize"], t)
            mix_square(xp, square, g, rho, w)
            xp.add(square, eps, out=w)
            xp.sqrt(w, out=w)
            xp.add(moved, eps, out=delta)
            xp.sqrt(delta, out=delta)
            delta /= w
            delta *= g
            mix_square(xp, moved, delta, rho, w)
            delta *= lr
            p -= delta

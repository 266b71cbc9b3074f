"""RMSprop.

References
----------
T. Tieleman, G. Hinton, "Lecture 6.5: RMSprop", COURSERA: Neural Networks for Machine Learning, 2012.
A. Graves, "Generating sequences with recurrent neural networks", arXiv:1308.0850 (the centered form).
"""

from __future__ import annotations

from typing import Any

from .optimizer import (
    ParameterwiseOptimizer,
    check_settings,
    complete_groups,
    counted,
    descent,
    mix_square,
    move_towards,
    setting,
)

__all__ = ["RMSprop"]


class RMSprop(ParameterwiseOptimizer):
    """RMSprop: the gradient is divided by the root of a running mean of its squares.

    Parameters
    ----------
    params : iterable
        Parameters or groups, see :class:`Optimizer`.
    lr : float
        Learning rate.
    alpha : float
        Decay of the running mean.
    eps : float
        Added to the denominator.
    weight_decay : float
        Adds ``weight_decay * parameter`` to the gradient.
    momentum : float
        The update is ``buffer = momentum * buffer + scaled gradient``.
    centered : bool
        Divide by the root of the variance: the mean of the gradients is taken out.
    maximize, foreach, capturable, differentiable : bool
        See :class:`Optimizer`.

    See Also
    --------
    Adagrad, Adam

    Examples
    --------
    >>> import gradscope as gs
    >>> w = gs.nn.Parameter(gs.tensor([1.0]))
    >>> optimizer = gs.optim.RMSprop([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([5.9605e-08])
    """

    _elementwise = True

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_settings(lr=lr, eps=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "alpha": alpha,
                "eps": eps,
                "centered": centered,
                "weight_decay": weight_decay,
                "capturable": capturable,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
            },
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        complete_groups(self, momentum=0, centered=False)

    def _update(self, parameter: Any, grad: Any, group: dict[str, Any]) -> None:
        momentum, centered = group["momentum"], group["centered"]
        extra = {"momentum_buffer": momentum > 0, "grad_avg": centered}
        state = self._state_of(parameter, "square_avg", *(name for name, kept in extra.items() if kept))
        counted(state)
        alpha, lr, eps = group["alpha"], setting(group, "lr"), group["eps"]
        held = [state["square_avg"]]
        if momentum > 0:
            held.append(state["momentum_buffer"])
        if centered:
            held.append(state["grad_avg"])
        for xp, p, g, square, *others, w, t in self._blocks(2, group, parameter, grad, *held):
            g = descent(xp, p, g, group["weight_decay"], group["maximize"], t)
            mix_square(xp, square, g, alpha, w)
            if centered:
                mean = others[-1]
                move_towards(xp, mean, g, 1 - alpha, w)
                xp.multiply(mean, mean, out=w)
                xp.subtract(square, w, out=w)
                xp.sqrt(w, out=w)
            else:
                xp.sqrt(square, out=w)
            w += eps
            xp.divide(g, w, out=w)
            if momentum > 0:
                buffer = others[0]
                buffer *= momentum
                buffer += w
                xp.multiply(buffer, lr, out=w)
            else:
                w *= lr
            p -= w

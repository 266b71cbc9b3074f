"""Adam and AdamW.

References
----------
D. Kingma, J. Ba, "Adam: a method for stochastic optimization", ICLR 2015.
I. Loshchilov, F. Hutter, "Decoupled weight decay regularization", ICLR 2019.
S. Reddi, S. Kale, S. Kumar, "On the convergence of Adam and beyond", ICLR 2018.
"""

from __future__ import annotations

import math
from typing import Any

from ..runtime.kernels import updates
from .moments import MomentOptimizer
from .optimizer import check_settings, counted, decays, setting

__all__ = ["Adam", "AdamW"]


class Adam(MomentOptimizer):
    """Adam: steps scaled by running estimates of the first two moments of the gradient.

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
    amsgrad : bool
        Divide by the largest second moment so far.
    decoupled_weight_decay : bool
        As :class:`AdamW`.
    maximize, foreach, capturable, differentiable, fused : bool
        See :class:`Optimizer`.

    See Also
    --------
    AdamW : With weight decay that is no part of the gradient.

    Examples
    --------
    >>> import gradscope as gs
    >>> w = gs.tensor([1.0], requires_grad=True)
    >>> optimizer = gs.optim.Adam([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([0.9000])
    """

    _elementwise = True

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        check_settings(lr=lr, eps=eps, betas=betas, weight_decay=weight_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "amsgrad": amsgrad,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "differentiable": differentiable,
                "fused": fused,
                "decoupled_weight_decay": decoupled_weight_decay,
            },
        )

    def _update(self, parameter: Any, grad: Any, group: dict[str, Any]) -> None:
        state = self._state_of(parameter, "exp_avg", "exp_avg_sq", *(["max_exp_avg_sq"] if group["amsgrad"] else []))
        count = counted(state)
        beta1, beta2 = self._betas(group)
        lr, eps, amsgrad = setting(group, "lr"), group["eps"], group["amsgrad"]
        step_size = lr / (1 - beta1**count)
        root = math.sqrt(1 - beta2**count)
        held = [state["exp_avg"], state["exp_avg_sq"], *([state["max_exp_avg_sq"]] if amsgrad else [])]
        whole = None if amsgrad else self._vectors(group, parameter, grad, *held)
        if whole is not None:
            sign, moments = -1 if group["maximize"] else 1, (1 - beta1, beta2, 1 - beta2)
            updates.run("adam", whole, *decays(group, lr), sign, *moments, root, eps, step_size)
            return
        for xp, p, _, mean, square, *most, w, _ in self._with_moments(group, parameter, grad, *held):
            if amsgrad:
                xp.maximum(most[0], square, out=most[0])
            xp.sqrt(most[0] if amsgrad else square, out=w)
            w /= root
            w += eps
            xp.divide(mean, w, out=w)
            w *= step_size
            p -= w


class AdamW(Adam):
    """Adam with decoupled weight decay: the parameter shrinks by ``lr * weight_decay`` before the step.

    Parameters
    ----------
    params, lr, betas, eps, weight_decay, amsgrad, maximize, foreach, capturable, differentiable, fused
        As for :class:`Adam`; `weight_decay` is 0.01 by default.

    See Also
    --------
    Adam

    Examples
    --------
    >>> import gradscope as gs
    >>> w = gs.nn.Parameter(gs.tensor([1.0]))
    >>> optimizer = gs.optim.AdamW([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([0.8990])
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True

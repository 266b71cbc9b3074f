"""Adam and AdamW.

References
----------
D. Kingma, J. Ba, "Adam: a method for stochastic optimization", ICLR 2015.
I. Loshchilov, F. Hutter, "Decoupled weight decay regularization", ICLR 2019.
S. Reddi, S. Kale, S. Kumar, "On the convergence of Adam and beyond", ICLR 2018.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..runtime import device as devices
from .optimizer import Optimizer, check_range, count_state, plain_number, zeros_state

__all__ = ["Adam", "AdamW"]


class Adam(Optimizer):
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
    maximize : bool
        Go up the gradient.
    decoupled_weight_decay : bool
        As :class:`AdamW`.
    foreach, fused : bool, optional
        Accepted for PyTorch's sake: there is one implementation.
    """

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
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        check_range("learning rate", lr)
        check_range("epsilon value", eps)
        check_range("beta parameter at index 0", betas[0], 0.0, 1.0)
        check_range("beta parameter at index 1", betas[1], 0.0, 1.0)
        check_range("weight_decay value", weight_decay)
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
                "fused": fused,
                "decoupled_weight_decay": decoupled_weight_decay,
            },
        )

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters once; return the closure's loss, if there is one."""
        loss = self._evaluate(closure)
        name = f"{type(self).__name__}.step"
        for group in self.param_groups:
            for parameter in group["params"]:
                meta = parameter._meta
                if meta is None or meta.grad is None:
                    continue
                self._update(parameter, meta.grad._array, group)
                if group["weight_decay"] and group["decoupled_weight_decay"]:
                    # PyTorch shrinks the parameter in a write of its own.
                    parameter._bump(name)
                parameter._bump(name)
        return loss

    def _update(self, parameter: Any, grad: Any, group: dict[str, Any]) -> None:
        state = self.state[parameter]
        if not state:
            state["step"] = count_state()
            state["exp_avg"] = zeros_state(parameter)
            state["exp_avg_sq"] = zeros_state(parameter)
            if group["amsgrad"]:
                state["max_exp_avg_sq"] = zeros_state(parameter)
        state["step"]._array += 1
        count = float(state["step"]._array)
        beta1, beta2 = plain_number(group["betas"][0]), plain_number(group["betas"][1])
        lr, decay, eps = plain_number(group["lr"]), group["weight_decay"], group["eps"]
        decoupled, up, amsgrad = group["decoupled_weight_decay"], group["maximize"], group["amsgrad"]
        step_size = lr / (1 - beta1**count)
        root = math.sqrt(1 - beta2**count)
        array = parameter._array
        xp = devices.array_module(array)
        multiply, sqrt = xp.multiply, xp.sqrt
        arrays = [array, grad, state["exp_avg"]._array, state["exp_avg_sq"]._array]
        if amsgrad:
            arrays.append(state["max_exp_avg_sq"]._array)
        for p, g, mean, square, *most, w, t in self._blocks(2, *arrays):
            if decay and decoupled:
                p *= 1 - lr * decay
            if up:
                g = xp.negative(g, out=t)
            if decay and not decoupled:
                multiply(p, decay, out=w)
                g = xp.add(w, g, out=t)
            xp.subtract(g, mean, out=w)
            w *= 1 - beta1
            mean += w
            multiply(g, g, out=w)
            w *= 1 - beta2
            square *= beta2
            square += w
            if amsgrad:
                xp.maximum(most[0], square, out=most[0])
            sqrt(most[0] if amsgrad else square, out=w)
            w /= root
            w += eps
            xp.divide(mean, w, out=w)
            w *= step_size
            p -= w


class AdamW(Adam):
    """Adam with decoupled weight decay: the parameter shrinks by ``lr * weight_decay`` before the step.

    Parameters
    ----------
    params, lr, betas, eps, weight_decay, amsgrad, maximize, foreach, fused
        As for :class:`Adam`; `weight_decay` is 0.01 by default.
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
            fused=fused,
            decoupled_weight_decay=True,
        )

"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..runtime.kernels import updates
from ..runtime.memory import device as devices
from ..runtime.memory.dtype import FLOATING
from ..runtime.tensor.tensor import Tensor
from .differentiable_steps import without_history
from .optimizer import Optimizer, check_settings, complete_groups, setting

__all__ = ["SGD"]

# Elements up to which a temporary array costs less than being handed a work array, or than a compiled call.
_AT_ONCE = (1 << 14) - 1


class SGD(Optimizer):
    """Stochastic gradient descent, optionally with momentum.

    Parameters
    ----------
    params : iterable
        Parameters or groups, see :class:`Optimizer`.
    lr : float
        Learning rate.
    momentum, dampening : float
        The update is ``buffer = momentum * buffer + (1 - dampening) * grad``. The buffer starts as the first gradient,
        through which no derivative goes with `differentiable`, as in PyTorch.
    weight_decay : float
        Adds ``weight_decay * parameter`` to the gradient.
    nesterov : bool
        Nesterov's momentum, in the form of Sutskever et al.
    maximize, foreach, differentiable, fused : bool
        See :class:`Optimizer`.

    References
    ----------
    I. Sutskever, J. Martens, G. Dahl, G. Hinton, "On the importance of initialization and momentum in deep learning",
    ICML 2013.

    See Also
    --------
    Adam, lr_scheduler

    Examples
    --------
    >>> import gradscope as gs
    >>> w = gs.tensor([1.0], requires_grad=True)
    >>> optimizer = gs.optim.SGD([w], lr=0.1)
    >>> (w * 3).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.7000], requires_grad=True)
    """

    _elementwise = True

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: Any = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_settings(lr=lr, momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "dampening": dampening,
                "weight_decay": weight_decay,
                "nesterov": nesterov,
                "maximize": maximize,
                "foreach": foreach,
                "differentiable": differentiable,
                "fused": fused,
            },
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        complete_groups(self, nesterov=False)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters once; return the closure's loss, if there is one."""
        loss = self._evaluate(closure)
        for group in self.param_groups:
            lr, decay = setting(group, "lr"), setting(group, "weight_decay")
            up, recorded = group["maximize"], group["differentiable"]
            if group["momentum"]:
                for parameter, grad in self._with_gradients(group):
                    self._with_momentum(parameter, grad, group, lr, decay)
                    self._finish(parameter, "SGD.step", not recorded)
                continue
            kind = rate = None
            plain = not decay and not recorded
            for parameter in group["params"]:
                meta = parameter._meta
                if meta is None or meta.grad is None:
                    continue
                array = parameter._array
                if parameter._dtype is not kind:
                    kind = parameter._dtype
                    rate = devices.numpy.array(-lr if up else lr, kind) if plain and kind.kind in FLOATING else None
                if rate is None or type(array) is not devices.ndarray or array.size > _AT_ONCE:
                    self._plain(parameter, meta.grad, group, -lr if up else lr, -decay if up else decay)
                else:
                    # Two calls of NumPy, with a rate that it need not convert: to join small parameters takes as long.
                    array -= meta.grad._array * rate
                if not recorded:
                    parameter._bump("SGD.step")
        return loss

    def _plain(self, parameter: Tensor, grad: Tensor, group: dict[str, Any], lr: Any, decay: Any) -> None:
        whole = self._vectors(group, parameter, grad)
        if whole is not None:
            updates.run("sgd", whole, lr, decay)
            return
        for xp, p, g, w in self._blocks(1, group, parameter, grad):
            if decay:
                xp.multiply(p, decay, out=w)
                w += g
                w *= lr
            else:
                xp.multiply(g, lr, out=w)
            p -= w

    def _with_momentum(self, parameter: Tensor, grad: Tensor, group: dict[str, Any], lr: Any, decay: Any) -> None:
        momentum, keep = group["momentum"], 1 - group["dampening"]
        state = self._held(parameter)
        buffer = state.get("momentum_buffer")
        first = buffer is None
        if buffer is None:
            array = parameter._array
            buffer = state["momentum_buffer"] = Tensor._wrap(devices.array_module(array).empty_like(array))
        whole = None if first else self._vectors(group, parameter, grad, buffer)
        if whole is not None:
            sign = -1 if group["maximize"] else 1
            updates.run("sgd_momentum", whole, lr, decay, sign, momentum, keep, group["nesterov"])
            buffer._bump("SGD.step")
            return
        for xp, p, g, b, w in self._blocks(1, group, parameter, grad, buffer):
            if decay:
                xp.multiply(p, decay, out=w)
                (xp.subtract if group["maximize"] else xp.add)(w, g, out=w)
            elif group["maximize"]:
                xp.negative(g, out=w)
            else:
                w[...] = g
            if first:
                b[...] = without_history(w)  # PyTorch starts the buffer with a detached gradient
            else:
                b *= momentum
                if keep == 1:
                    b += w
                else:
                    b += w * keep
            if group["nesterov"]:
                w += b * momentum
                w *= lr
            else:
                xp.multiply(b, lr, out=w)
            xp.subtract(p, w, out=p)
        if not group["differentiable"]:
            buffer._bump("SGD.step")

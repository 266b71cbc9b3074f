"""Adafactor.

References
----------
N. Shazeer, M. Stern, "Adafactor: adaptive learning rates with sublinear memory cost", ICML 2018.
"""

from __future__ import annotations

import math
from typing import Any

from ..runtime.memory import device as devices
from ..runtime.memory import dtype as dtypes
from ..runtime.tensor.tensor import Tensor
from .optimizer import ParameterwiseOptimizer, check_one, counted, move_towards, plain_number, scalar_state

__all__ = ["Adafactor"]


class Adafactor(ParameterwiseOptimizer):
    """Adafactor: the second moment of a matrix is kept as one row and one column.

    Parameters
    ----------
    params : iterable
        Parameters or groups, see :class:`Optimizer`.
    lr : float
        Upper bound of the relative step, which is ``1 / sqrt(t)``.
    beta2_decay : float
        The newest gradient's share in the second moment is ``t ** beta2_decay``.
    eps : tuple
        Smallest root of a second moment (None: the spacing of the dtype at 1), smallest scale of a parameter.
    d : float
        Updates with a root mean square above it are scaled down.
    weight_decay : float
        Shrinks the parameter by ``lr * weight_decay`` before the step.
    maximize, foreach : bool
        See :class:`Optimizer`.

    See Also
    --------
    Adam

    Examples
    --------
    >>> import gradscope as gs
    >>> w = gs.nn.Parameter(gs.ones(2, 2))
    >>> optimizer = gs.optim.Adafactor([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([[0.9000, 0.9000],
            [0.9000, 0.9000]])
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        check_one(lr)
        settings = [
            (plain_number(lr) >= 0.0, f"Learning rate should be >= 0 but is: {lr}"),
            (beta2_decay <= 0.0, f"beta2_decay should be <= 0 but is: {beta2_decay}"),
            (eps[0] is None or eps[0] >= 0.0, f"epsilon1 should be >= 0 but is: {eps[0]}"),
            (eps[1] >= 0.0, f"epsilon2 should be >= 0 but is: {eps[1]}"),
            (d >= 1.0, f"Clipping threshold d should be >= 1 but is: {d}"),
            (weight_decay >= 0.0, f"weight_decay should be >= 0 but is: {weight_decay}"),
        ]
        for right, complaint in settings:
            if not right:
                raise ValueError(complaint)
        super().__init__(
            params,
            {
                "lr": lr,
                "beta2_decay": beta2_decay,
                "eps": eps,
                "d": d,
                "weight_decay": weight_decay,
                "foreach": foreach,
                "maximize": maximize,
            },
        )

    def _writes(self, group: dict[str, Any]) -> int:
        # PyTorch shrinks the parameter in a write of its own.
        return 2 if group["weight_decay"] else 1

    def _start(self, parameter: Tensor, grad: Any) -> dict[str, Any]:
        """Return the state before the first step."""
        if grad.dtype.kind == "c":
            raise RuntimeError(
                "Adafactor does not support complex parameters\n"
                "Give it the parameter as pairs of real numbers: gs.view_as_real."
            )
        xp = devices.array_module(grad)
        state = self.state[parameter]
        state["step"] = scalar_state(0)
        if grad.ndim > 1:
            *batch, rows, columns = grad.shape
            state["row_var"] = Tensor._wrap(xp.zeros((*batch, rows, 1), dtype=grad.dtype))
            state["col_var"] = Tensor._wrap(xp.zeros((*batch, 1, columns), dtype=grad.dtype))
        else:
            state["variance"] = Tensor._wrap(xp.zeros_like(grad))
        return state

    def _update(self, parameter: Any, grad: Any, group: dict[str, Any]) -> None:
        grad = grad._array
        state = self.state[parameter] or self._start(parameter, grad)
        count, lr, (eps1, eps2) = counted(state), plain_number(group["lr"]), group["eps"]
        array = parameter._array
        xp = devices.array_module(array)
        if eps1 is None:
            eps1 = dtypes.finfo(parameter.dtype).eps
        step_size = xp.fmax(_root_mean_square(xp, array), eps2) * min(lr, 1 / math.sqrt(count))
        if group["weight_decay"]:
            array *= 1 - lr * group["weight_decay"]
        update = self._second_moment(xp, grad, state, count ** group["beta2_decay"], eps1)
        xp.maximum(update, eps1 * eps1, out=update)
        xp.sqrt(update, out=update)
        xp.divide(grad, update, out=update)
        # All of this is on the device: nobody waits for a norm.
        update *= step_size / xp.fmax(_root_mean_square(xp, update) / group["d"], 1.0)
        (xp.add if group["maximize"] else xp.subtract)(array, update, out=array)

    def _second_moment(self, xp: Any, grad: Any, state: dict[str, Any], share: float, eps1: float) -> Any:
        """Move the second moment towards the squares of a gradient; return it (its estimate) in a new array."""
        square = xp.multiply(grad, grad)
        if grad.ndim < 2:
            square = xp.asarray(square)
            variance = state["variance"]._array
            move_towards(xp, variance, square, share, xp.empty_like(square))
            square[...] = variance
            return square
        row, column = state["row_var"]._array, state["col_var"]._array
        for moment, axis in ((row, -1), (column, -2)):
            mean = square.mean(axis=axis, keepdims=True)
            move_towards(xp, moment, mean, share, xp.empty_like(mean))
        scale = xp.maximum(row.mean(axis=-2, keepdims=True), eps1)
        return xp.multiply(row / scale, column, out=square)


def _root_mean_square(xp: Any, array: Any) -> Any:
    """Return the root of the mean square, where the array is."""
    flat = array.reshape(-1)
    if flat.dtype.itemsize == 2:
        flat = flat.astype("f4")
    return xp.sqrt(xp.dot(flat, flat)) * (1 / math.sqrt(array.size))

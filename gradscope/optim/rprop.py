"""Resilient backpropagation.

References
----------
M. Riedmiller, H. Braun, "A direct adaptive method for faster backpropagation learning: the RPROP algorithm", IEEE
International Conference on Neural Networks, 1993.
"""

from __future__ import annotations

from typing import Any

from ..runtime.memory import device as devices
from ..runtime.tensor.tensor import Tensor
from .optimizer import ParameterwiseOptimizer, check_settings, counted, descent, plain_number, scalar_state, zeros_state

__all__ = ["Rprop"]


class Rprop(ParameterwiseOptimizer):
    """Resilient backpropagation: each element has a step of its own, and of the gradient only the sign counts.

    Parameters
    ----------
    params : iterable
        Parameters or groups, see :class:`Optimizer`.
    lr : float
        The first step.
    etas : tuple of float
        Factors of an element's step where the sign has changed, and where it has not.
    step_sizes : tuple of float
        The shortest and the longest step.
    maximize, foreach, capturable, differentiable : bool
        See :class:`Optimizer`.

    See Also
    --------
    SGD

    Examples
    --------
    >>> import gradscope as gs
    >>> w = gs.nn.Parameter(gs.tensor([1.0]))
    >>> optimizer = gs.optim.Rprop([w], lr=0.1)
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
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_settings(lr=lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(
                f"Invalid eta values: {etas[0]}, {etas[1]}\nThe first is between 0 and 1, the second above 1."
            )
        super().__init__(
            params,
            {
                "lr": lr,
                "etas": etas,
                "step_sizes": step_sizes,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def _start(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """Return the state before the first step."""
        array, lr = parameter._array, plain_number(group["lr"])
        first = complex(lr, lr) if array.dtype.kind == "c" else lr
        state = self.state[parameter]
        state["step"] = scalar_state(0)
        state["prev"] = zeros_state(parameter)
        state["step_size"] = Tensor._wrap(devices.array_module(array).full_like(array, first))
        return state

    def _update(self, parameter: Any, grad: Any, group: dict[str, Any]) -> None:
        state = self._held(parameter) or self._start(parameter, group)
        counted(state)
        shrink, grow = group["etas"]
        shortest, longest = group["step_sizes"]
        for xp, p, g, previous, step, w, t in self._blocks(
            2, group, parameter, grad, state["prev"], state["step_size"]
        ):
            g = descent(xp, p, g, 0, group["maximize"], t)
            xp.multiply(g, previous, out=w)
            turned, kept = w < 0, w > 0
            w.fill(1)
            xp.copyto(w, grow, where=kept)
            xp.copyto(w, shrink, where=turned)
            step *= w
            xp.maximum(step, shortest, out=step)
            xp.minimum(step, longest, out=step)
            previous[...] = g
            xp.copyto(previous, 0, where=turned)
            xp.sign(previous, out=w)
            # A gradient that is not a number has no sign.
            xp.copyto(w, 0, where=previous != previous)
            w *= step
            p -= w

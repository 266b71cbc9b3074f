"""The two running moments of the gradient that Adam, NAdam and RAdam keep."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..runtime.tensor.tensor import Tensor
from .optimizer import ParameterwiseOptimizer, decays, descent, mix_square, move_towards, plain_number, setting

__all__ = ["MomentOptimizer"]


class MomentOptimizer(ParameterwiseOptimizer):
    """Base of Adam and its relatives: they differ in what they make of the moments."""

    @staticmethod
    def _betas(group: dict[str, Any]) -> tuple[float, float]:
        """Return the decay of both moments as numbers."""
        first, second = group["betas"]
        return plain_number(first), plain_number(second)

    def _with_moments(
        self, group: dict[str, Any], parameter: Tensor, grad: Tensor, mean: Tensor, square: Tensor, *more: Tensor
    ) -> Iterator[tuple[Any, ...]]:
        """Decay the parameter, let the gradient into its moments, and yield the parts of all; see ``_blocks``."""
        shrink, decay = decays(group, setting(group, "lr"))
        beta1, beta2 = self._betas(group)
        for xp, p, g, m, s, *others, w, t in self._blocks(2, group, parameter, grad, mean, square, *more):
            if shrink != 1:
                p *= shrink
            down = descent(xp, p, g, decay, group["maximize"], t)
            move_towards(xp, m, down, 1 - beta1, w)
            mix_square(xp, s, down, beta2, w)
            yield xp, p, down, m, s, *others, w, t

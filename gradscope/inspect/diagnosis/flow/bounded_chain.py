"""Chains of operators that must make the gradient vanish, seen in the graph before any of it has run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..finding_limits import Limits

__all__ = ["LET_THROUGH", "SATURATING", "BoundedChain", "bounded_chain"]

_LARGEST_SLOPE = {"Sigmoid": 0.25, "Hardsigmoid": 1 / 6}
"""By operator the largest derivative that it can have: that of the sigmoid is s * (1 - s), at most 1/4."""

SATURATING = frozenset({"Hardsigmoid", "Sigmoid", "Tanh"})
"""Activations whose derivative is next to nothing for large inputs."""

LET_THROUGH = "ReLU or GELU in their place, normalisation between them, or connections past them let it through."
"""What to do about them where they leave little of a gradient."""


@dataclass(frozen=True, slots=True)
class BoundedChain:
    """The way to a parameter on which the gradient must vanish.

    Attributes
    ----------
    parameter : str
        The parameter with the smallest bound.
    bound : float
        The operators that have one multiply the gradient by at most this, together, on each way to the parameter.
    nodes : tuple of int
        Those operators on the way with the largest bound, in execution order.
    """

    parameter: str
    bound: float
    nodes: tuple[int, ...]


def bounded_chain(
    operators: Sequence[str],
    targets: Sequence[Sequence[int]],
    parameters: Mapping[int, str],
    most: float = Limits.bounded_chain,
) -> BoundedChain | None:
    """Return the parameter whose gradient is bounded most, if that is next to nothing.

    Parameters
    ----------
    operators : sequence of str
        For each node in execution order the name of its operator.
    targets : sequence of sequence of int
        The nodes that its gradients go to.
    parameters : mapping of int to str
        The names of the parameters, by the nodes that accumulate into them.
    most : float
        What is next to nothing.

    Returns
    -------
    BoundedChain or None
        A way around the bounded operators, such as a residual connection, has the bound 1.

    Examples
    --------
    >>> names = ["Sum", *["Sigmoid"] * 8, "AccumulateGrad"]
    >>> chain = bounded_chain(names, [(i + 1,) for i in range(9)] + [()], {9: "w"})
    >>> chain.parameter, chain.bound, len(chain.nodes)
    ('w', 1.52587890625e-05, 8)
    >>> bounded_chain(names, [(1, 9), *((i + 1,) for i in range(1, 9)), ()], {9: "w"})
    """
    bounds = [0.0] * len(operators)
    before = [-1] * len(operators)
    for index, operator in enumerate(operators):
        if before[index] < 0:
            bounds[index] = 1.0
        passed_on = bounds[index] * _LARGEST_SLOPE.get(operator, 1.0)
        for target in targets[index]:
            if passed_on > bounds[target]:
                bounds[target], before[target] = passed_on, index
    leaf = min(parameters, key=lambda index: bounds[index], default=-1)
    if leaf < 0 or bounds[leaf] > most:
        return None
    way, at = [], before[leaf]
    while at >= 0:
        if operators[at] in _LARGEST_SLOPE:
            way.append(at)
        at = before[at]
    return BoundedChain(parameters[leaf], bounds[leaf], tuple(reversed(way)))

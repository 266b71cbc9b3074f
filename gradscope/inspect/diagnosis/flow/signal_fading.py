"""Values that fade on their way forward, seen in what the layers of a graph have saved of their inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ..finding_limits import Limits

__all__ = ["FadedSignal", "faded_signal"]


@dataclass(frozen=True, slots=True)
class FadedSignal:
    """The way of the values from where they are large to the layer that gets next to nothing.

    Attributes
    ----------
    index : int
        The layer whose input has faded, as the place of its node in execution order.
    before, size : float
        The root mean square of the input where the way begins, and of that layer's.
    steps : tuple of (int, float)
        The layers on the way, in the order of the forward pass, each with what it and what follows it leave of its
        input's size.
    """

    index: int
    before: float
    size: float
    steps: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class _LayerPath:
    """A layer and its input's size, with the way that leads to that input and the largest size on it."""

    layer: int
    size: float
    largest: float
    before: _LayerPath | None


def faded_signal(
    sizes: Mapping[int, float], targets: Sequence[Sequence[int]], most: float = Limits.faded_signal
) -> FadedSignal | None:
    """Return the layer whose input has faded most, None if those of all layers are as large as usual.

    An input that is zero everywhere has not faded: what starts at zero is meant to.

    Parameters
    ----------
    sizes : mapping of int to float
        By the places of the nodes that are layers, the root mean square of their inputs.
    targets : sequence of sequence of int
        For each node in execution order the nodes that its gradients go to: those that have made its inputs.
    most : float
        The size that has faded, and its share of the largest.

    Examples
    --------
    >>> chain = [(i + 1,) for i in range(4)] + [()]
    >>> found = faded_signal({4: 1.0, 2: 1e-3, 0: 1e-5}, chain)
    >>> found.index, [(layer, f"{factor:.0e}") for layer, factor in found.steps]
    (0, [(4, '1e-03'), (2, '1e-02')])
    >>> faded_signal({4: 1.0, 2: 1e-3, 0: 0.5}, chain)
    """
    ways: list[_LayerPath | None] = [None] * len(targets)
    faded: list[_LayerPath] = []
    for index in range(len(targets) - 1, -1, -1):
        comes = [way for target in targets[index] if (way := ways[target]) is not None]
        # Of branches that join, the largest makes the size of the whole.
        before = ways[index] = max(comes, key=lambda way: way.size, default=None)
        size = sizes.get(index, 0.0)
        if not size:
            continue
        way = ways[index] = _LayerPath(index, size, max(size, before.largest if before else 0.0), before)
        if size <= most * min(1.0, way.largest):
            faded.append(way)
    return _from_the_largest(min(faded, key=lambda way: way.size)) if faded else None


def _from_the_largest(end: _LayerPath) -> FadedSignal:
    """Return the way to a layer from the largest input on it."""
    way = [end]
    while way[-1].size < end.largest and way[-1].before is not None:
        way.append(way[-1].before)
    way.reverse()
    steps = tuple((layer.layer, following.size / layer.size) for layer, following in pairwise(way))
    return FadedSignal(end.layer, end.largest, end.size, steps)

"""Sample arguments for the tests that every operator must pass.

A declaration names one of these (or its own function): given ``make(*shape, low=, high=)``, which makes a tensor with
elements in the open interval, it returns a list of ``(args, kwargs)``. Elements keep clear of points where a function
has no derivative.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .annotations import Cases, Make

if TYPE_CHECKING:
    from ...tensor.tensor import Tensor

__all__ = ["Samples", "binary", "by_number", "dominant", "integers", "mask", "unary"]

Samples = Callable[[Make], Cases]


def mask(make: Make, *shape: int) -> Tensor:
    """Return a tensor of truth values."""
    return make(*shape, dtype="float64").detach() > 0


def dominant(make: Make, *shape: int) -> Tensor:
    """Return square matrices with a large diagonal; of the two last sizes, the one of both is given once."""
    x = make(*shape, shape[-1], low=-1.0, high=1.0)
    for i in range(shape[-1]):
        x._array[..., i, i] += 3 + i
    return x


def unary(low: float = -2.0, high: float = 2.0, **kwargs: Any) -> Samples:
    """One tensor of several shapes (0-d and empty ones too), elements in (low, high)."""

    def samples(make: Make) -> Cases:
        return [((make(*shape, low=low, high=high),), dict(kwargs)) for shape in ((3, 4), (), (0, 2), (2, 1, 3))]

    return samples


def binary(
    low: float = -2.0,
    high: float = 2.0,
    *,
    low2: float | None = None,
    high2: float | None = None,
    scalar: float | None = 1.5,
) -> Samples:
    """Two tensors, equal and broadcasting shapes, and a tensor with a number."""

    def samples(make: Make) -> Cases:
        second = {"low": low if low2 is None else low2, "high": high if high2 is None else high2}
        pairs = [((3, 4), (3, 4)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2,)), ((0, 2), (1, 2)), ((), ())]
        found: Cases = [((make(*a, low=low, high=high), make(*b, **second)), {}) for a, b in pairs]
        if scalar is not None:
            found.append(((make(2, 3, low=low, high=high), scalar), {}))
        return found

    return samples


def by_number(low: float, high: float, number: float = 1.5) -> Samples:
    """One tensor of several shapes, elements in (low, high), and a number."""

    def samples(make: Make) -> Cases:
        return [((make(*shape, low=low, high=high), number), {}) for shape in ((2, 3), (), (0, 2))]

    return samples


def integers(count: int) -> Samples:
    """`count` integer tensors of one shape, and of broadcasting shapes; bool ones too."""

    def samples(make: Make) -> Cases:
        shapes = [((2, 3), (2, 3)), ((2, 1), (1, 3)), ((), ()), ((0, 2), (2,))]
        return [
            (tuple(make(*shape, low=0, high=high, dtype=kind) for shape in pair[:count]), {})
            for pair in shapes
            for kind, high in (("int64", 9), ("bool", 2))
        ]

    return samples

"""Hypothesis strategies: shapes that broadcast, and tensors.

Hypothesis is imported when a strategy is made, so that importing gradscope does not need it.

Examples
--------
>>> from hypothesis import given
>>> from gradscope.testing import strategies
>>> @given(strategies.tensors(shape=(2, 3), requires_grad=True))
... def test_square(x):
...     assert (x * x).shape == x.shape
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy

from ..runtime.memory import dtype as dtypes
from ..runtime.tensor.tensor import Tensor

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = ["broadcastable_shapes", "broadcastable_tensors", "dtypes_of", "shapes", "tensors"]

FLOATS = (dtypes.float32, dtypes.float64)


def _strategies() -> Any:
    try:
        from hypothesis import strategies  # optional dependency
    except ImportError:
        raise ImportError(
            "gradscope.testing.strategies needs Hypothesis.\nInstall it with: pip install 'gradscope-debugger[test]'"
        ) from None
    return strategies


def shapes(*, min_dims: int = 0, max_dims: int = 3, min_side: int = 0, max_side: int = 4) -> SearchStrategy[tuple]:
    """Draw shapes: 0-d and empty ones too, unless the minima say otherwise."""
    st = _strategies()
    return st.lists(st.integers(min_side, max_side), min_size=min_dims, max_size=max_dims).map(tuple)


def dtypes_of(kinds: str = "f") -> SearchStrategy[dtypes.dtype]:
    """Draw dtypes of the given kinds: ``"f"`` floating, ``"c"`` complex, ``"i"`` integral, ``"b"`` bool."""
    st = _strategies()
    wanted = {"f": FLOATS, "c": (dtypes.complex64, dtypes.complex128), "b": (dtypes.bool_,)}
    wanted["i"] = (dtypes.uint8, dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64)
    unknown = set(kinds) - set(wanted)
    if unknown or not kinds:
        raise ValueError(f"unknown dtype kinds {kinds!r}\nUse letters of {', '.join(wanted)}.")
    return st.sampled_from([d for kind in kinds for d in wanted[kind]])


def broadcastable_shapes(
    count: int = 2, *, max_dims: int = 3, min_side: int = 1, max_side: int = 4
) -> SearchStrategy[tuple[tuple[int, ...], ...]]:
    """Draw `count` shapes that broadcast together."""
    st = _strategies()

    @st.composite
    def draw_shapes(draw: Any) -> tuple[tuple[int, ...], ...]:
        full = draw(shapes(max_dims=max_dims, min_side=min_side, max_side=max_side))
        found = []
        for _ in range(count):
            kept = draw(st.integers(0, len(full)))
            found.append(tuple(draw(st.sampled_from((size, 1))) for size in full[len(full) - kept :]))
        return tuple(found)

    return draw_shapes()


def tensors(
    *,
    shape: Sequence[int] | SearchStrategy[tuple] | None = None,
    dtype: dtypes.dtype | SearchStrategy[dtypes.dtype] | None = None,
    low: float = -2.0,
    high: float = 2.0,
    elements: SearchStrategy[Any] | None = None,
    requires_grad: bool | SearchStrategy[bool] = False,
    contiguous: bool | None = None,
) -> SearchStrategy[Tensor]:
    """Draw tensors with elements in [low, high].

    Parameters
    ----------
    shape : sequence of int or strategy, optional
        :func:`shapes` unless given.
    dtype : dtype or strategy, optional
        float32 or float64 unless given.
    elements : strategy, optional
        Of the numbers, which are then drawn one by one, so that a failing example has the simplest that fail; `low` and
        `high` mean nothing then. Unless given they come from a seed, which is quicker and does not shrink.
    requires_grad : bool or strategy
        Ignored for dtypes that have no gradients.
    contiguous : bool, optional
        True draws contiguous tensors, False transposed ones; both unless given.
    """
    st = _strategies()

    def drawn(draw: Any, value: Any, default: Any) -> Any:
        value = default if value is None else value
        return draw(value) if hasattr(value, "example") else value

    @st.composite
    def draw_tensor(draw: Any) -> Tensor:
        size = tuple(drawn(draw, shape, shapes()))
        kind = drawn(draw, dtype, dtypes_of("f"))
        transposed = not contiguous if contiguous is not None else draw(st.booleans())
        layout = size[::-1] if transposed else size
        if elements is None:
            array = _uniform(draw(st.integers(0, 2**16)), low, high, layout, kind)
        else:
            count = math.prod(layout)
            numbers = draw(st.lists(elements, min_size=count, max_size=count))
            array = numpy.array(numbers, kind.numpy).reshape(layout)
        tensor = Tensor._wrap(array.T if transposed else array)
        wanted = drawn(draw, requires_grad, False)
        return tensor.requires_grad_() if wanted and (kind.is_floating_point or kind.is_complex) else tensor

    return draw_tensor()


def _uniform(seed: int, low: float, high: float, shape: Sequence[int], kind: dtypes.dtype) -> numpy.ndarray:
    generator = numpy.random.default_rng(seed)
    array = generator.uniform(low, high, shape)
    if kind.is_complex:
        array = array + 1j * generator.uniform(low, high, shape)
    return numpy.asarray(array).astype(kind.numpy)


def broadcastable_tensors(count: int = 2, *, max_dims: int = 3, max_side: int = 4, **options: Any) -> Any:
    """Draw `count` tensors whose shapes broadcast together; `options` as for :func:`tensors`."""
    st = _strategies()
    options.setdefault("dtype", dtypes.float64)
    return broadcastable_shapes(count, max_dims=max_dims, max_side=max_side).flatmap(
        lambda found: st.tuples(*(tensors(shape=s, **options) for s in found))
    )

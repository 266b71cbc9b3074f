"""Uses of a function transform on gradscope and on PyTorch, and whether they agree."""

from __future__ import annotations

from typing import Any

import numpy

import gradscope as gs

POINT = [0.5, 1.5, -2.0]


def plain(value: Any) -> Any:
    """Return a tree of tensors of either library as lists."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value.detach().numpy().tolist() if hasattr(value, "detach") else value


def agree(torch: Any, use: Any) -> None:
    found, expected = (plain(use(m, m.tensor(POINT, dtype=m.float64))) for m in (gs, torch))
    flat_found, flat_expected = (numpy.array(flat(x)) for x in (found, expected))
    assert shape_of(found) == shape_of(expected)
    numpy.testing.assert_allclose(flat_found, flat_expected, rtol=1e-9, atol=1e-12)


def flat(value: Any) -> list[float]:
    if isinstance(value, dict):
        return [x for item in value.values() for x in flat(item)]
    return [x for item in value for x in flat(item)] if isinstance(value, list) else [float(value)]


def shape_of(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: shape_of(item) for key, item in value.items()}
    return [shape_of(item) for item in value] if isinstance(value, list) else ()


def cubes(x: Any) -> Any:
    return (x**3).sum() + x.prod()

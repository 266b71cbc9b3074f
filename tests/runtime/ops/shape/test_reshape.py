"""Moving dimensions: what is refused, and tensors without any."""

from __future__ import annotations

from typing import Any

import pytest

import gradscope as gs
from tests.side_by_side import same_complaint


@pytest.mark.torch
@pytest.mark.parametrize(
    ("source", "destination"), [((0, 1), (0,)), ((0, 0), (0, 1)), ((0, 1), (1, 1)), ((0, -2), (1, 0)), (5, 0), (0, -3)]
)
def test_dimensions_that_cannot_be_moved(torch: Any, source: Any, destination: Any) -> None:
    same_complaint(torch, lambda lib: lib.zeros(2, 3).movedim(source, destination))


def test_a_tensor_without_dimensions_has_one_to_move() -> None:
    x = gs.tensor(1.0)
    assert x.movedim(0, 0).tolist() == 1.0
    assert x.movedim(0, 0)._base is x


@pytest.mark.torch
def test_a_tensor_without_dimensions_has_none_to_split(torch: Any) -> None:
    for lib in (gs, torch):
        with pytest.raises(RuntimeError, match="unflatten"):
            lib.tensor(1.0).unflatten(0, (1, -1))

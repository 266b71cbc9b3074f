"""Distances: the modules are shown and computed as in PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

import gradscope as gs
from tests.nn.modules.layers import normal
from tests.side_by_side import compare


@pytest.mark.torch
@pytest.mark.parametrize("make", [lambda n: n.CosineSimilarity(0), lambda n: n.PairwiseDistance(1.0, keepdim=True)])
def test_distance_is_that_of_pytorch(torch: Any, make: Any) -> None:
    made = {lib: make(lib.nn) for lib in (gs, torch)}
    assert repr(made[gs]) == repr(made[torch])
    compare(torch, lambda lib, x, y: made[lib](x, y), normal(4, 3), normal(4, 3))

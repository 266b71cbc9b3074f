"""Sizes given once, or for each dimension."""

from __future__ import annotations

from typing import Any

import pytest

from gradscope.nn.modules import utils


@pytest.mark.torch
@pytest.mark.parametrize("name", ["_single", "_pair", "_triple", "_quadruple"])
@pytest.mark.parametrize("value", [3, (1, 2), [4, 5, 6], "ab"])
def test_sizes(torch: Any, name: str, value: Any) -> None:
    ours, theirs = getattr(utils, name), getattr(torch.nn.modules.utils, name)
    assert (ours(value), ours.__name__) == (theirs(value), theirs.__name__)

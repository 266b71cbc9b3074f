"""What the tests of checkpoints run in them."""

from __future__ import annotations

from typing import Any

import pytest

import gradscope as gs

Reentrant = pytest.mark.parametrize("reentrant", [True, False])


def leaf(*values: float) -> Any:
    return gs.tensor(values or (0.5, 1.0, 2.0), requires_grad=True)


def wave(x: Any) -> Any:
    return x.exp().sin()

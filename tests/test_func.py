"""The names of gs.func."""

from __future__ import annotations

from typing import Any

import pytest

import gradscope as gs

pytestmark = pytest.mark.torch


def test_the_names_of_the_package(torch: Any) -> None:
    missing = {name for name in dir(torch.func) if not name.startswith("_")} - set(dir(gs.func))
    assert missing == {"debug_unwrap", "functionalize", "rearrange"}
    assert gs.vmap is gs.func.vmap

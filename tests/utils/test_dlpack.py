"""Memory shared by DLPack."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

import gradscope as gs
from gradscope.utils.dlpack import from_dlpack, to_dlpack


@pytest.mark.torch
def test_a_capsule_shares_the_memory(torch: Any) -> None:
    dlpack = importlib.import_module("torch.utils.dlpack")
    x = gs.ones(3)
    dlpack.from_dlpack(to_dlpack(x)).add_(1)
    from_dlpack(torch.from_dlpack(x)).add_(1)
    assert x.tolist() == [3.0, 3.0, 3.0]


def test_what_requires_grad_is_not_shared() -> None:
    with pytest.raises(BufferError, match="require gradient"):
        to_dlpack(gs.ones(1, requires_grad=True))

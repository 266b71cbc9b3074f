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
    from_dlpack(dlpack.to_dlpack(torch.from_dlpack(x))).add_(1)
    assert x.tolist() == [4.0, 4.0, 4.0]


def test_ones_own_capsule_is_taken_back_once() -> None:
    x = gs.arange(6.0).reshape(2, 3)
    capsule = to_dlpack(x.t())
    back = gs.from_dlpack(capsule)
    back[2, 1] = 9.0
    assert back.stride() == (1, 3)
    assert x.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 9.0]]
    with pytest.raises(RuntimeError, match=r"invalid capsule\nA capsule can be used once"):
        from_dlpack(capsule)
    with pytest.raises(RuntimeError, match="needs a tensor, an array or a DLPack capsule, not int"):
        from_dlpack(3)


def test_what_requires_grad_is_not_shared() -> None:
    with pytest.raises(BufferError, match="require gradient"):
        to_dlpack(gs.ones(1, requires_grad=True))

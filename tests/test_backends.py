"""The modules of libraries that are not there: their switches are kept, and put back."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import pytest

import gradscope as gs
from gradscope.nn.attention import SDPBackend, sdpa_kernel


def test_a_library_is_a_module_as_in_pytorch() -> None:
    cudnn = importlib.import_module("gradscope.backends.cudnn")
    cudnn.benchmark = True
    assert gs.backends.cudnn.benchmark
    cudnn.benchmark = False


@pytest.mark.torch
@pytest.mark.parametrize("name", ["cudnn", "mkldnn", "nnpack", "opt_einsum"])
def test_switches_are_put_back_after_a_block(torch: Any, name: str) -> None:
    ours, theirs = getattr(gs.backends, name), getattr(torch.backends, name)
    given = inspect.signature(ours.flags).parameters
    wanted = inspect.signature(theirs.flags).parameters
    assert {n: p.default for n, p in given.items()}.items() <= {n: p.default for n, p in wanted.items()}.items()
    before = {n: getattr(ours, n) for n in given}
    with ours.flags(enabled=not before["enabled"]):
        assert ours.enabled is not before["enabled"]
    assert {n: getattr(ours, n) for n in given} == before


@pytest.mark.torch
def test_kernels_of_attention(torch: Any) -> None:
    def told(m: Any, backends: Any) -> list[bool]:
        cuda = m.backends.cuda
        asked = [cuda.flash_sdp_enabled, cuda.math_sdp_enabled, cuda.mem_efficient_sdp_enabled]
        with m.nn.attention.sdpa_kernel(backends(m.nn.attention.SDPBackend)):
            inside = [ask() for ask in asked]
        return inside + [ask() for ask in asked]

    importlib.import_module("torch.nn.attention")
    for backends in (lambda k: k.MATH, lambda k: [k.FLASH_ATTENTION, k.EFFICIENT_ATTENTION]):
        assert told(gs, backends) == told(torch, backends)
    with pytest.raises(AssertionError, match="Backend must be an instance"):
        sdpa_kernel("math").__enter__()  # type: ignore[arg-type]


def test_attention_is_the_same_by_each_kernel() -> None:
    q = gs.randn(1, 2, 4, 8)
    expected = gs.nn.functional.scaled_dot_product_attention(q, q, q)
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        assert gs.equal(gs.nn.functional.scaled_dot_product_attention(q, q, q), expected)
    with gs.backends.cuda.sdp_kernel(enable_math=False):
        assert not gs.backends.cuda.math_sdp_enabled()
    gs.backends.cuda.enable_math_sdp(False)
    assert not gs.backends.cuda.math_sdp_enabled()
    gs.backends.cuda.enable_math_sdp(True)

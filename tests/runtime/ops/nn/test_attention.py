"""Scaled dot-product attention against PyTorch: masks, causality, shared heads."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import gradscope as gs
from tests.runtime.ops.operator_cases import assert_same_refusal
from tests.side_by_side import compare


def values(*shape: int) -> Any:
    return numpy.cos(numpy.arange(numpy.prod(shape)) * 1.7).reshape(shape)


Q, K, V = values(2, 4, 3, 5), values(2, 4, 6, 5)[..., ::-1], values(2, 4, 6, 2)
MASK = numpy.arange(18).reshape(3, 6) % 3 > 0
MASK[1] = False  # a query that sees no key


@pytest.mark.torch
@pytest.mark.parametrize(
    "options",
    [{}, {"is_causal": True}, {"scale": 0.3}, {"attn_mask": MASK}, {"attn_mask": values(3, 6)}],
    ids=["plain", "causal", "scale", "bool mask", "number mask"],
)
def test_attention(torch: Any, options: dict[str, Any]) -> None:
    def use(lib: Any, q: Any, k: Any, v: Any) -> Any:
        given = {n: lib.tensor(o) if isinstance(o, numpy.ndarray) else o for n, o in options.items()}
        return lib.nn.functional.scaled_dot_product_attention(q, k, v, **given)

    compare(torch, use, Q, K.copy(), V, names=False, twice=False)
    compare(torch, use, Q[0, 0], K[0, 0].copy(), V[0, 0], names=False, twice=False)


@pytest.mark.torch
def test_heads_of_keys_serve_several_of_queries(torch: Any) -> None:
    compare(
        torch,
        lambda lib, q, k, v: lib.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True),
        Q,
        K[:, :2].copy(),
        V[:, :2].copy(),
        names=False,
        twice=False,
    )


@pytest.mark.torch
def test_a_mask_of_float32_serves_half_precision(torch: Any) -> None:
    for lib in (gs, torch):
        q = lib.ones(2, 3).half()
        attended = lib.nn.functional.scaled_dot_product_attention(q, q, q, lib.zeros(2, 2))
        assert attended.dtype is lib.float16


@pytest.mark.parametrize("kind", [gs.float16, gs.bfloat16])
@pytest.mark.parametrize("causal", [False, True])
def test_half_precision_is_rounded_once(kind: Any, causal: bool) -> None:
    def attended(dtype: Any) -> list[Any]:
        inputs = [gs.tensor(array.copy(), dtype=kind).to(dtype).requires_grad_() for array in (Q, K, V)]
        result = gs.nn.functional.scaled_dot_product_attention(*inputs, is_causal=causal)
        assert result.dtype is dtype
        return [result, *gs.autograd.grad(result.sum(), inputs)]

    for half, single in zip(attended(kind), attended(gs.float32), strict=True):
        assert half.tolist() == single.to(kind).tolist()


def test_dropout_of_everything_leaves_nothing() -> None:
    q = gs.ones(2, 3)
    assert not gs.nn.functional.scaled_dot_product_attention(q, q, q, dropout_p=1.0).any()


@pytest.mark.torch
def test_refusals(torch: Any) -> None:
    def attend(lib: Any, *tensors: Any, **options: Any) -> Any:
        return lib.nn.functional.scaled_dot_product_attention(*tensors, **options)

    assert_same_refusal(torch, lambda lib: attend(lib, lib.ones(2), lib.ones(2), lib.ones(2)))
    assert_same_refusal(torch, lambda lib: attend(lib, lib.ones(2, 2), lib.ones(2, 2), lib.ones(2, 2).double()))
    assert_same_refusal(
        torch, lambda lib: attend(lib, *(lib.ones(2, 2),) * 3, attn_mask=lib.zeros(2, 2, dtype=lib.float16))
    )
    assert_same_refusal(torch, lambda lib: attend(lib, *(lib.ones(2, 2),) * 3, enable_gqa=True))
    assert_same_refusal(torch, lambda lib: attend(lib, lib.ones(4, 2, 2), *(lib.ones(3, 2, 2),) * 2, enable_gqa=True))
    assert_same_refusal(torch, lambda lib: attend(lib, *(lib.ones(2, 2),) * 3, dropout_p=2.0))
    masked = {"is_causal": True}
    q = (2, 2)
    assert_same_refusal(
        torch, lambda lib: attend(lib, *(lib.ones(q, requires_grad=True),) * 3, attn_mask=lib.zeros(q), **masked)
    )

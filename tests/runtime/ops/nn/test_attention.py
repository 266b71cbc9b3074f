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


OPTIONS = {
    "plain": {},
    "causal": {"is_causal": True},
    "scale": {"scale": 0.3},
    "negative scale": {"scale": -0.3},
    "bool mask": {"attn_mask": MASK},
    "number mask": {"attn_mask": values(3, 6)},
    "mask of keys": {"attn_mask": values(2, 1, 1, 6)},
}


def attend(lib: Any, q: Any, k: Any, v: Any, **options: Any) -> Any:
    given = {n: lib.tensor(o) if isinstance(o, numpy.ndarray) else o for n, o in options.items()}
    return lib.nn.functional.scaled_dot_product_attention(q, k, v, **given)


@pytest.mark.torch
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_attention(torch: Any, options: dict[str, Any]) -> None:
    def use(lib: Any, q: Any, k: Any, v: Any) -> Any:
        return attend(lib, q, k, v, **options)

    compare(torch, use, Q, K.copy(), K.copy()[::-1].copy(), twice=False)
    compare(torch, use, Q, K.copy(), V, twice=False)
    if numpy.ndim(options.get("attn_mask", 0)) < 3:
        compare(torch, use, Q[0, 0], K[0, 0].copy(), V[0, 0], twice=False)


@pytest.mark.torch
@pytest.mark.parametrize("width", [5, 2])
def test_heads_of_keys_serve_several_of_queries(torch: Any, width: int) -> None:
    def use(lib: Any, q: Any, k: Any, v: Any) -> Any:
        return attend(lib, q, k, v, enable_gqa=True)

    compare(torch, use, Q, K[:, :2].copy(), K[:, 2:, :, :width].copy(), twice=False)


@pytest.mark.torch
@pytest.mark.parametrize("options", [*OPTIONS.values(), {"enable_gqa": True}], ids=[*OPTIONS, "shared heads"])
def test_a_second_derivative_is_that_of_the_composed_function(torch: Any, options: dict[str, Any]) -> None:
    """PyTorch's node has none; its math kernel does."""
    shared = slice(2 if "enable_gqa" in options else 4)

    def second(lib: Any) -> Any:
        inputs = [lib.tensor(a.copy(), requires_grad=True) for a in (Q, K[:, shared], K[::-1, shared])]
        found = attend(lib, *inputs, **options)
        first = lib.autograd.grad((found * found).sum(), inputs, create_graph=True)
        return [g.numpy() for g in lib.autograd.grad(sum((g * g).sum() for g in first), inputs)]

    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        expected = second(torch)
    for found, wanted in zip(second(gs), expected, strict=True):
        numpy.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-9)


def described(lib: Any, inputs: list[Any], **options: Any) -> Any:
    """Return the names of a result's nodes, what the first one has saved, and the result's strides."""

    def names(node: Any) -> Any:
        return node and (node.name().rpartition("::")[2], [names(n) for n, _ in node.next_functions])

    result = attend(lib, *inputs, **options)
    node = result.grad_fn
    saved = {}
    for name in dir(node):
        if name.startswith("_saved_"):
            value = getattr(node, name)
            saved[name] = tuple(value.shape) if hasattr(value, "shape") else value
    return names(node), saved if "Scaled" in node.name() else None, tuple(result.stride())


@pytest.mark.torch
@pytest.mark.parametrize(
    "options",
    [*OPTIONS.values(), {"dropout_p": 0.5}, {"dropout_p": 0.5, "is_causal": True}],
    ids=[*OPTIONS, "dropout", "causal dropout"],
)
@pytest.mark.parametrize("needed", [(1, 1, 1), (0, 1, 0)], ids=["all", "keys alone"])
def test_nodes_are_pytorchs(torch: Any, options: dict[str, Any], needed: tuple[int, ...]) -> None:
    arrays = [(array, bool(need)) for array, need in zip((Q, K.copy(), K.copy()), needed, strict=True)]

    def of(lib: Any, place: tuple[int, ...] = (), layout: bool = False, kind: str = "float64") -> Any:
        inputs = []
        for array, need in arrays:
            values = numpy.ascontiguousarray(array[place].swapaxes(1, 2)) if layout else array[place]
            leaf = lib.tensor(values, dtype=getattr(lib, kind), requires_grad=need)
            inputs.append(leaf.transpose(1, 2) if layout else leaf)
        used = {n: o.astype(kind) if n == "attn_mask" and o.dtype != bool else o for n, o in options.items()}
        return described(lib, inputs, **used)

    assert of(gs) == of(torch)
    assert of(gs, kind="float32", layout=True) == of(torch, kind="float32", layout=True)
    if numpy.ndim(options.get("attn_mask", 0)) < 3:
        assert of(gs, (0,)) == of(torch, (0,))
        assert of(gs, (0, 0)) == of(torch, (0, 0))


@pytest.mark.torch
def test_a_mask_that_learns_takes_the_nodes_apart(torch: Any) -> None:
    def use(lib: Any, q: Any, mask: Any) -> Any:
        return lib.nn.functional.scaled_dot_product_attention(q, q, q, mask)

    compare(torch, use, Q, values(3, 3))


def test_writing_what_attention_has_saved_is_found() -> None:
    q = gs.tensor(Q, requires_grad=True)
    output = gs.nn.functional.scaled_dot_product_attention(q, q, q)
    output.detach().zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        output.sum().backward()


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

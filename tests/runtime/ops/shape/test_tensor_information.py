"""Functions that ask about tensors, attributes such as mT, and functions with PyTorch's older arguments."""

from __future__ import annotations

import math
from typing import Any

import pytest

import gradscope as gs
from tests.runtime.ops.operator_cases import assert_agrees, assert_same_refusal


@pytest.mark.torch
@pytest.mark.parametrize(
    ("use", "shapes"),
    [
        (lambda m, x: x.mT, [(2, 3, 2)]),
        (lambda m, x: x.mH, [(2, 3)]),
        (lambda m, x: x.H, [(2, 3)]),
        (lambda m, x: x.T, [(2, 3)]),
        (lambda m, x: m.adjoint(x), [(2, 3)]),
        (lambda m, x: m.moveaxis(x, 0, 1), [(2, 3)]),
        (lambda m, x: m.isposinf(m.tensor([math.inf, -math.inf, 1.0])), [(1,)]),
        (lambda m, x: m.isneginf(m.tensor([math.inf, -math.inf, 1.0])), [(1,)]),
        (lambda m, x: m.isreal(m.tensor([1j, 1.0])), [(1,)]),
        (lambda m, x: m.isin(m.arange(4), m.tensor([1, 3])), [(1,)]),
        (lambda m, x: m.isin(m.arange(4), 2, invert=True), [(1,)]),
        (lambda m, x: m.argwhere(x.detach() > 0), [(2, 3)]),
        (lambda m, x: m.histc(x.detach(), 4), [(6,)]),
        (lambda m, x: m.histc(x.detach(), 4, 0, 0.3), [(6,)]),
        (lambda m, x: m.float_power(x.float() + 1, 2), [(3,)]),
        (lambda m, x: m.embedding(x, m.tensor([1, 0, 1])), [(2, 3)]),
        (lambda m, x: m.embedding(x, m.tensor([1, 0, 1]), 1), [(2, 3)]),
        (lambda m, x: m.dropout(x, 0.5, False), [(3,)]),
        (lambda m, x: m.positive(x) * 1, [(3,)]),
    ],
)
def test_agrees_with_pytorch(torch: Any, use: Any, shapes: Any) -> None:
    assert_agrees(torch, use, *shapes)


@pytest.mark.torch
@pytest.mark.parametrize(
    "use",
    [
        lambda m: m.numel([1]),
        lambda m: m.detach(3),
        lambda m: m.is_nonzero(m.ones(2)),
        lambda m: m.ones(2).mT,
        lambda m: m.ones(2, 3, 4).H,
        lambda m: m.histc(m.ones(2), 0),
        lambda m: m.histc(m.ones(2), 4, 2, 1),
        lambda m: m.positive(m.ones(2, dtype=m.bool)),
        lambda m: m.isin(1, 2),
        lambda m: m.sum("text"),
        lambda m: m.reshape(None, (2,)),
    ],
)
def test_wrong_calls_raise_pytorchs_exceptions(torch: Any, use: Any) -> None:
    assert_same_refusal(torch, use)


def test_questions() -> None:
    x = gs.ones(2, 3, requires_grad=True)
    assert gs.numel(x) == 6
    assert gs.is_floating_point(x)
    assert not gs.is_complex(x)
    assert x.is_same_size(gs.zeros(2, 3))
    assert x.is_signed()
    assert x.layout is gs.strided
    assert gs.is_nonzero(gs.ones(1))
    assert gs.result_type(gs.ones(2, dtype=gs.int32), 1.5) is gs.float32
    assert gs.can_cast(gs.int64, gs.float32)
    assert not gs.can_cast(gs.float32, gs.int64)


def test_detach_shares_memory_and_version() -> None:
    x = gs.ones(2, requires_grad=True) * 1
    other = gs.detach(x)
    gs.zero_(other)
    assert (x.tolist(), x._version, other.grad_fn) == ([0.0, 0.0], 1, None)


def test_memory_formats() -> None:
    x = gs.arange(24.0).reshape(1, 2, 3, 4)
    last = x.contiguous(memory_format=gs.channels_last)
    assert last.stride() == (24, 1, 8, 2)
    assert last.contiguous(memory_format=gs.channels_last) is last
    assert last.clone().stride() == last.stride()
    assert last.clone(memory_format=gs.contiguous_format).stride() == (24, 12, 4, 1)
    assert gs.equal(last, x)
    with pytest.raises(RuntimeError, match="rank 4"):
        gs.ones(2).clone(memory_format=gs.channels_last)
    with pytest.raises(RuntimeError, match="preserve memory format is unsupported"):
        x.contiguous(memory_format=gs.preserve_format)


# --- where the elements are -------------------------------------------------------------------------------------------


@pytest.mark.torch
@pytest.mark.parametrize(
    "use",
    [
        lambda x: x.get_device(),
        lambda x: [x.is_sparse, x.is_quantized, x.is_meta, x.is_nested, x.is_mkldnn, x.is_sparse_csr, x.is_xpu],
        lambda x: [x.is_conj(), x.is_neg(), x.is_pinned(), x.is_shared()],
        lambda x: [x.resolve_conj() is x, x.resolve_neg() is x, x.share_memory_() is x],
        lambda x: [x.dim_order(), x.transpose(0, 2).dim_order()],
        lambda x: [x.is_contiguous(), x.transpose(0, 1).is_contiguous()],
    ],
)
def test_memory(torch: Any, use: Any) -> None:
    assert use(gs.ones(2, 3, 4)) == use(torch.ones(2, 3, 4))


@pytest.mark.torch
def test_what_is_contiguous(torch: Any) -> None:
    for m in (gs, torch):
        plain = m.zeros(2, 3, 4, 5)
        last = m.empty(2, 3, 4, 5, memory_format=m.channels_last)
        asked = [m.contiguous_format, m.channels_last]
        assert [plain.is_contiguous(memory_format=f) for f in asked] == [True, False]
        assert [last.is_contiguous(memory_format=f) for f in asked] == [False, True]
        assert not m.zeros(3).is_contiguous(memory_format=m.channels_last)


@pytest.mark.torch
def test_a_histogram_into_a_tensor(torch: Any) -> None:
    for m in (gs, torch):
        out = m.empty(0)
        assert m.histc(m.tensor([1.0, 2.0, 1.0]), bins=2, out=out) is out
        assert out.tolist() == [2.0, 1.0]

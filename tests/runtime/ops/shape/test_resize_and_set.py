"""resize_, set_, apply_ and map_: other memory, or other elements, past autograd."""

from __future__ import annotations

from typing import Any

import pytest

import gradscope as gs
from tests.runtime.ops.operator_cases import assert_same_refusal


def test_resize_keeps_the_elements_of_the_storage() -> None:
    x = gs.arange(6.0)
    assert x.resize_(2, 2) is x
    assert x.tolist() == [[0.0, 1.0], [2.0, 3.0]]
    assert x.resize_((2, 3)).tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert x.resize_(3, 4).flatten()[:6].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert x._version == 3
    assert gs.zeros(4).resize_as_(gs.ones(2, 1)).shape == (2, 1)


def test_resize_of_a_view_starts_where_the_view_does() -> None:
    base = gs.arange(6.0)
    part = base[2:].resize_(2, 2)
    assert part.tolist() == [[2.0, 3.0], [4.0, 5.0]]
    part[0, 0] = 9.0
    assert base.tolist() == [0.0, 1.0, 9.0, 3.0, 4.0, 5.0]
    assert base._version == 2


def test_resize_to_its_shape_leaves_the_strides() -> None:
    x = gs.arange(6.0).reshape(2, 3).t()
    assert x.resize_(3, 2).tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
    assert (x.stride(), x._version) == ((1, 3), 0)
    assert x.resize_as_(gs.zeros(2, 2)).tolist() == [[0.0, 1.0], [2.0, 3.0]]
    assert gs.zeros(1).resize_(1, 2, 3, 4, memory_format=gs.channels_last).stride() == (24, 1, 8, 2)


def test_resize_grows_the_memory_before_a_view_too() -> None:
    x = gs.arange(6.0)[2:]
    x.resize_(5)
    assert (x.storage_offset(), len(x.untyped_storage())) == (2, 28)
    assert x.as_strided((6,), (1,), 0).tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def shared(m: Any, x: Any) -> list[Any]:
    """Return tensors that share the storage of a vector in all the ways there are, and the storage."""
    return [x, x[1:], x[1:][:1], x.detach(), x.data, x.view(m.int32), x.expand(2, 4), x[3:3], x.untyped_storage()]


GROWTHS = {
    "the tensor": lambda m, x: x.resize_(6),
    "a view": lambda m, x: x[1:].resize_(6),
    "a detached one": lambda m, x: x.detach().resize_(7),
    "past its data": lambda m, x: x.data.resize_(7),
    "of another dtype": lambda m, x: x.view(m.int32).resize_(7),
    "the storage": lambda m, x: x.untyped_storage().resize_(24),
    "the storage, and less again": lambda m, x: x.untyped_storage().resize_(40).resize_(20),
    "the storage to what it has": lambda m, x: x.untyped_storage().resize_(16),
}


@pytest.mark.torch
@pytest.mark.parametrize("how", GROWTHS)
def test_all_that_share_a_storage_grow_with_it(torch: Any, how: str) -> None:
    def facts(m: Any) -> list[Any]:
        x = m.arange(4.0)
        *tensors, storage = shared(m, x)
        grown = GROWTHS[how](m, x)
        x.fill_(3.0)
        after = [(t.tolist(), t.storage_offset(), t.stride(), t.untyped_storage().nbytes()) for t in tensors[1:-1]]
        return [len(storage), len(grown), after, [t._version for t in tensors]]

    assert facts(gs) == facts(torch)


@pytest.mark.torch
def test_a_leaf_goes_with_the_storage_that_grows(torch: Any) -> None:
    def facts(m: Any) -> Any:
        w = m.ones(2, 2).t().contiguous().requires_grad_()
        y = w * w
        w.detach().resize_(9).fill_(4.0)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()
        (w * w).sum().backward()
        return w.tolist(), w.grad.tolist(), w.grad.stride(), w._version, len(w.untyped_storage())

    assert facts(gs) == facts(torch)


def test_shared_storages_grow_elsewhere_and_of_bfloat16(other_device: Any) -> None:
    for x in (gs.zeros(2, 2, device=other_device), gs.zeros(2, 2, dtype=gs.bfloat16)):
        row = x.t()[1]
        x.resize_(3, 3)
        row.fill_(2.0)
        assert x.flatten()[:4].tolist() == [0.0, 2.0, 0.0, 2.0]
        assert len(row.untyped_storage()) == x.nbytes


def test_a_storage_is_not_cut_off_under_a_tensor() -> None:
    x = gs.arange(4.0)
    storage = x.untyped_storage()
    with pytest.raises(RuntimeError, match=r"of which a tensor of shape \[4\] takes 16\nLet go"):
        storage.resize_(15)
    with pytest.raises(RuntimeError, match="to -1 bytes"):
        storage.resize_(-1)
    assert (len(storage), x.tolist()) == (16, [0.0, 1.0, 2.0, 3.0])
    del x
    assert len(storage.resize_(0)) == 0


def test_an_offset_of_set_is_counted_from_where_its_source_starts() -> None:
    tail = gs.arange(6.0)[2:]
    assert gs.zeros(1).set_(tail, 1, (2,), (2,)).tolist() == [3.0, 5.0]
    assert gs.zeros(1).set_(tail.untyped_storage(), 1, (2,), (2,)).tolist() == [1.0, 3.0]
    assert gs.zeros(1, dtype=gs.int64).set_(tail.untyped_storage()).shape == (3,)
    assert gs.zeros(1, dtype=gs.int64).set_(gs.zeros(5, dtype=gs.uint8).untyped_storage()).shape == (0,)


def test_a_part_is_set_of_a_contiguous_tensor_only() -> None:
    """A second set_() would else count the offset from a tensor of which the first has taken every other element."""
    x, flat = gs.zeros(1), gs.arange(6.0)
    assert x.set_(flat, 1, (2,), (2,)).tolist() == [1.0, 3.0]
    with pytest.raises(RuntimeError, match="passed in tensor to be used as storage must be contiguous"):
        x.set_(x, 1, (2,))
    assert x.tolist() == [1.0, 3.0]
    assert x.set_(flat[::2]).tolist() == [0.0, 2.0, 4.0]


def test_a_part_of_another_dtype_shows_its_bytes() -> None:
    numbers = gs.tensor([1.0, 2.0, 3.0, 4.0])
    bits = gs.zeros(1, dtype=gs.int32).set_(numbers[1:], 1, (2,))
    assert bits.view(gs.float32).tolist() == [3.0, 4.0]


def test_set_shares_memory_and_not_the_version() -> None:
    x, y = gs.ones(3), gs.zeros(2, 2)
    x.set_(y)
    y[0, 0] = 5.0
    assert x.tolist() == [[5.0, 0.0], [0.0, 0.0]]
    x.add_(1)
    assert (x._version, y._version) == (2, 1)
    assert gs.ones(3).set_().shape == (0,)
    flat = gs.arange(6.0)
    assert gs.ones(1).set_(flat.untyped_storage(), 1, (2, 2), (2, 1)).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert gs.ones(1).set_(flat.untyped_storage()).tolist() == flat.tolist()


def test_a_leaf_set_under_no_grad_accumulates_in_its_new_shape() -> None:
    x = gs.ones(3, requires_grad=True)
    (x * 2).sum().backward()
    x.grad = None
    with gs.no_grad():
        x.set_(gs.zeros(2, 2))
    (x * 3).sum().backward()
    assert x.grad.tolist() == [[3.0, 3.0], [3.0, 3.0]]


def test_apply_and_map() -> None:
    x = gs.arange(3.0)
    assert x.apply_(lambda value: value * 2) is x
    assert x.tolist() == [0.0, 2.0, 4.0]
    assert x.map_(gs.ones(3), lambda a, b: a + b).tolist() == [1.0, 3.0, 5.0]
    assert x.map2_(gs.ones(3), gs.ones(()), lambda a, b, c: a - b - c).tolist() == [-1.0, 1.0, 3.0]
    assert x._version == 3
    assert gs.arange(3).apply_(lambda value: value + 1.5).tolist() == [1, 2, 3]
    transposed = gs.arange(4.0).reshape(2, 2).t()
    assert transposed.apply_(lambda value: value + 1).tolist() == [[1.0, 3.0], [2.0, 4.0]]


@pytest.mark.torch
@pytest.mark.parametrize(
    "use",
    [
        lambda m: m.ones(3, requires_grad=True).resize_(2),
        lambda m: m.ones(3).resize_("a"),
        lambda m: m.ones(3).resize_(-1),
        lambda m: m.ones(3).resize_(1 << 40, 1 << 40),
        lambda m: m.ones(3).resize_(2, memory_format=m.channels_last),
        lambda m: m.ones(3).resize_(2, memory_format=m.preserve_format),
        lambda m: m.ones(3).set_(m.ones(2), 1),
        lambda m: m.ones(3).set_(m.ones(2), -1, (1,)),
        lambda m: m.ones(3).set_(m.ones(2).untyped_storage(), 0, (2,), (-1,)),
        lambda m: m.ones(3).set_(m.ones(6)[::2], 0, (2,)),
        lambda m: m.ones(3).set_(m.ones(2, 3).t(), 0, (2,)),
        lambda m: m.ones(3).set_(m.ones(2, dtype=m.float64)),
        lambda m: m.ones(3, requires_grad=True).set_(m.ones(2)),
        lambda m: m.ones(3, requires_grad=True).apply_(abs),
        lambda m: m.ones(3).apply_(str),
        lambda m: m.ones(3).map_(m.ones(3, dtype=m.float64), max),
        lambda m: m.ones(3).map_(2.0, max),
        lambda m: m.ones(3).map_(m.ones(3, requires_grad=True), max),
    ],
)
def test_wrong_calls_raise_pytorchs_exceptions(torch: Any, use: Any) -> None:
    assert_same_refusal(torch, use)


def test_set_refuses_to_lose_history() -> None:
    y = gs.ones(3, requires_grad=True) * 1
    with pytest.raises(RuntimeError, match="derivative for aten::set_ is not implemented"):
        y.set_(gs.ones(2))
    assert (y.shape, y._version) == ((3,), 0)

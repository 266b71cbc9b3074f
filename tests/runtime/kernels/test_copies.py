"""Copies in row-major order are NumPy's, whatever the layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradscope as gs
from gradscope.runtime.kernels import copies, threads
from gradscope.runtime.kernels.copies import copy_into, row_major_copy


def is_copy(found: Any, array: Any) -> bool:
    same = (found.dtype, found.shape, found.tobytes()) == (array.dtype, array.shape, array.tobytes())
    return same and found.flags.c_contiguous and found.flags.owndata and not np.may_share_memory(found, array)


@settings(deadline=None, max_examples=200)
@given(st.data())
def test_every_layout_is_copied_as_numpy_copies_it(data: Any) -> None:
    shape = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=4))
    kind = data.draw(st.sampled_from(["f", "d", "D", "?", "e"]))
    array = np.random.default_rng(0).integers(0, 5, shape).astype(kind)
    array = array.transpose(data.draw(st.permutations(range(len(shape)))))
    array = array[tuple(slice(None, None, data.draw(st.sampled_from([1, 1, 2, -1]))) for _ in shape)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(copies, "_SMALL", 0)
        patch.setattr(copies, "_FEW", 1)
        patch.setattr(copies, "_ALIASED", 1)
        patch.setattr(copies, "_LINE", 16)
        assert is_copy(row_major_copy(array), array)


@pytest.mark.parametrize("kind", ["f", "d", "D", "i1", "?"])
@pytest.mark.parametrize("lay_out", [lambda a: a.T, lambda a: a.T[::-1], lambda a: a[:, ::-1].T, lambda a: a.T[1:, 3:]])
@pytest.mark.parametrize("shape", [(1024, 256), (256, 1030), (2048, 64)], ids=str)
def test_matrices_whose_columns_are_far_apart(shape: Any, lay_out: Any, kind: str) -> None:
    array = lay_out(np.random.default_rng(0).integers(0, 2, shape).astype(kind))
    assert is_copy(row_major_copy(array), array)


def test_stacks_of_transposed_matrices() -> None:
    array = np.arange(3 * 128 * 256, dtype="f").reshape(3, 128, 256).transpose(0, 2, 1)
    assert is_copy(row_major_copy(array), array)


def test_numbers_and_empty_arrays() -> None:
    for array in (np.array(2.0), np.zeros((3, 0)).T, np.broadcast_to(np.float32(1), (256, 256))):
        assert is_copy(row_major_copy(array), array)


def test_tensors_are_copied_so() -> None:
    x = gs.randn(256, 512, requires_grad=True)
    y = x.t().contiguous()
    assert y.is_contiguous()
    assert y.detach().numpy().tobytes() == x.detach().numpy().T.tobytes()
    y.backward(gs.ones_like(y) * 2)
    assert x.grad.tolist() == gs.full((256, 512), 2.0).tolist()
    images = gs.randn(2, 64, 16, 16)
    last = images.contiguous(memory_format=gs.channels_last)
    assert last.is_contiguous(memory_format=gs.channels_last)
    assert gs.equal(last, images)


def test_an_array_that_is_copied_into_its_own_memory_is_read_first(monkeypatch: pytest.MonkeyPatch) -> None:
    def one_after_the_other(size: int, work: Any, *rest: Any, **more: Any) -> None:
        work(slice(0, size // 2))
        work(slice(size // 2, size))

    monkeypatch.setattr(threads, "over", one_after_the_other)
    monkeypatch.setattr(threads, "sharing", [2])
    array = np.arange(1024.0 * 1024).reshape(1024, 1024)
    expected = array.T.copy()
    copy_into(array, array.T)
    np.testing.assert_array_equal(array, expected)

"""Padding and packing of sequences against PyTorch, and that each undoes the other."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradscope as gs
from gradscope.nn.utils import rnn
from tests.side_by_side import compare, same_complaint


def values(*shape: int) -> Any:
    return numpy.cos(numpy.arange(numpy.prod(shape)) * 1.3).reshape(shape)


def parts(packed: Any) -> list[Any]:
    return [None if t is None else t.tolist() for t in packed]


@pytest.mark.torch
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("lengths", [[4, 2, 1], [1, 4, 2], [4, 4, 4], [3, 3, 1]], ids=str)
def test_packing_is_that_of_pytorch(torch: Any, lengths: list[int], batch_first: bool) -> None:
    x = values(3, 4, 2) if batch_first else values(4, 3, 2)

    def pack(lib: Any, t: Any) -> Any:
        return lib.nn.utils.rnn.pack_padded_sequence(t, lengths, batch_first, enforce_sorted=False)

    def padded(lib: Any, t: Any) -> Any:
        return lib.nn.utils.rnn.pad_packed_sequence(pack(lib, t), batch_first, -1.0, 6)[0]

    assert parts(pack(gs, gs.tensor(x))) == parts(pack(torch, torch.tensor(x)))
    compare(torch, lambda lib, t: pack(lib, t).data.sin(), x)
    compare(torch, lambda lib, t: pack(lib, t).data, x)
    compare(torch, lambda lib, t: padded(lib, t).sin(), x)
    ends = [
        lib.nn.utils.rnn.pad_packed_sequence(pack(lib, lib.tensor(x)), batch_first)[1].tolist() for lib in (gs, torch)
    ]
    assert ends == [lengths, lengths]


@pytest.mark.torch
@pytest.mark.parametrize(
    "options", [{}, {"batch_first": True}, {"padding_value": 2.0, "padding_side": "left"}], ids=str
)
def test_padding_is_that_of_pytorch(torch: Any, options: dict[str, Any]) -> None:
    compare(
        torch,
        lambda lib, *sequences: lib.nn.utils.rnn.pad_sequence(sequences, **options).sin(),
        values(2, 3),
        values(4, 3),
        values(1, 3),
    )
    shapes = [tuple(lib.nn.utils.rnn.pad_sequence(lib.zeros(2, 3), **options).shape) for lib in (gs, torch)]
    assert shapes[0] == shapes[1]


@settings(max_examples=30)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=5), st.integers(0, 2))
def test_unpacking_undoes_packing(lengths: list[int], features: int) -> None:
    sequences = [gs.randn(n, *[2] * features) for n in lengths]
    packed = rnn.pack_sequence(sequences, enforce_sorted=False)
    assert packed.data.shape[0] == sum(lengths) == int(packed.batch_sizes.sum())
    assert packed.batch_sizes.tolist() == [sum(n > t for n in lengths) for t in range(max(lengths))]
    for found, expected in zip(rnn.unpack_sequence(packed), sequences, strict=True):
        assert gs.equal(found, expected)
    for batch_first in (False, True):
        padded = rnn.pad_sequence(sequences, batch_first)
        for found, expected in zip(rnn.unpad_sequence(padded, gs.tensor(lengths), batch_first), sequences, strict=True):
            assert gs.equal(found, expected)


def test_unpadding_leaves_its_argument_as_it_is() -> None:
    padded = rnn.pad_sequence([gs.ones(3), gs.ones(1)])
    rnn.unpad_sequence(padded, gs.tensor([3, 1]))
    assert padded.shape == (3, 2)


def test_a_packed_sequence_is_converted() -> None:
    packed = rnn.pack_sequence([gs.ones(2), gs.ones(3)], enforce_sorted=False)
    assert packed.to(gs.float32) is packed
    assert not packed.is_cuda
    kinds = ("double", "float", "half", "long", "int", "short", "char", "byte")
    expected = ["float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8"]
    assert [str(getattr(packed, kind)().data.dtype).split(".")[1] for kind in kinds] == expected
    assert packed.double().unsorted_indices.tolist() == packed.unsorted_indices.tolist() == [1, 0]
    assert packed.cpu() is packed
    pair = rnn.PackedSequence((packed.data, packed.batch_sizes), None, packed.sorted_indices)
    assert pair.unsorted_indices.tolist() == [1, 0]


def test_inverting_a_permutation() -> None:
    order = gs.tensor([2, 0, 1])
    assert order[rnn.invert_permutation(order)].tolist() == [0, 1, 2]
    assert rnn.invert_permutation(None) is None


X = (4, 3, 2)


@pytest.mark.torch
@pytest.mark.parametrize(
    "wrong",
    [
        lambda lib, r: r.pack_padded_sequence(lib.zeros(X), [1, 2, 4]),
        lambda lib, r: r.pack_padded_sequence(lib.zeros(X), [4, 2, 0]),
        lambda lib, r: r.pack_padded_sequence(lib.zeros(X), [4, 2]),
        lambda lib, r: r.pack_padded_sequence(lib.zeros(X), lib.tensor([[4, 2, 1]])),
        lambda lib, r: r.pack_padded_sequence(lib.zeros(0, 3, 2), [4, 2, 1]),
        lambda lib, r: r.pack_padded_sequence(lib.zeros(3), [4, 2, 1]),
        lambda lib, r: r.pad_packed_sequence(r.pack_sequence([lib.zeros(3)]), total_length=2),
        lambda lib, r: r.pad_sequence([]),
        lambda lib, r: r.pad_sequence([lib.zeros(2, 3), lib.zeros(2, 2)]),
        lambda lib, r: r.pad_sequence([lib.zeros(2)], padding_side="top"),
        lambda lib, r: r.PackedSequence(lib.zeros(2)),
    ],
)
def test_wrong_sequences_raise_what_pytorch_raises(torch: Any, wrong: Any) -> None:
    same_complaint(torch, lambda lib: wrong(lib, lib.nn.utils.rnn))


def test_wrong_sequences_that_pytorch_takes_or_words_otherwise() -> None:
    with pytest.raises(RuntimeError, match="lengths of at most 4, but got 5"):
        rnn.pack_padded_sequence(gs.zeros(X), [5, 2, 1])
    with pytest.raises(RuntimeError, match="no dimensions"):
        rnn.pad_sequence([gs.tensor(1.0)])
    with pytest.raises(RuntimeError, match="Expected iterable"):
        rnn.pad_sequence(3)

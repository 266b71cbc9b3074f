"""hstack, tensor_split, meshgrid and their kin give what PyTorch gives: values, gradients, nodes."""

from __future__ import annotations

from typing import Any

import pytest

import gradscope as gs
from tests.runtime.ops.operator_cases import assert_agrees, assert_same_refusal


@pytest.mark.torch
@pytest.mark.parametrize("name", ["hstack", "vstack", "row_stack", "dstack", "column_stack"])
@pytest.mark.parametrize("shapes", [((), ()), ((3,), (3,)), ((2, 3), (2, 3)), ((2, 3, 2), (2, 3, 2))])
def test_stacks(torch: Any, name: str, shapes: Any) -> None:
    assert_agrees(torch, lambda m, *tensors: getattr(m, name)(list(tensors)), *shapes)


@pytest.mark.torch
@pytest.mark.parametrize(
    ("use", "shapes"),
    [
        (lambda m, x: [m.atleast_1d(x), m.atleast_2d(x), m.atleast_3d(x)], [()]),
        (lambda m, x: [m.atleast_2d(x), m.atleast_3d(x)], [(2,)]),
        (lambda m, x, y: m.atleast_2d(x, y), [(2,), ()]),
        (lambda m, x, y: m.atleast_3d([x, y]), [(2, 3), (2,)]),
        (lambda m, x: m.tensor_split(x, 3), [(7,)]),
        (lambda m, x: m.tensor_split(x, [1, 3], 1), [(2, 5)]),
        (lambda m, x: m.tensor_split(x, (-2,)), [(5,)]),
        (lambda m, x: x.tensor_split(m.tensor([2, 9])), [(5,)]),
        (lambda m, x: m.hsplit(x, 2), [(2, 4)]),
        (lambda m, x: m.hsplit(x, [1]), [(4,)]),
        (lambda m, x: x.vsplit(2), [(4, 2)]),
        (lambda m, x: x.dsplit(2), [(1, 2, 4)]),
        (lambda m, x, y: m.meshgrid(x, y, indexing="ij"), [(2,), (3,)]),
        (lambda m, x, y: m.meshgrid([x, y], indexing="xy"), [(2,), (3,)]),
        (lambda m, x, y: m.cartesian_prod(x, y), [(2,), (3,)]),
        (lambda m, x, y: m.broadcast_tensors(x, y), [(2, 1), (3,)]),
        (lambda m, x: m.diff(x), [(5,)]),
        (lambda m, x: x.diff(n=2, dim=0), [(4, 2)]),
        (lambda m, x, y: m.diff(x, prepend=y, append=y), [(3,), (1,)]),
        (lambda m, x: m.diff(x, n=9), [(3,)]),
    ],
)
def test_the_others(torch: Any, use: Any, shapes: Any) -> None:
    assert_agrees(torch, use, *shapes)


@pytest.mark.torch
def test_block_diag(torch: Any) -> None:
    # PyTorch has a node of its own for it.
    assert_agrees(torch, lambda m, x, y: m.block_diag(x, y), (2, 3), (2,), nodes=False)


@pytest.mark.torch
@pytest.mark.parametrize(
    "use",
    [
        lambda m: m.hstack([]),
        lambda m: m.vstack([m.ones(2), m.ones(3)]),
        lambda m: m.tensor_split(m.ones(()), 2),
        lambda m: m.tensor_split(m.ones(3), 0),
        lambda m: m.hsplit(m.ones(2, 4), 3),
        lambda m: m.vsplit(m.ones(4), 2),
        lambda m: m.dsplit(m.ones(4, 2), 2),
        lambda m: m.meshgrid(m.ones(2, 2), m.ones(2), indexing="ij"),
        lambda m: m.meshgrid(m.ones(2), m.ones(2), indexing="no"),
        lambda m: m.block_diag(m.ones(2, 2, 2)),
        lambda m: m.diff(m.ones(())),
        lambda m: m.broadcast_tensors(m.ones(2), m.ones(3)),
    ],
)
def test_wrong_calls_raise_pytorchs_exceptions(torch: Any, use: Any) -> None:
    assert_same_refusal(torch, use)


def test_stacks_write_into_out() -> None:
    out = gs.empty(0)
    assert gs.vstack([gs.ones(2), gs.zeros(2)], out=out) is out
    assert out.tolist() == [[1.0, 1.0], [0.0, 0.0]]


@pytest.mark.torch
def test_a_vector_of_nothing_has_a_say_in_the_dtype(torch: Any) -> None:
    for lib in (gs, torch):
        assert lib.cat([lib.zeros(0, dtype=lib.float64), lib.ones(2)]).dtype is lib.float64
        assert lib.cat([lib.ones(1, 2), lib.zeros(0, dtype=lib.int64)]).dtype is lib.float32


@pytest.mark.torch
def test_chunks_of_nothing_are_as_many_as_are_wanted(torch: Any) -> None:
    for lib in (gs, torch):
        assert [tuple(part.shape) for part in lib.zeros(2, 0).chunk(3, 1)] == [(2, 0)] * 3
        assert len(lib.unsafe_chunk(lib.zeros(0), 2)) == 2

"""scatter_reduce and index_reduce: zeros, ties, places nobody writes to, and what they refuse."""

from __future__ import annotations

from typing import Any

import pytest

import gradscope as gs
from tests.runtime.ops.operator_cases import assert_same_refusal
from tests.side_by_side import compare, same_complaint

pytestmark = pytest.mark.filterwarnings("ignore:index_reduce:UserWarning")

INDEX = [0, 0, 2, 2]
REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


@pytest.mark.torch
@pytest.mark.parametrize("reduce", REDUCTIONS)
@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize(
    "src", [[1.0, 2.0, 3.0, 4.0], [0.0, 2.0, 0.0, 0.0], [5.0, 5.0, -1.0, 2.5]], ids=["plain", "zeros", "ties"]
)
def test_zeros_and_ties(torch: Any, reduce: str, own: bool, src: list[float]) -> None:
    compare(
        torch,
        lambda lib, x, s: x.scatter_reduce(0, lib.tensor(INDEX), s, reduce, include_self=own),
        [5.0, 0.0, 2.5],
        src,
        twice=False,
    )
    if reduce != "sum":
        compare(
            torch,
            lambda lib, x, s: x.index_reduce(0, lib.tensor(INDEX), s, reduce, include_self=own),
            [5.0, 0.0, 2.5],
            src,
            twice=False,
        )


@pytest.mark.torch
@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_integers(torch: Any, reduce: str) -> None:
    for own in (True, False):
        found, expected = (
            lib.tensor([5, 0, 2]).scatter_reduce(
                0, lib.tensor(INDEX), lib.tensor([1, 2, 4, 4]), reduce, include_self=own
            )
            for lib in (gs, torch)
        )
        assert found.tolist() == expected.tolist()
        assert found.dtype is gs.int64


def test_in_place_writes_a_view() -> None:
    x = gs.zeros(2, 3)
    x[:, 1].scatter_reduce_(0, gs.tensor([0, 0]), gs.tensor([3.0, 4.0]), "prod", include_self=False)
    assert x.tolist() == [[0.0, 12.0, 0.0], [0.0, 0.0, 0.0]]
    assert x._version == 1


def test_an_empty_index_changes_nothing() -> None:
    x = gs.ones(3)
    empty = gs.zeros(0, dtype=gs.int64)
    assert x.scatter_reduce(0, empty, gs.zeros(0), "amax", include_self=False).tolist() == [1.0, 1.0, 1.0]


@pytest.mark.torch
def test_refusals(torch: Any) -> None:
    assert_same_refusal(torch, lambda lib: lib.zeros(2).scatter_reduce(0, lib.tensor([0]), lib.ones(1), "median"))
    same_complaint(torch, lambda lib: lib.zeros(2).scatter_reduce(0, lib.tensor([5]), lib.ones(1), "sum"))
    assert_same_refusal(torch, lambda lib: lib.zeros(2).index_reduce(0, lib.tensor([0]), lib.ones(1), "sum"))


@pytest.mark.torch
@pytest.mark.parametrize("reduce", ["add", "multiply"])
@pytest.mark.parametrize("source", [2.5, [1.0, 2.0, 3.0, 4.0]], ids=["number", "tensor"])
@pytest.mark.filterwarnings("ignore:The reduce argument:UserWarning")
def test_scatter_with_a_reduction(torch: Any, reduce: str, source: Any) -> None:
    def written(m: Any, name: str) -> Any:
        given = m.tensor(source) if isinstance(source, list) else source
        return getattr(m.tensor([5.0, 0.5, 2.5]), name)(0, m.tensor(INDEX), given, reduce=reduce).tolist()

    assert written(gs, "scatter") == written(torch, "scatter")
    assert written(gs, "scatter_") == written(torch, "scatter_")


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:The reduce argument:UserWarning")
def test_scatter_knows_two_reductions(torch: Any) -> None:
    same_complaint(torch, lambda m: m.zeros(2).scatter(0, m.tensor([0]), m.ones(1), reduce="amax"))
    with pytest.warns(UserWarning, match="The reduce argument"):
        gs.zeros(2).scatter(0, gs.tensor([0]), gs.ones(1), reduce="add")


@pytest.mark.torch
@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "prod"])
@pytest.mark.parametrize("initial", [None, 2.0])
def test_segments_are_reduced_as_by_pytorch(reduce: str, initial: float | None, torch: Any) -> None:
    def reduced(m: Any) -> Any:
        x = m.tensor([1.0, 2.0, 2.0, 0.0, 5.0, 5.0], requires_grad=True)
        result = m.segment_reduce(x, reduce, lengths=m.tensor([3, 0, 3]), initial=initial)
        result[[0, 2]].sum().backward()
        return result.tolist(), x.grad.tolist()

    assert repr(reduced(gs)) == repr(reduced(torch))


@pytest.mark.torch
@pytest.mark.parametrize(
    "use",
    [
        lambda m, x: m.segment_reduce(x, "sum"),
        lambda m, x: m.segment_reduce(x, "median", lengths=m.tensor([6])),
        lambda m, x: m.segment_reduce(x, "sum", lengths=m.tensor([5])),
        lambda m, x: m.segment_reduce(x, "sum", lengths=m.tensor([-1, 7])),
        lambda m, x: m.segment_reduce(x, "sum", lengths=m.tensor([6]), axis=1),
        lambda m, x: m.segment_reduce(x.reshape(2, 3), "sum", lengths=m.tensor([3]), axis=1),
        lambda m, x: m.segment_reduce(x.long(), "sum", lengths=m.tensor([2, 4])),
    ],
)
def test_segments_that_do_not_fit_raise_pytorchs_exception(use: Any, torch: Any) -> None:
    assert_same_refusal(torch, lambda m: use(m, m.arange(6.0)))

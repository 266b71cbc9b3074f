"""Connectionist temporal classification: beside PyTorch, and beside the sum over all alignments."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope.autograd.gradcheck import gradcheck, gradgradcheck
from tests.side_by_side import compare, same_complaint

rng = numpy.random.default_rng(0)
ROWS = [[1, 2, 2], [3, 1, 2]]
# Lengths of the targets and of the inputs: plenty, just enough (or too little, for twins), nothing to say, no input.
LENGTHS = [((3, 2), (6, 5)), ((3, 2), (3, 2)), ((0, 1), (6, 6)), ((0, 0), (6, 2)), ((2, 1), (0, 4))]


@pytest.mark.torch
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("zero_infinity", [False, True])
@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
def test_ctc_is_that_of_pytorch(torch: Any, lengths: Any, reduction: str, zero_infinity: bool) -> None:
    said, heard = lengths
    in_a_row = [label for row, count in zip(ROWS, said, strict=True) for label in row[:count]]
    scores = rng.normal(size=(6, 2, 4))

    def loss(lib: Any, x: Any, targets: Any, blank: int = 0) -> Any:
        settings = {"reduction": reduction, "zero_infinity": zero_infinity, "blank": blank}
        targets = lib.tensor(targets, dtype=lib.int64)
        return lib.nn.functional.ctc_loss(x, targets, lib.tensor(heard), lib.tensor(said), **settings)

    for targets in (ROWS, in_a_row):
        compare(torch, lambda lib, x: loss(lib, x.log_softmax(2), targets), scores, twice=False)  # noqa: B023
        # Its gradient is that of scores before a log_softmax even where there was none.
        compare(torch, lambda lib, x: loss(lib, x, targets), scores, twice=False)  # noqa: B023
    others = [[label - 1 for label in row] for row in ROWS]
    compare(torch, lambda lib, x: loss(lib, x.log_softmax(2), others, 3), scores, twice=False)


@pytest.mark.torch
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_one_example_without_a_batch(torch: Any, reduction: str) -> None:
    def loss(lib: Any, x: Any) -> Any:
        lengths = lib.tensor(5), lib.tensor(2)
        return lib.nn.functional.ctc_loss(x.log_softmax(-1), lib.tensor([1, 2]), *lengths, reduction=reduction)

    compare(torch, loss, rng.normal(size=(5, 3)), twice=False)


@pytest.mark.torch
@pytest.mark.parametrize("label", [1, 2])
@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")
def test_probabilities_of_nought(torch: Any, label: int) -> None:
    with numpy.errstate(divide="ignore"):
        scores = numpy.log(numpy.array([[[0.5, 0.5, 0.0]]] * 3))

    def loss(lib: Any, x: Any) -> Any:
        return lib.nn.functional.ctc_loss(x, lib.tensor([[label]]), lib.tensor([2]), lib.tensor([1]), reduction="sum")

    compare(torch, loss, scores, twice=False)


def collapsed(path: tuple[int, ...]) -> list[int]:
    return [label for label, _ in itertools.groupby(path) if label]


@pytest.mark.parametrize("labels", [[1], [1, 2], [1, 1], [2, 2, 1], []])
def test_ctc_is_the_sum_over_all_alignments(labels: list[int]) -> None:
    logs = gs.from_numpy(rng.normal(size=(5, 1, 3))).log_softmax(2)
    paths = [path for path in itertools.product(range(3), repeat=5) if collapsed(path) == labels]
    likelihood = sum(math.exp(sum(logs[t, 0, c].item() for t, c in enumerate(path))) for path in paths)
    targets = gs.tensor([labels], dtype=gs.int64).reshape(1, -1)
    found = gs.nn.functional.ctc_loss(logs, targets, [5], [len(labels)], reduction="sum")
    assert found.item() == pytest.approx(-math.log(likelihood))


def test_its_gradients_after_a_log_softmax_are_derivatives() -> None:
    scores = gs.from_numpy(rng.normal(size=(5, 2, 4))).requires_grad_()

    def loss(x: Any) -> Any:
        return gs.nn.functional.ctc_loss(x.log_softmax(2), gs.tensor(ROWS), [5, 4], [3, 1], reduction="sum")

    assert gradcheck(loss, [scores])
    assert gradgradcheck(loss, [scores])


def test_single_precision_is_close_to_double() -> None:
    scores, targets = rng.normal(size=(40, 2, 5)), gs.tensor(rng.integers(1, 5, size=(2, 9)))
    found = []
    for dtype in (gs.float32, gs.float64):
        x = gs.from_numpy(scores).to(dtype).requires_grad_()
        loss = gs.nn.functional.ctc_loss(x.log_softmax(2), targets, [40, 33], [9, 7])
        loss.backward()
        assert loss.dtype is dtype
        found.append([loss.item(), *x.grad.reshape(-1).tolist()])
    numpy.testing.assert_allclose(*found, rtol=1e-4, atol=1e-5)


def wrong(scores: Any, targets: Any, heard: Any, said: Any, **settings: Any) -> Any:
    def call(lib: Any) -> Any:
        given = [lib.tensor(x) for x in (targets, heard, said)]
        return lib.nn.functional.ctc_loss(lib.zeros(*scores), *given, **settings)

    return call


WRONG = {
    "longer than the input": wrong((2, 1, 3), [[1, 1]], [5], [2]),
    "longer than the targets": wrong((2, 1, 3), [[1, 1]], [2], [3]),
    "too many input lengths": wrong((2, 1, 3), [[1, 1]], [2, 2], [2]),
    "too many target lengths": wrong((2, 1, 3), [[1, 1]], [2], [2, 2]),
    "more targets than their lengths": wrong((2, 1, 3), [1, 1], [2], [1]),
    "a blank that is no class": wrong((2, 1, 3), [[1, 1]], [2], [1], blank=3),
    "a negative input": wrong((2, 1, 3), [[1, 1]], [-1], [1]),
    "a negative target": wrong((2, 1, 3), [[1, 1]], [1], [-1]),
    "lengths that are no integers": wrong((2, 1, 3), [[1, 1]], [2.0], [1]),
    "targets of fewer examples": wrong((2, 2, 3), [[1, 1]], [2, 2], [1, 1]),
    "unknown reduction": wrong((2, 1, 3), [[1, 1]], [2], [2], reduction="x"),
    "scores of one dimension": wrong((3,), [[1, 1]], [2], [2]),
    "no examples": wrong((2, 0, 3), [1], [2], [1]),
    "half precision": lambda lib: lib.nn.functional.ctc_loss(
        lib.zeros(2, 1, 3).half(), lib.tensor([[1, 1]]), lib.tensor([2]), lib.tensor([1])
    ),
}


@pytest.mark.torch
@pytest.mark.parametrize("call", WRONG.values(), ids=WRONG)
def test_wrong_calls_raise_what_pytorch_raises(torch: Any, call: Any) -> None:
    same_complaint(torch, call)


def test_a_label_that_is_no_class() -> None:
    with pytest.raises(RuntimeError, match="index 7 is out of bounds for dimension 2 with size 3"):
        gs.nn.functional.ctc_loss(gs.zeros(4, 1, 3), gs.tensor([[1, 7]]), [4], [2])

"""Padding with what is there beside PyTorch's: pads, cuts, both, with and without a batch; and its errors."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradscope as gs
from tests.runtime.ops.operator_cases import node_name
from tests.side_by_side import compare, same_complaint

rng = numpy.random.default_rng(0)
PADS = [(1, 2), (-1, 2), (2, -1), (0, 0), (2, 1, 1, 0), (2, -2, -1, 1), (1, 1, 2, 0, 0, 2), (0, 0, 1, 1, -1, 2)]


@pytest.mark.torch
@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize("pad", PADS, ids=str)
def test_padding_is_that_of_pytorch(torch: Any, mode: str, pad: tuple[int, ...]) -> None:
    size = (5, 4, 4)[: len(pad) // 2]
    for shape in ((2, 3, *size), (3, *size)):
        compare(
            torch,
            lambda lib, x: lib.nn.functional.pad(x, pad, mode),
            rng.normal(size=shape),
            names=mode != "circular",
        )


@pytest.mark.torch
def test_circular_padding_is_written_part_by_part(torch: Any) -> None:
    names = [
        node_name(lib.nn.functional.pad(lib.ones(1, 3, requires_grad=True), (1, 1), "circular")) for lib in (gs, torch)
    ]
    assert names == ["CopySlices"] * 2


CUTS = [(-5, 3), (3, -5), (2, -3)]
CUTS_OF_BORDERS = [(6, -5), (-5, 6), (9, 9)]


@pytest.mark.torch
@pytest.mark.parametrize(
    ("mode", "pad"), [*(("reflect", cut) for cut in CUTS), *(("replicate", cut) for cut in CUTS_OF_BORDERS)]
)
def test_more_cut_than_there_was(torch: Any, mode: str, pad: tuple[int, int]) -> None:
    compare(torch, lambda lib, x: lib.nn.functional.pad(x, pad, mode), rng.normal(size=(1, 4)))


@settings(max_examples=40)
@given(st.integers(1, 6), st.integers(1, 5), st.data())
def test_padding_and_its_adjoint_are_numpys(height: int, width: int, data: st.DataObject) -> None:
    """The gradient of a padded tensor's sum counts how often each element is shown."""
    numbers = numpy.arange(height * width, dtype=float).reshape(height, width)
    for mode, theirs, limits in (("reflect", "reflect", (width, height)), ("replicate", "edge", (9, 9))):
        pad = tuple(data.draw(st.integers(0, limits[i // 2] - 1)) for i in range(4))
        leaf = gs.from_numpy(numbers[None]).requires_grad_()
        padded = gs.nn.functional.pad(leaf, pad, mode)
        padded.sum().backward()
        expected = numpy.pad(numbers, (pad[2:], pad[:2]), mode=theirs)
        assert padded[0].tolist() == expected.tolist()
        counts = numpy.bincount(expected.astype(int).reshape(-1), minlength=numbers.size)
        assert leaf.grad.reshape(-1).tolist() == counts.tolist()


WRONG = {
    "as much as there is": ((1, 4), (4, 1), "reflect"),
    "as much as there is of two": ((1, 1, 4), (1, 0, 1, 0), "reflect"),
    "as much as there is of three": ((1, 2, 2, 2), (2, 0, 1, 0, 0, 0), "reflect"),
    "all cut": ((1, 4), (-2, -2), "reflect"),
    "more than all cut": ((1, 4), (-3, -3), "replicate"),
    "nothing to repeat": ((1, 0), (1, 1), "replicate"),
    "no channels": ((2, 0, 3), (1, 1), "reflect"),
    "round more than once": ((1, 4), (2, 5), "circular"),
    "nothing left to go round": ((1, 4), (-3, -3), "circular"),
    "one dimension": ((4,), (1, 1), "reflect"),
    "one dimension to go round": ((4,), (1, 1), "circular"),
    "more pads than dimensions": ((1, 4), (1, 1, 1, 1), "reflect"),
    "unknown mode": ((1, 4), (1, 1), "mirror"),
    "odd pads": ((1, 4), (1,), "reflect"),
    "odd pads of numbers": ((1, 4), (1,), "constant"),
    "more pads of numbers than dimensions": ((4,), (1, 1, 1, 1), "constant"),
    "no pads": ((2, 3), (), "reflect"),
    "many dimensions": ((2, 3, 4, 5, 6), (1, 1), "replicate"),
}


@pytest.mark.torch
@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG)
def test_wrong_pads_raise_what_pytorch_raises(torch: Any, case: Any) -> None:
    shape, pad, mode = case
    same_complaint(torch, lambda lib: lib.nn.functional.pad(lib.zeros(*shape), pad, mode))


@pytest.mark.torch
def test_other_wrong_calls(torch: Any) -> None:
    same_complaint(torch, lambda lib: lib.nn.functional.pad(lib.zeros(1, 4), (1, 1), "reflect", 1.0))
    same_complaint(torch, lambda lib: lib.nn.functional.pad(lib.zeros(1, 4) > 0, (1, 1), "replicate"))
    same_complaint(torch, lambda lib: lib.nn.CircularPad1d(1)(lib.zeros(2)))

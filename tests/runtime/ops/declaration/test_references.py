"""Every operator is held against its declared reference, on its samples and at its extremes; no PyTorch is needed.

``pytest -k sinc-float32`` runs one operator in one dtype.
"""

from __future__ import annotations

import warnings

import numpy
import pytest

import gradscope as gs
from gradscope.runtime.ops.declaration.registry import OPERATORS, Operator
from gradscope.runtime.tensor.tensor import Tensor
from tests.runtime.ops import operator_cases as cases
from tests.runtime.ops import references

# Relative: a few units in the last place, of results whose last bits depend on the order of their sums.
TOLERANCES = {"float64": 1e-12, "float32": 2e-6, "complex128": 1e-11}

REFERRED = [op for op in OPERATORS.values() if op.reference is not None]


def kinds(op: Operator) -> list[str]:
    """Return the dtypes in which an operator is held against its reference."""
    return ["float64", "float32"] + (["complex128"] if "c" in op.supports and cases.has_derivative(op) else [])


def run(op: Operator, kind: str) -> list[tuple[cases.Sample, list[Tensor]]]:
    """Return an operator's samples and extremes with its results for them; complex infinities have no one rule."""
    with warnings.catch_warnings(), numpy.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        arguments = cases.samples(op, kind) + (cases.extremes(op, kind) if kind != "complex128" else [])
        arguments = [sample for sample in arguments if references.comparable(op, sample) and not refused(op, sample)]
        return [(sample, cases.call(op, sample)) for sample in arguments]


def refused(op: Operator, sample: cases.Sample) -> bool:
    """Whether an operator refuses a matrix as singular, or for what is in it; its reference must do so too."""
    try:
        cases.call(op, sample)
    except gs.linalg.LinAlgError:
        with pytest.raises(numpy.linalg.LinAlgError):
            references.expected(op, sample, double=True)
        return True
    return False


@pytest.mark.slow
@pytest.mark.parametrize(
    ("op", "kind"), [pytest.param(op, kind, id=f"{op.name}-{kind}") for op in REFERRED for kind in kinds(op)]
)
def test_numbers_are_those_of_the_reference(op: Operator, kind: str) -> None:
    lines = [
        line
        for sample, outputs in run(op, kind)
        for line in references.disagreements(op, sample, outputs, rtol=TOLERANCES[kind])
    ]
    assert not lines, "\n".join(lines[:40])


@pytest.mark.parametrize("op", [pytest.param(op, id=op.name) for op in REFERRED if op.differs])
def test_differences_that_are_stated_are_there(op: Operator) -> None:
    shown = {
        why
        for kind in kinds(op)
        for sample, outputs in run(op, kind)
        for why in references.shown_differences(op, sample, outputs, rtol=TOLERANCES[kind])
    }
    assert shown == {why for _, why in op.differs}


def test_every_operator_names_a_reference() -> None:
    assert sorted(op.name for op in OPERATORS.values() if op.samples and op.reference is None) == []

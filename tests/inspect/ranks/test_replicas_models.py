"""Ranks whose code makes another model are told apart by the parameters that they hold."""

from __future__ import annotations

import copy

import numpy
import pytest

from gradscope.inspect.ranks.agreement import Comparison, Disagreement, Steps, held_at
from gradscope.inspect.ranks.disagreement_causes import likely_cause
from gradscope.inspect.ranks.live_agreement import LiveAgreement
from gradscope.inspect.ranks.replicas import model_differences, order_difference
from gradscope.inspect.recording import RecordingError
from gradscope.inspect.recording.file.step_rows import StepRecord
from gradscope.inspect.records.before_step.step_looks import BUFFER, OUTSIDE, REDUCED, HeldTensor, StepLook
from gradscope.inspect.records.own_rank import OwnRank

ONE, TWO = ("one.weight", (4, 2)), ("two.weight", (4, 2))


def step(*named, kind=REDUCED, stepped=True):
    """Return a step of parameters, of (name, shape) of each; a parameter's value is its place."""
    tensors = tuple(
        HeldTensor(name, shape, "float32", "", kind, stepped, "", f"/a/train.py:{place}")
        for place, (name, shape) in enumerate(named)
    )
    values = numpy.arange(1, len(named) + 1, dtype=numpy.uint64)
    look = StepLook(0, 1, tensors, values, values, values > 0, values * 1.0)
    return StepRecord(1, 0, 1, 0, look)


@pytest.mark.parametrize(
    ("theirs", "told"),
    [
        ((ONE, TWO), []),
        ((TWO, ONE), []),
        ((ONE, TWO, ("extra", (2,))), ["extra is there alone; see what is called at /a/train.py:2"]),
        ((ONE,), ["two.weight is here alone"]),
        (
            (ONE, ("2.weight", (4, 2)), ("2.bias", (4,))),
            ["2.weight, 2.bias are there alone, and two.weight is here alone; see what is called at /a/train.py:1"],
        ),
        (
            (("one.weight", (3, 2)), TWO),
            ["one.weight is (3, 2) there and (4, 2) here; see what is called at /a/train.py:0"],
        ),
    ],
)
def test_parameters_of_other_names_and_shapes_are_named_with_their_line(theirs, told):
    found = model_differences({0: step(ONE, TWO), 2: step(*theirs)})
    assert [line.removeprefix("rank 2 holds another model than rank 0: ") for line in found] == told


def test_another_order_is_one_of_what_both_optimizers_hold():
    told = "rank 1 has its parameters in another order than rank 0: two.weight stands there where one.weight does here"
    assert order_difference({0: step(ONE, TWO), 1: step(("new", (1,)), TWO, ONE)}) == told
    assert order_difference({0: step(ONE, TWO), 1: step(("new", (1,)), ONE)}) == ""


def test_what_reduces_parameters_by_place_makes_others_equal_than_those_of_one_name():
    steps = {0: step(ONE, TWO), 1: step(TWO, ONE)}
    held = {rank: held_at(one, rank, "values") for rank, one in steps.items()}
    parted = Disagreement("parameter", steps[0].look.tensors[0], held, (), steps, {})
    assert likely_cause(parted).text == (
        "rank 1 has its parameters in another order than rank 0: two.weight stands there where one.weight does here, "
        "and DistributedDataParallel makes equal, and reduces, what stands at one place"
    )


def test_a_comparison_notes_what_it_cannot_compare():
    comparison = Comparison({0: Steps(iter([step(ONE, TWO)])), 1: Steps(iter([step(ONE)]))})
    assert comparison.run() is None
    assert comparison.differences == ["rank 1 holds another model than rank 0: two.weight is here alone"]


def test_models_without_anything_that_makes_them_equal_are_told_apart():
    streams = {0: Steps(iter([step(TWO, ONE, kind=OUTSIDE)])), 1: Steps(iter([step(ONE, kind=OUTSIDE)]))}
    with pytest.raises(RecordingError, match=r"no DistributedDataParallel: rank 1 .*: two\.weight is here alone"):
        Comparison(streams).run()


def test_buffers_are_of_no_model():
    assert list(model_differences({0: step(ONE), 1: step(TWO, kind=BUFFER, stepped=False)})) == [
        "rank 1 holds another model than rank 0: one.weight is here alone"
    ]


class Store:
    """A process group's store, as far as it counts."""

    def __init__(self):
        self.counts = {}

    def add(self, key, more):
        self.counts[key] = self.counts.get(key, 0) + more
        return self.counts[key]


def test_while_they_train_it_is_told_once(monkeypatch):
    told, store = [], Store()
    first = LiveAgreement(OwnRank(1, 3), told.append)
    other = copy.copy(first)
    for live in (first, other):
        live._store = store
        live._comparison = Comparison({})
        live._comparison.differences = ["rank 1 holds another model"]
        live._tell_of_differences()
        live._tell_of_differences()
    assert told == ["rank 1 holds another model"]

"""Records are immutable, and hold no tensor."""

import dataclasses

import pytest

from gradscope.inspect import NodeRecord, SessionState, StopReason
from gradscope.inspect.records.records import operator_name


@pytest.mark.parametrize(
    ("name", "operator"),
    [
        ("MulBackward0", "Mul"),
        ("MaxPool2DWithIndicesBackward0", "MaxPool2DWithIndices"),
        ("AccumulateGrad", "AccumulateGrad"),
        ("CopySlices", "CopySlices"),
        ("BackwardHookFunctionBackward", "BackwardHookFunction"),
        ("Backward", "Backward"),
        ("MyBackwardThing", "MyBackwardThing"),
    ],
)
def test_operator_name(name, operator):
    assert operator_name(name) == operator


def test_a_record_cannot_be_changed():
    record = NodeRecord(0, 1, "MulBackward0", "Mul", 2, "", "", None, ())
    with pytest.raises(dataclasses.FrozenInstanceError):
        record.state = "done"


def test_states_are_words():
    assert [str(s) for s in SessionState if s.paused] == ["paused before", "paused after", "replaying"]
    assert [str(s) for s in SessionState if s.ended] == ["finished", "failed"]
    assert SessionState.RUNNING == "running"


def test_a_reason_prints_as_its_text():
    assert str(StopReason("step", "next node")) == "next node"
